"""Ranges of files: mappings, truncation, holes."""

from __future__ import annotations

from tracehint.collectors.strace import access
from tracehint.collectors.strace.decode import descriptor, number, split_args
from tracehint.collectors.strace.files import file_at, lookup
from tracehint.collectors.strace.handlers.common import head_fd, path_at, returned
from tracehint.collectors.strace.lexer import Call
from tracehint.collectors.strace.model import Ofd, Thread
from tracehint.collectors.strace.state import State

_MAX_MAPS = 65_536  # of one process, remembered for mremap


def mmap(st: State, thread: Thread, call: Call) -> None:
    """mmap(addr, length, prot, flags, fd, offset): the mapped range, an upper bound."""
    if b"MAP_ANON" in call.args or returned(call.result) is None:
        return
    args = split_args(call.args)
    fd, note, _ = descriptor(args[4])
    ofd = lookup(st, thread, fd, note, call.t_ns) if fd >= 0 else None
    if ofd is None:
        return
    start, length = number(args[5]), number(args[1])
    ops = []
    if b"PROT_READ" in args[2] or b"PROT_EXEC" in args[2]:
        ops.append("read")
    if b"PROT_WRITE" in args[2] and b"MAP_SHARED" in args[3]:
        ops.append("write")
    for op in ops:
        access.mapped(st, thread, ofd, fd, op, start, length, call.t_ns)
    if ofd.file.kind == "file" and len(thread.group.maps) < _MAX_MAPS:
        thread.group.maps[number(call.result)] = (ofd, fd, start, tuple(ops))


def mremap(st: State, thread: Thread, call: Call) -> None:
    """mremap(old, old_length, new_length, flags[, new]): the range that was added."""
    if returned(call.result) is None:
        return
    old, before, after = (number(a) for a in split_args(call.args)[:3])
    mapping = thread.group.maps.pop(old, None)
    if mapping is None:
        return
    ofd, fd, start, ops = mapping
    thread.group.maps[number(call.result)] = mapping
    if after > before:
        for op in ops:
            access.mapped(st, thread, ofd, fd, op, start + before, after - before, call.t_ns)


def truncate(st: State, thread: Thread, call: Call) -> None:
    """truncate(path, size)."""
    if returned(call.result) is None:
        return
    path_arg, size = split_args(call.args)[:2]
    path = path_at(st, thread, None, path_arg, follow=True)
    proc = thread.group.epoch.proc
    rec, first = file_at(st, path, "file", proc, call.t_ns)
    if first:
        rec.existed = True
        st.name_row(proc, rec, "open", path, None, call.t_ns)
    rec.size = number(size)
    access.cut(rec, proc)
    st.extent(proc, rec, "truncate", "truncate", rec.size, 0, call.t_ns)


def ftruncate(st: State, thread: Thread, call: Call) -> None:
    """ftruncate(fd, size)."""
    fd, ofd = head_fd(st, thread, call.args, call.t_ns)
    if returned(call.result) is None or ofd is None:
        return
    size = number(call.args.rsplit(b", ", 1)[1])
    _cut(st, thread, ofd, fd, call, size)


def _cut(st: State, thread: Thread, ofd: Ofd, fd: int, call: Call, size: int) -> None:
    row = st.row(thread, ofd, fd, call.t_ns)
    access.cut(ofd.file, row.proc)
    ofd.file.size = size
    st.extent(row.proc, ofd.file, "truncate", "truncate", size, 0, call.t_ns, row.number)


def fallocate(st: State, thread: Thread, call: Call) -> None:
    """fallocate(fd, mode, offset, length): holes and zeroed ranges lose their bytes."""
    if returned(call.result) is None:
        return
    args = split_args(call.args)
    fd, note, _ = descriptor(args[0])
    ofd = lookup(st, thread, fd, note, call.t_ns)
    if ofd is None:
        return
    mode, start, length = args[1], number(args[2]), number(args[3])
    rec = ofd.file
    if b"KEEP_SIZE" not in mode and b"RANGE" not in mode and rec.size is not None:
        rec.size = max(rec.size, start + length)
    if b"ZERO_RANGE" in mode:
        access.write_at(st, thread, ofd, fd, start, length, "fallocate", call)
    elif b"PUNCH_HOLE" in mode or b"_RANGE" in mode:
        row = st.row(thread, ofd, fd, call.t_ns)
        access.cut(rec, row.proc)
        st.extent(row.proc, rec, "deallocate", "fallocate", start, length, call.t_ns, row.number)
