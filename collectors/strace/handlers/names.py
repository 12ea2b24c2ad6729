"""Calls that add, change or remove names of files, or report facts about a file."""

from __future__ import annotations

import os
import re
from collections.abc import Callable

from tracehint.collectors.strace.finish import (
    bind,
    drop_name,
    file_at,
    learn_stat,
    lookup,
    new_file,
    same_inode,
)
from tracehint.collectors.strace.handlers.common import head_fd, parse_result, path_at
from tracehint.collectors.strace.handlers.descriptors import find_reopened
from tracehint.collectors.strace.lexer import (
    AT_FDCWD,
    Call,
    MalformedError,
    descriptor,
    number,
    split_args,
    string,
)
from tracehint.collectors.strace.model import FileRec, Thread
from tracehint.collectors.strace.state import Node, State


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
    failed = parse_result(call.result) is None
    st.count(proc, old, "rename", failed)
    if failed:
        return
    new = path_at(st, thread, new_dir, new_arg)
    if old == new:
        return
    rec = _file_named(st, old, proc, call.t_ns)
    if b"RENAME_EXCHANGE" in how:
        other = _file_named(st, new, proc, call.t_ns)
        mine, theirs = st.names.detach(old), st.names.detach(new)
        assert mine is not None and theirs is not None  # _file_named made both
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


def _file_named(st: State, path: bytes, proc: int, t_ns: int) -> FileRec:
    """Return the file at a path; a file without earlier calls existed before the run."""
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
    if parse_result(call.result) is not None:
        old, new = split_args(call.args)[:2]
        _link(st, thread, call, None, old, None, new)


def linkat(st: State, thread: Thread, call: Call) -> None:
    """linkat(dirfd, old, dirfd, new, flags); also names an O_TMPFILE file by its descriptor."""
    if parse_result(call.result) is not None:
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
    if name or old_dir is None:
        ofd = find_reopened(thread, name)
    else:  # AT_EMPTY_PATH
        ofd = thread.table.fds.get(descriptor(old_dir)[0])
    if ofd is not None:
        old, rec = ofd.path, ofd.file
    else:
        old = path_at(st, thread, old_dir, old_arg)
        rec = _file_named(st, old, proc, call.t_ns)
    new = path_at(st, thread, new_dir, new_arg)
    bind(st.names.node(new), rec)
    if ofd is not None and rec.created and rec.links == 1:
        st.name_row(proc, rec, "create", new, None, call.t_ns)
    else:
        st.name_row(proc, rec, "link", old, new, call.t_ns)


def unlink(st: State, thread: Thread, call: Call) -> None:
    """unlink(path)."""
    _remove_name(st, thread, call, path_at(st, thread, None, split_args(call.args)[0]), "unlink")


def rmdir(st: State, thread: Thread, call: Call) -> None:
    """rmdir(path)."""
    _remove_name(st, thread, call, path_at(st, thread, None, split_args(call.args)[0]), "rmdir")


def unlinkat(st: State, thread: Thread, call: Call) -> None:
    """unlinkat(dirfd, path, flags)."""
    dirfd, path, how = split_args(call.args)[:3]
    op = "rmdir" if b"AT_REMOVEDIR" in how else "unlink"
    _remove_name(st, thread, call, path_at(st, thread, dirfd, path), op)


def _remove_name(st: State, thread: Thread, call: Call, path: bytes, op: str) -> None:
    proc = thread.group.epoch.proc
    failed = parse_result(call.result) is None
    st.count(proc, path, "unlink", failed)
    if failed:
        if b"ENOENT" in call.result:
            st.names.node(path).absent = True
        return
    rec = _file_named(st, path, proc, call.t_ns)
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
    if parse_result(call.result) is None:
        return
    path = path_at(st, thread, dirfd, arg)
    rec = _create_file(st, "other")
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
    """Record a regular file, FIFO or device that is created without an open."""
    if parse_result(call.result) is None:
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
    failed = parse_result(call.result) is None
    st.count(proc, path, "mkdir", failed)
    if failed:
        return
    rec = _create_file(st, "dir")
    node = Node()
    node.fresh = True
    node.file = rec
    st.names.attach(path, node)
    st.name_row(proc, rec, "mkdir", path, None, call.t_ns)


def _create_file(st: State, kind: str) -> FileRec:
    rec = new_file(st, kind)
    rec.existed, rec.created, rec.links = False, True, 1
    return rec


_DEV = re.compile(rb"st(?:x)?_dev(?:_major)?=(?:makedev\()?(0x[0-9a-f]+|\d+)")
_MINOR = re.compile(rb"st_dev=makedev\([^,]+, (0x[0-9a-f]+|\d+)|stx_dev_minor=(0x[0-9a-f]+|\d+)")
_INO = re.compile(rb"stx?_ino=(\d+)")
_SIZE = re.compile(rb"stx?_size=(\d+)")
_MODE = re.compile(rb"stx?_mode=S_IF(\w+)")
_KINDS = {b"DIR": "dir", b"IFO": "pipe", b"SOCK": "socket", b"CHR": "other", b"BLK": "other"}


def stat(st: State, thread: Thread, call: Call) -> None:
    """stat(path, buf), lstat(path, buf)."""
    first = split_args(call.args)[0]
    _by_path(st, thread, call, None, first, follow=call.name[:1] != b"l")


def fstat(st: State, thread: Thread, call: Call) -> None:
    """fstat(fd, buf): no path lookup, so it is not counted, as in the eBPF collector."""
    if parse_result(call.result) is not None:
        fd, ofd = head_fd(st, thread, call.args, call.t_ns)
        _by_fd(st, thread, call, fd, ofd is not None)


