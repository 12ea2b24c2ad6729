"""Counted calls: stat, access, readdir, chmod, extended attributes; io_uring as a blind spot."""

from __future__ import annotations

import os
import re
from collections.abc import Callable

from tracehint.collectors.strace.decode import (
    AT_FDCWD,
    MalformedError,
    descriptor,
    number,
    split_args,
)
from tracehint.collectors.strace.files import learn, lookup, same_inode
from tracehint.collectors.strace.handlers.common import head_fd, path_at, returned
from tracehint.collectors.strace.lexer import Call
from tracehint.collectors.strace.model import Thread
from tracehint.collectors.strace.state import State

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
    """fstat(fd, buf): looks no path up, so it is not counted, as with eBPF."""
    if returned(call.result) is not None:
        fd, ofd = head_fd(st, thread, call.args, call.t_ns)
        _by_fd(st, thread, call, fd, ofd is not None)


def statat(st: State, thread: Thread, call: Call) -> None:
    """newfstatat(dirfd, path, buf, flags), statx(dirfd, path, flags, mask, buf)."""
    args = split_args(call.args)
    if args[1] == b'""' or args[1] == b"NULL":
        fd, note, _ = descriptor(args[0])
        if fd != AT_FDCWD and returned(call.result) is not None:
            _by_fd(st, thread, call, fd, lookup(st, thread, fd, note, call.t_ns) is not None)
        return
    follow = b"AT_SYMLINK_NOFOLLOW" not in call.args
    _by_path(st, thread, call, args[0], args[1], follow=follow)


def _by_path(
    st: State, thread: Thread, call: Call, dirfd: bytes | None, arg: bytes, *, follow: bool
) -> None:
    path = path_at(st, thread, dirfd, arg, follow=follow)
    failed = returned(call.result) is None
    st.count(thread.group.epoch.proc, path, "stat", failed)
    if failed:
        if b"ENOENT" in call.result:
            node = st.names.node(path)
            node.absent = node.file is None
        return
    facts = _facts(call.args)
    node = st.names.node(path)
    if facts is None or _kind(call.args) != "file":
        return
    if node.file is not None:
        learn(st, node.file, *facts)
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
    facts = _facts(call.args)
    if facts is not None and ofd.file.kind == "file":
        same_inode(st, ofd, thread.group.epoch.rows.get(ofd), facts[0], facts[1])
        learn(st, ofd.file, *facts)


def _kind(args: bytes) -> str | None:
    found = _MODE.search(args)
    return None if found is None else _KINDS.get(found[1], "file")


def _facts(args: bytes) -> tuple[int, int, int] | None:
    """Device, inode, size, where the log shows all three."""
    ino, size, major, minor = (p.search(args) for p in (_INO, _SIZE, _DEV, _MINOR))
    if ino is None or size is None or major is None or minor is None:
        return None
    dev = os.makedev(int(major[1], 0), int(minor[1] or minor[2], 0))
    return dev, signed(int(ino[1])), number(size[1])


def signed(ino: int) -> int:
    """Inode numbers have 64 bits without a sign, the bundle's have one."""
    if ino >= 1 << 64:
        raise MalformedError(b"an inode number of more than 64 bits")
    return ino - (1 << 64) if ino >= 1 << 63 else ino


def counted(op: str, *, at: bool = False) -> Callable[[State, Thread, Call], None]:
    """A handler that only counts: `op` of METADATA_OPS_KINDS; `at`: the path is the second."""

    def handler(st: State, thread: Thread, call: Call) -> None:
        args = split_args(call.args)
        arg = args[1] if at else args[0]
        path = None
        if arg[:1] == b'"':
            path = path_at(st, thread, args[0] if at else None, arg)
        st.count(thread.group.epoch.proc, path, op, returned(call.result) is None)

    return handler


access, access_at = counted("access"), counted("access", at=True)
chmod, chmod_at = counted("chmod"), counted("chmod", at=True)
xattr = counted("xattr")


def getdents(st: State, thread: Thread, call: Call) -> None:
    """getdents64(fd, entries, size): counted at the directory itself."""
    _, ofd = head_fd(st, thread, call.args, call.t_ns)
    path = ofd.path + b"/" if ofd is not None else None
    st.count(thread.group.epoch.proc, path, "readdir", returned(call.result) is None)
    if ofd is not None and ofd.file.kind == "file":
        ofd.file.kind = "dir"


def unseen(st: State, _: Thread, call: Call) -> None:
    """Calls whose I/O a log of system calls does not show."""
    if call.name == b"io_uring_setup":  # with a thread that polls, the only call there is
        if returned(call.result) is not None:
            st.losses["unknown_calls", "io_uring"] += 1
            st.unseen_fds = True
    elif call.name == b"io_uring_enter":
        parts = split_args(call.args)
        n = number(parts[1]) if len(parts) > 1 else 1
        st.losses["unknown_calls", "io_uring"] += n


_NO_FILES = re.compile(
    rb'"(?:proc|sysfs|devpts|devtmpfs|cgroup2?|mqueue|securityfs|debugfs|tracefs|bpf|configfs)"'
)
_PROPAGATION = re.compile(rb"\bMS_(?:PRIVATE|SLAVE|SHARED|UNBINDABLE|REMOUNT)\b")


def mounted(st: State, _: Thread, call: Call) -> None:
    """Paths that mean other files from now on: names are all that the log has."""
    if returned(call.result) is None:
        return
    if call.name == b"mount" and (_PROPAGATION.search(call.args) or _NO_FILES.search(call.args)):
        return
    if call.name == b"setns" and b"CLONE_NEW" in call.args and b"CLONE_NEWNS" not in call.args:
        return
    st.losses["unknown_calls", "mounts: one path may mean several files"] += 1
