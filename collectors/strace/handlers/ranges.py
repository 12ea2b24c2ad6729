"""Ranges of files: mappings, truncation, holes."""

from __future__ import annotations

from dataclasses import replace

from tracehint.collectors.strace import access
from tracehint.collectors.strace.decode import descriptor, number, split_args
from tracehint.collectors.strace.files import file_at, lookup
from tracehint.collectors.strace.handlers.common import head_fd, path_at, returned
from tracehint.collectors.strace.lexer import Call
from tracehint.collectors.strace.model import Mapping, Ofd, Thread
from tracehint.collectors.strace.state import State

_SHIFTS = (b"COLLAPSE_RANGE", b"INSERT_RANGE")
_CHANGING = (b"ZERO_RANGE", b"PUNCH_HOLE", *_SHIFTS)
_MAX_MAPS = 65_536  # of one process, remembered for mremap


def mmap(st: State, thread: Thread, call: Call) -> None:
    """mmap(addr, length, prot, flags, fd, offset): the mapped range, an upper bound."""
    if returned(call.result) is None:
        return
    if b"MAP_ANON" in call.args:
        if thread.group.bounded:
            _covered(thread, number(call.result), number(split_args(call.args)[1]))
        return
    args = split_args(call.args)
    fd, note, _ = descriptor(args[4])
    ofd = lookup(st, thread, fd, note, call.t_ns) if fd >= 0 else None
    if ofd is None:
        return
    start, length = number(args[5]), number(args[1])
    shared = b"MAP_SHARED" in args[3]
    ops = _ops(args[2], shared=shared)
    for op in sorted(ops):
        access.mapped(st, thread, ofd, fd, op, start, length, call.t_ns)
    at = number(call.result)
    _covered(thread, at, length)
    if ofd.file.kind == "file" and len(thread.group.maps) < _MAX_MAPS:
        mapping = Mapping(ofd, fd, start, length, shared, ops)
        thread.group.maps[at] = mapping
        if "read" not in ops or (shared and "write" not in ops):
            thread.group.bounded[at] = mapping


def _ops(prot: bytes, *, shared: bool) -> frozenset[str]:
    """What a protection allows; writes to a private mapping stay with the process."""
    ops = {"read"} if b"PROT_READ" in prot or b"PROT_EXEC" in prot else set()
    if shared and b"PROT_WRITE" in prot:
        ops.add("write")
    return frozenset(ops)


def _covered(thread: Thread, at: int, length: int) -> None:
    """These addresses mean something else from now on."""
    bounded = thread.group.bounded
    for old in [a for a, m in bounded.items() if a < at + length and at < a + m.length]:
        del bounded[old]


def mprotect(st: State, thread: Thread, call: Call) -> None:
    """mprotect(addr, length, prot), pkey_mprotect: a mapped range that may be used otherwise."""
    bounded = thread.group.bounded
    if not bounded or returned(call.result) is None:
        return
    at, length, prot = split_args(call.args)[:3]
    low, high = number(at), number(at) + number(length)
    for address, m in bounded.items():
        first, last = max(low, address), min(high, address + m.length)
        new = _ops(prot, shared=m.shared) - m.ops
        if first < last:
            for op in sorted(new):
                start = m.start + first - address
                access.mapped(st, thread, m.ofd, m.fd, op, start, last - first, call.t_ns)


def mremap(st: State, thread: Thread, call: Call) -> None:
    """mremap(old, old_length, new_length, flags[, new]): the range that was added."""
    if returned(call.result) is None:
        return
    old, before, after = (number(a) for a in split_args(call.args)[:3])
    mapping = thread.group.maps.pop(old, None)
    if mapping is None:
        return
    at = number(call.result)
    _covered(thread, at, after)
    bounded = thread.group.bounded.pop(old, None)
    mapping = replace(mapping, length=after)
    thread.group.maps[at] = mapping
    if bounded is not None:
        thread.group.bounded[at] = mapping
    if after > before:
        start = mapping.start + before
        for op in sorted(mapping.ops):
            access.mapped(st, thread, mapping.ofd, mapping.fd, op, start, after - before, call.t_ns)


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
    kind = next((k for k in _CHANGING if k in mode), b"")
    if kind in (b"", b"ZERO_RANGE") and b"KEEP_SIZE" not in mode and rec.size is not None:
        rec.size = max(rec.size, start + length)
    if kind == b"ZERO_RANGE":
        if b"KEEP_SIZE" in mode and rec.size is not None:
            length = max(0, min(length, rec.size - start))
        access.write_at(st, thread, ofd, fd, start, length, "fallocate", call)
    elif kind in _SHIFTS:
        _shift(st, thread, ofd, fd, call, start, length if kind == b"INSERT_RANGE" else -length)
    elif kind:
        row = st.row(thread, ofd, fd, call.t_ns)
        access.cut(rec, row.proc)
        st.extent(row.proc, rec, "deallocate", "fallocate", start, length, call.t_ns, row.number)


def _shift(st: State, thread: Thread, ofd: Ofd, fd: int, call: Call, start: int, by: int) -> None:
    """All bytes from `start` on, or behind a piece cut out there, lie `by` further: a copy."""
    rec = ofd.file
    if rec.size is None:
        st.losses["unknown_calls", "fallocate of a file whose size is not known"] += 1
        return
    rec.size += by
    source, target = start + max(0, -by), start + max(0, by)
    n = rec.size - target
    row = st.row(thread, ofd, fd, call.t_ns)
    keep = ofd.offset
    access.read(st, thread, ofd, fd, source, n, "fallocate", call.t_ns, call.end_ns)
    ofd.offset = keep
    access.cut(rec, row.proc)
    access.write_at(st, thread, ofd, fd, target, n, "fallocate", call)
    if by > 0:
        st.extent(row.proc, rec, "deallocate", "fallocate", start, by, call.t_ns, row.number)
