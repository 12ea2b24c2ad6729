"""open and its relatives, close and close_range."""

from __future__ import annotations

import os
import re

from tracehint.collectors.strace.access import cut
from tracehint.collectors.strace.decode import descriptor, flags, number, split_args, string
from tracehint.collectors.strace.files import absolute, file_at, kind_of, new_file, real
from tracehint.collectors.strace.handlers.common import directory, head_fd, returned
from tracehint.collectors.strace.lexer import Call
from tracehint.collectors.strace.model import Ofd, Thread
from tracehint.collectors.strace.settings import Maybe
from tracehint.collectors.strace.state import State

_FLAG_BITS = {
    name.encode(): value
    for name, value in vars(os).items()
    if name.startswith("O_") and isinstance(value, int)
} | {b"O_LARGEFILE": 0o100000}
_FD_PATH = re.compile(rb"/(?:proc/(?:self|thread-self|(\d+))/fd|dev/fd)/(\d+)$")
_STD_PATH = {b"/dev/stdin": 0, b"/dev/stdout": 1, b"/dev/stderr": 2}
_OPENAT2_FLAGS = re.compile(rb"flags=([^,}]*)")


def flag_bits(names: frozenset[bytes]) -> int:
    """O_* names as the number that was given to open."""
    bits = 0
    for name in names:
        bits |= _FLAG_BITS.get(name, 0)
    return bits


def open_(st: State, thread: Thread, call: Call) -> None:
    """open(path, flags[, mode])."""
    path, how, *_ = split_args(call.args)
    _opened(st, thread, call, None, path, flags(how))


def creat(st: State, thread: Thread, call: Call) -> None:
    """creat(path, mode)."""
    how = frozenset((b"O_WRONLY", b"O_CREAT", b"O_TRUNC"))
    _opened(st, thread, call, None, split_args(call.args)[0], how)


def openat(st: State, thread: Thread, call: Call) -> None:
    """openat(dirfd, path, flags[, mode]) and openat2(dirfd, path, {flags=...}, size)."""
    dirfd, path, how, *_ = split_args(call.args)
    if how[:1] == b"{":
        found = _OPENAT2_FLAGS.search(how)
        how = found[1] if found else b""
    _opened(st, thread, call, dirfd, path, flags(how))


def open_by_handle_at(st: State, thread: Thread, call: Call) -> None:
    """open_by_handle_at(mount_fd, handle, flags): only the annotation names the file."""
    if returned(call.result) is None:
        return
    fd, note, gone = descriptor(call.result)
    if note is None:
        st.losses["unknown_calls", "open_by_handle_at"] += 1
        st.unseen_fds = True
        release(st, thread, fd, call.t_ns)
        return
    how = flags(split_args(call.args)[2])
    if gone:
        rec, first = new_file(st, kind_of(note)), True
        rec.deleted = True
    else:
        rec, first = file_at(st, note, kind_of(note), thread.group.epoch.proc, call.t_ns)
    release(st, thread, fd, call.t_ns)
    ofd = Ofd(rec, note, flag_bits(how), append=b"O_APPEND" in how)
    ofd.note = note
    install(thread, fd, ofd, cloexec=b"O_CLOEXEC" in how)
    _session(st, thread, call, ofd, fd, how, first)


def _opened(
    st: State, thread: Thread, call: Call, dirfd: bytes | None, arg: bytes, how: frozenset[bytes]
) -> None:
    folder = directory(thread, dirfd) if dirfd is not None else None
    asked = absolute(thread, string(arg), folder)
    if returned(call.result) is None:
        st.count(thread.group.epoch.proc, asked, "failed_open", True)
        if b"ENOENT" in call.result and b"O_CREAT" not in how:
            node = st.names.node(st.names.resolve(asked, follow=False))
            node.absent = node.file is None
        return
    fd, note, gone = descriptor(call.result)
    reopened = _reopened(thread, asked)
    if reopened is not None:
        rec, first, path = reopened.file, False, reopened.path
    elif b"O_TMPFILE" in how or (gone and note is not None):
        path = note or asked
        rec, first = new_file(st, kind_of(path)), True
        rec.existed, rec.deleted = False, True
    else:
        path = note if note is not None and note[:1] == b"/" else real(st, asked, follow=True)
        kind = "dir" if b"O_DIRECTORY" in how else kind_of(path)
        rec, first = file_at(st, path, kind, thread.group.epoch.proc, call.t_ns)
    release(st, thread, fd, call.t_ns)
    ofd = Ofd(rec, path, flag_bits(how), append=b"O_APPEND" in how)
    ofd.note = note
    install(thread, fd, ofd, cloexec=b"O_CLOEXEC" in how)
    _session(st, thread, call, ofd, fd, how, first)