def statat(st: State, thread: Thread, call: Call) -> None:
    """newfstatat(dirfd, path, buf, flags), statx(dirfd, path, flags, mask, buf)."""
    args = split_args(call.args)
    if args[1] == b'""' or args[1] == b"NULL":
        fd, note, _ = descriptor(args[0])
        if fd != AT_FDCWD and parse_result(call.result) is not None:
            _by_fd(st, thread, call, fd, lookup(st, thread, fd, note, call.t_ns) is not None)
        return
    follow = b"AT_SYMLINK_NOFOLLOW" not in call.args
    _by_path(st, thread, call, args[0], args[1], follow=follow)


def _by_path(
    st: State, thread: Thread, call: Call, dirfd: bytes | None, arg: bytes, *, follow: bool
) -> None:
    path = path_at(st, thread, dirfd, arg, follow=follow)
    failed = parse_result(call.result) is None
    st.count(thread.group.epoch.proc, path, "stat", failed)
    if failed:
        if b"ENOENT" in call.result:
            node = st.names.node(path)
            node.absent = node.file is None
        return
    facts = _parse_stat(call.args)
    node = st.names.node(path)
    if facts is None or _kind(call.args) != "file":
        return
    if node.file is not None:
        learn_stat(st, node.file, *facts)
    else:
        node.stat = facts


def _by_fd(st: State, thread: Thread, call: Call, fd: int, known: bool) -> None:
    ofd = thread.table.fds.get(fd)
    if not known or ofd is None:
        return
    kind = _kind(call.args)
    if kind not in (None, "file") and ofd.file.kind == "file":
        ofd.file.kind = kind or "file"
        return
    facts = _parse_stat(call.args)
    if facts is not None and ofd.file.kind == "file":
        same_inode(st, ofd, thread.group.epoch.rows.get(ofd), facts[0], facts[1])
        learn_stat(st, ofd.file, *facts)


def _kind(args: bytes) -> str | None:
    found = _MODE.search(args)
    return None if found is None else _KINDS.get(found[1], "file")


def _parse_stat(args: bytes) -> tuple[int, int, int] | None:
    """Return device, inode and size; None unless the log shows all three."""
    ino, size, major, minor = (p.search(args) for p in (_INO, _SIZE, _DEV, _MINOR))
    if ino is None or size is None or major is None or minor is None:
        return None
    dev = os.makedev(int(major[1], 0), int(minor[1] or minor[2], 0))
    return dev, to_signed(int(ino[1])), number(size[1])


def to_signed(ino: int) -> int:
    """Convert an unsigned 64-bit inode number to the signed one of the bundle."""
    if ino >= 1 << 64:
        raise MalformedError(b"an inode number of more than 64 bits")
    return ino - (1 << 64) if ino >= 1 << 63 else ino


def count_call(op: str, *, at: bool = False) -> Callable[[State, Thread, Call], None]:
    """Return a handler that counts `op` (METADATA_OPS_KINDS); `at`: arguments are (dirfd, path)."""

    def handler(st: State, thread: Thread, call: Call) -> None:
        args = split_args(call.args)
        arg = args[1] if at else args[0]
        path = None
        if arg[:1] == b'"':
            path = path_at(st, thread, args[0] if at else None, arg)
        st.count(thread.group.epoch.proc, path, op, parse_result(call.result) is None)

    return handler


access, access_at = count_call("access"), count_call("access", at=True)
chmod, chmod_at = count_call("chmod"), count_call("chmod", at=True)
xattr = count_call("xattr")


def getdents(st: State, thread: Thread, call: Call) -> None:
    """getdents64(fd, entries, size): counted for the directory itself."""
    _, ofd = head_fd(st, thread, call.args, call.t_ns)
    path = ofd.path + b"/" if ofd is not None else None
    st.count(thread.group.epoch.proc, path, "readdir", parse_result(call.result) is None)
    if ofd is not None and ofd.file.kind == "file":
        ofd.file.kind = "dir"


def note_unseen(st: State, _: Thread, call: Call) -> None:
    """Count calls whose I/O does not appear in a log of system calls."""
    if call.name == b"io_uring_setup":  # with a polling kernel thread, the only call
        if parse_result(call.result) is not None:
            st.losses["unknown_calls", "io_uring"] += 1
            st.unseen_fds = True
    elif call.name == b"io_uring_enter":
        parts = split_args(call.args)
        n = number(parts[1]) if len(parts) > 1 else 1
        st.losses["unknown_calls", "io_uring"] += n


_PSEUDO_FS = re.compile(
    rb'"(?:proc|sysfs|devpts|devtmpfs|cgroup2?|mqueue|securityfs|debugfs|tracefs|bpf|configfs)"'
)
_PROPAGATION = re.compile(rb"\bMS_(?:PRIVATE|SLAVE|SHARED|UNBINDABLE|REMOUNT)\b")


def note_mount(st: State, _: Thread, call: Call) -> None:
    """Count mounts that change the files that paths name: the log identifies files by name only."""
    if parse_result(call.result) is None:
        return
    if call.name == b"mount" and (_PROPAGATION.search(call.args) or _PSEUDO_FS.search(call.args)):
        return
    if call.name == b"setns" and b"CLONE_NEW" in call.args and b"CLONE_NEWNS" not in call.args:
        return
    st.losses["unknown_calls", "mounts: one path may mean several files"] += 1
