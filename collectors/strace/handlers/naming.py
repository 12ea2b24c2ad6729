"""Calls that change names: rename, link, unlink, symlink, mkdir, rmdir."""

from __future__ import annotations

import re

from tracehint.collectors.strace.decode import descriptor, split_args, string
from tracehint.collectors.strace.files import bind, drop_name, file_at, new_file
from tracehint.collectors.strace.handlers.common import path_at, returned
from tracehint.collectors.strace.lexer import Call
from tracehint.collectors.strace.model import FileRec, Thread
from tracehint.collectors.strace.names import Node
from tracehint.collectors.strace.state import State

_FD_PATH = re.compile(rb"/(?:proc/(?:self|thread-self|\d+)/fd|dev/fd)/(\d+)$")


def rename(st: State, thread: Thread, call: Call) -> None:
    """rename(old, new)."""
    old, new = split_args(call.args)[:2]
    _rename(st, thread, call, None, old, None, new, b"")


def renameat(st: State, thread: Thread, call: Call) -> None:
    """renameat(dirfd, old, dirfd, new), renameat2(..., flags)."""
    old_dir, old, new_dir, new, *how = split_args(call.args)
    _rename(st, thread, call, old_dir, old, new_dir, new, how[0] if how else b"")


def _rename(
    st: State,
    thread: Thread,
    call: Call,
    old_dir: bytes | None,
    old_arg: bytes,
    new_dir: bytes | None,
    new_arg: bytes,
    how: bytes,
) -> None:
    proc = thread.group.epoch.proc
    old = path_at(st, thread, old_dir, old_arg)
    failed = returned(call.result) is None
    st.count(proc, old, "rename", failed)
    if failed:
        return
    new = path_at(st, thread, new_dir, new_arg)
    if old == new:
        return
    rec = _file(st, old, proc, call.t_ns)
    if b"RENAME_EXCHANGE" in how:
        other = _file(st, new, proc, call.t_ns)
        mine, theirs = st.names.detach(old), st.names.detach(new)
        assert mine is not None and theirs is not None  # _file made both
        st.names.attach(new, mine)
        st.names.attach(old, theirs)
        st.name_row(proc, rec, "exchange", old, new, call.t_ns)
        st.name_row(proc, other, "exchange", new, old, call.t_ns)
        return
    target = st.names.find(new)
    if target is not None and target.file is rec:
        return  # two links of one file: the kernel does nothing
    if target is not None and target.file is not None:
        st.name_row(proc, target.file, "unlink", new, None, call.t_ns)
        drop_name(target.file)
        target.file = None
    node = st.names.detach(old)
    assert node is not None
    st.names.attach(new, node)
    st.name_row(proc, rec, "rename", old, new, call.t_ns)


def _file(st: State, path: bytes, proc: int, t_ns: int) -> FileRec:
    """The file of a name; one that nobody opened so far existed before."""
    rec, first = file_at(st, path, "file", proc, t_ns)
    if first:
        node = st.names.node(path)
        if node.children:
            rec.kind = "dir"
        if rec.existed is None:
            rec.existed = True
        st.name_row(proc, rec, "open", path, None, t_ns)
    return rec


def link(st: State, thread: Thread, call: Call) -> None:
    """link(old, new)."""
    if returned(call.result) is not None:
        old, new = split_args(call.args)[:2]
        _link(st, thread, call, None, old, None, new)


def linkat(st: State, thread: Thread, call: Call) -> None:
    """linkat(dirfd, old, dirfd, new, flags); also of an O_TMPFILE by its descriptor."""
    if returned(call.result) is not None:
        old_dir, old, new_dir, new = split_args(call.args)[:4]
        _link(st, thread, call, old_dir, old, new_dir, new)


def _link(
    st: State,
    thread: Thread,
    call: Call,
    old_dir: bytes | None,
    old_arg: bytes,
    new_dir: bytes | None,
    new_arg: bytes,
) -> None:
    proc = thread.group.epoch.proc
    name = string(old_arg)
    by_fd = _FD_PATH.match(name)
    fd = int(by_fd[1]) if by_fd else None
    if not name and old_dir is not None:
        fd = descriptor(old_dir)[0]
    ofd = thread.table.fds.get(fd) if fd is not None else None
    if ofd is not None:
        old, rec = ofd.path, ofd.file
    else:
        old = path_at(st, thread, old_dir, old_arg)
        rec = _file(st, old, proc, call.t_ns)
    new = path_at(st, thread, new_dir, new_arg)
    bind(st.names.node(new), rec)
    if ofd is not None and rec.created and rec.links == 1:
        st.name_row(proc, rec, "create", new, None, call.t_ns)
    else:
        st.name_row(proc, rec, "link", old, new, call.t_ns)