def _session(
    st: State, thread: Thread, call: Call, ofd: Ofd, fd: int, how: frozenset[bytes], first: bool
) -> None:
    """The row of this open: was the file made, was it truncated, which size had it."""
    rec, epoch = ofd.file, thread.group.epoch
    row = st.new_row(epoch, ofd, fd, "open", call.t_ns)
    unsure = False
    if first:
        if b"O_TMPFILE" in how:
            row.created = rec.created = True
            rec.size = 0
        elif b"O_CREAT" not in how:
            rec.existed = True
        elif b"O_EXCL" in how or rec.existed is False:
            row.created = rec.created = True
            rec.existed = False
            rec.size = 0
        elif rec.existed is None:
            unsure = True
        seq = st.next_name
        st.name_row(epoch.proc, rec, "create" if row.created else "open", ofd.path, None, call.t_ns)
    row.size_at_open = rec.size
    if b"O_TRUNC" in how:
        if (rec.size is None and not unsure) or rec.size:
            row.truncated = True
            cut(rec, epoch.proc)
            st.extent(epoch.proc, rec, "truncate", "open", 0, 0, call.t_ns, row.number)
        rec.size = 0
    if unsure:
        trunc = b"O_TRUNC" in how
        st.maybes.append(Maybe(rec, row.number, epoch.proc, call.t_ns, seq, trunc))


def _reopened(thread: Thread, path: bytes) -> Ofd | None:
    """The open description behind /proc/self/fd/N, /dev/fd/N, /dev/stdin."""
    fd = _STD_PATH.get(path)
    if fd is None:
        found = _FD_PATH.match(path)
        if found is None or (found[1] and int(found[1]) != thread.group.pid):
            return None
        fd = int(found[2])
    ofd = thread.table.fds.get(fd)
    return ofd if ofd is not None and ofd.file.kind in ("file", "pipe", "memfd") else None


def install(thread: Thread, fd: int, ofd: Ofd, *, cloexec: bool) -> None:
    """Put an open description into the table."""
    thread.table.fds[fd] = ofd
    if cloexec:
        thread.table.cloexec.add(fd)
    else:
        thread.table.cloexec.discard(fd)


def release(st: State, thread: Thread, fd: int, t_ns: int) -> None:
    """Close a descriptor; the session ends with the process's last one."""
    table = thread.table
    ofd = table.fds.pop(fd, None)
    table.cloexec.discard(fd)
    if ofd is None or ofd in table.fds.values():
        return
    row = thread.group.epoch.rows.pop(ofd, None)
    if row is not None:
        st.write_row(row, t_ns)


def close(st: State, thread: Thread, call: Call) -> None:
    """close(fd): the descriptor is free when the call begins, whatever it returns."""
    fd, _ = head_fd(st, thread, call.args, call.t_ns)
    release(st, thread, fd, call.t_ns)


def close_range(st: State, thread: Thread, call: Call) -> None:
    """close_range(first, last, flags)."""
    if returned(call.result) is None:
        return
    first, last, how = split_args(call.args)[:3]
    low, high = number(first), number(last)
    if b"CLOSE_RANGE_UNSHARE" in how:
        thread.table = thread.table.copy()
    hit = [fd for fd in thread.table.fds if low <= fd <= high]
    if b"CLOSE_RANGE_CLOEXEC" in how:
        thread.table.cloexec.update(hit)
        return
    for fd in hit:
        release(st, thread, fd, call.t_ns)