def unlink(st: State, thread: Thread, call: Call) -> None:
    """unlink(path)."""
    _gone(st, thread, call, path_at(st, thread, None, split_args(call.args)[0]), "unlink")


def rmdir(st: State, thread: Thread, call: Call) -> None:
    """rmdir(path)."""
    _gone(st, thread, call, path_at(st, thread, None, split_args(call.args)[0]), "rmdir")


def unlinkat(st: State, thread: Thread, call: Call) -> None:
    """unlinkat(dirfd, path, flags)."""
    dirfd, path, how = split_args(call.args)[:3]
    op = "rmdir" if b"AT_REMOVEDIR" in how else "unlink"
    _gone(st, thread, call, path_at(st, thread, dirfd, path), op)


def _gone(st: State, thread: Thread, call: Call, path: bytes, op: str) -> None:
    proc = thread.group.epoch.proc
    failed = returned(call.result) is None
    st.count(proc, path, "unlink", failed)
    if failed:
        if b"ENOENT" in call.result:
            st.names.node(path).absent = True
        return
    rec = _file(st, path, proc, call.t_ns)
    if op == "rmdir":
        rec.kind = "dir"
    st.name_row(proc, rec, op, path, None, call.t_ns)
    st.names.detach(path)
    drop_name(rec)


def symlink(st: State, thread: Thread, call: Call) -> None:
    """symlink(target, path)."""
    target, path = split_args(call.args)[:2]
    _symlink(st, thread, call, target, None, path)


def symlinkat(st: State, thread: Thread, call: Call) -> None:
    """symlinkat(target, dirfd, path)."""
    target, dirfd, path = split_args(call.args)[:3]
    _symlink(st, thread, call, target, dirfd, path)


def _symlink(
    st: State, thread: Thread, call: Call, target: bytes, dirfd: bytes | None, arg: bytes
) -> None:
    if returned(call.result) is None:
        return
    path = path_at(st, thread, dirfd, arg)
    rec = _made(st, "other")
    node = Node()
    node.link = string(target)
    node.file = rec
    st.names.attach(path, node)
    st.name_row(thread.group.epoch.proc, rec, "symlink", path, node.link, call.t_ns)


def mkdir(st: State, thread: Thread, call: Call) -> None:
    """mkdir(path, mode)."""
    _mkdir(st, thread, call, None, split_args(call.args)[0])


def mkdirat(st: State, thread: Thread, call: Call) -> None:
    """mkdirat(dirfd, path, mode)."""
    dirfd, path = split_args(call.args)[:2]
    _mkdir(st, thread, call, dirfd, path)


def mknod(st: State, thread: Thread, call: Call) -> None:
    """mknod(path, mode[, dev])."""
    path, mode = split_args(call.args)[:2]
    _mknod(st, thread, call, None, path, mode)


def mknodat(st: State, thread: Thread, call: Call) -> None:
    """mknodat(dirfd, path, mode[, dev])."""
    dirfd, path, mode = split_args(call.args)[:3]
    _mknod(st, thread, call, dirfd, path, mode)


def _mknod(
    st: State, thread: Thread, call: Call, dirfd: bytes | None, arg: bytes, mode: bytes
) -> None:
    """Regular files, FIFOs and devices come about without being opened."""
    if returned(call.result) is None:
        return
    path = path_at(st, thread, dirfd, arg)
    kind = "file" if b"S_IF" not in mode or b"S_IFREG" in mode else "other"
    rec = new_file(st, "pipe" if b"S_IFIFO" in mode else kind)
    rec.existed, rec.created, rec.size = False, True, 0
    bind(st.names.node(path), rec)
    st.name_row(thread.group.epoch.proc, rec, "create", path, None, call.t_ns)


def _mkdir(st: State, thread: Thread, call: Call, dirfd: bytes | None, arg: bytes) -> None:
    path = path_at(st, thread, dirfd, arg)
    proc = thread.group.epoch.proc
    failed = returned(call.result) is None
    st.count(proc, path, "mkdir", failed)
    if failed:
        return
    rec = _made(st, "dir")
    node = Node()
    node.fresh = True
    node.file = rec
    st.names.attach(path, node)
    st.name_row(proc, rec, "mkdir", path, None, call.t_ns)


def _made(st: State, kind: str) -> FileRec:
    rec = new_file(st, kind)
    rec.existed, rec.created, rec.links = False, True, 1
    return rec
