"""Calls that transfer or remove bytes: reads, writes, copies, mappings, truncations."""

from __future__ import annotations

import os
import re
from dataclasses import replace

from tracehint.collectors.strace import access
from tracehint.collectors.strace.finish import file_at, lookup
from tracehint.collectors.strace.handlers.common import head_fd, parse_result, path_at
from tracehint.collectors.strace.lexer import (
    LIMIT,
    Call,
    MalformedError,
    descriptor,
    number,
    split_args,
)
from tracehint.collectors.strace.model import Mapping, Ofd, Thread
from tracehint.collectors.strace.state import State

_BRACKET = re.compile(rb"\[(-?(?:0x[0-9a-f]+|\d+))")
_MINUS_ONE = b"0xffffffffffffffff"
_RWF_APPEND, _RWF_NOAPPEND = 0x10, 0x20
_MOVING = re.compile(
    rb"(?:p?readv?2?|pread64|p?writev?2?|pwrite64|sendfile(?:64)?|splice|copy_file_range)\((.*)",
    re.DOTALL,
)


def read(st: State, thread: Thread, call: Call) -> None:
    """read, readv: at the offset of the open description."""
    _at_position(st, thread, call, "read")


def write(st: State, thread: Thread, call: Call) -> None:
    """write, writev."""
    _at_position(st, thread, call, "write")


def _at_position(st: State, thread: Thread, call: Call, op: str) -> None:
    n = parse_result(call.result)
    fd, ofd = head_fd(st, thread, call.args, call.t_ns)
    if n is not None and ofd is not None:
        step = access.read if op == "read" else access.write
        step(st, thread, ofd, fd, None, n, op, call.t_ns, call.end_ns)
    elif n is not None:
        st.unknown_fd()
    elif call.result == b"?":
        count_unfinished(st, thread, call.args)


def pread(st: State, thread: Thread, call: Call) -> None:
    """pread64, preadv, preadv2: at an explicit offset."""
    _at_offset(st, thread, call, "read")


def pwrite(st: State, thread: Thread, call: Call) -> None:
    """pwrite64, pwritev, pwritev2."""
    _at_offset(st, thread, call, "write")


def _at_offset(st: State, thread: Thread, call: Call, op: str) -> None:
    n = parse_result(call.result)
    if n is None:
        if call.result == b"?":
            count_unfinished(st, thread, call.args)
        return
    fd, ofd = head_fd(st, thread, call.args, call.t_ns)
    if ofd is None:
        st.unknown_fd()
        return
    at, append = _offset(call)
    was = ofd.append
    ofd.append = was if append is None else append
    step = access.read if op == "read" else access.write
    before = ofd.offset
    step(st, thread, ofd, fd, at, n, op, call.t_ns, call.end_ns)
    if at is not None:
        ofd.offset = before  # positioned calls do not move the shared offset
    ofd.append = was


def _offset(call: Call) -> tuple[int | None, bool | None]:
    """Return the position argument (None: the shared offset) and whether to append (see _append).

    Decoded and raw output (`-e raw=...`) differ: raw preadv has a high half of the position.
    """
    name, args = call.name, call.args
    if name in (b"pread64", b"pwrite64", b"pread", b"pwrite"):
        if b'"' not in args and args.count(b",") == 4:  # raw, of a 32-bit program: two halves
            low, high = args.rsplit(b", ", 2)[1:]
            return number(low) | number(high) << 32, None
        return _position(args.rpartition(b",")[2]), None
    parts = args.rsplit(b", ", 3)
    raw = b"[" not in args
    if name in (b"preadv", b"pwritev"):
        at = number(parts[-2] if raw and args.count(b",") == 4 else parts[-1])
        return at, None
    how = parts[-1]
    where = parts[-3] if raw and args.count(b",") == 5 else parts[-2]
    append = _append(how)
    if where == b"-1" or where == _MINUS_ONE:
        return None, append
    return number(where), append


def _append(how: bytes) -> bool | None:
    """Return whether RWF flags (names or a number) set or clear O_APPEND; None: neither."""
    bits = int(how, 0) if how[:1].isdigit() else 0
    if b"RWF_APPEND" in how or bits & _RWF_APPEND:
        return True
    return False if b"RWF_NOAPPEND" in how or bits & _RWF_NOAPPEND else None


def count_interrupted(st: State, thread: Thread, call: Call) -> None:
    """Count a call in which the thread ended (`args`: `write(0x3, ...`): its bytes are unknown."""
    found = _MOVING.match(call.args)
    if found is not None:
        count_unfinished(st, thread, found[1])


def count_unfinished(st: State, thread: Thread, args: bytes) -> None:
    """Count a data transfer that never returned (`= ?`), if one of its descriptors is a file."""
    for arg in split_args(args)[:3]:
        digits = arg.partition(b"<")[0]
        ofd = thread.table.fds.get(number(digits)) if digits[:1].isdigit() else None
        if ofd is not None and ofd.file.kind == "file":
            st.losses["unknown_calls", "killed within a call that moves bytes of a file"] += 1
            return


def _position(text: bytes) -> int:
    """Parse a file offset; int() is faster than a regular expression, and this is a hot path."""
    at = int(text, 0)
    if not 0 <= at < LIMIT:
        raise MalformedError(text[:80])
    return at


def lseek(st: State, thread: Thread, call: Call) -> None:
    """lseek(fd, offset, whence): the result is the new offset; SEEK_END also reveals the size."""
    result = parse_result(call.result)
    _, ofd = head_fd(st, thread, call.args, call.t_ns)
    if result is None or ofd is None:
        return
    ofd.offset = result
    ofd.exact = True
    if call.args.endswith(b"SEEK_END") and ofd.file.size is None:
        ofd.file.size = result - number(call.args.rsplit(b", ", 2)[1])


def llseek(st: State, thread: Thread, call: Call) -> None:
    """_llseek(fd, offset, [result], whence) of 32-bit programs: the result is in the brackets."""
    found = _BRACKET.search(call.args)
    if parse_result(call.result) is None or found is None:
        return
    _, ofd = head_fd(st, thread, call.args, call.t_ns)
    if ofd is not None:
        ofd.offset, ofd.exact = number(found[1]), True


_SHIFTS = (b"COLLAPSE_RANGE", b"INSERT_RANGE")
_CHANGING = (b"ZERO_RANGE", b"PUNCH_HOLE", *_SHIFTS)
_MAX_MAPS = 65_536  # mappings per process that are kept for mremap


def mmap(st: State, thread: Thread, call: Call) -> None:
    """mmap(addr, length, prot, flags, fd, offset): the range is an upper bound of the accesses."""
    if parse_result(call.result) is None:
        return
    if b"MAP_ANON" in call.args:
        if thread.group.bounded:
            _cut_mappings(thread, number(call.result), number(split_args(call.args)[1]))
        return
    args = split_args(call.args)
    fd, note, _ = descriptor(args[4])
    ofd = lookup(st, thread, fd, note, call.t_ns) if fd >= 0 else None
    if ofd is None:
        return
    start, length = number(args[5]), number(args[1])
    shared = b"MAP_SHARED" in args[3]
    ops = _allowed_accesses(args[2], shared=shared)
    for op in sorted(ops):
        access.record_mapping(st, thread, ofd, fd, op, start, length, call.t_ns)
    at = number(call.result)
    _cut_mappings(thread, at, length)
    if ofd.file.kind == "file" and len(thread.group.maps) < _MAX_MAPS:
        mapping = Mapping(ofd, fd, start, length, shared, ops)
        thread.group.maps[at] = mapping
        if "read" not in ops or (shared and "write" not in ops):
            thread.group.bounded[at] = mapping


def _allowed_accesses(prot: bytes, *, shared: bool) -> frozenset[str]:
    """Return the accesses that a protection allows; private mappings do not write to the file."""
    ops = {"read"} if b"PROT_READ" in prot or b"PROT_EXEC" in prot else set()
    if shared and b"PROT_WRITE" in prot:
        ops.add("write")
    return frozenset(ops)


def _cut_mappings(thread: Thread, at: int, length: int) -> None:
    """Drop the bounded mappings that overlap a range of addresses that was mapped anew."""
    bounded = thread.group.bounded
    for old in [a for a, m in bounded.items() if a < at + length and at < a + m.length]:
        del bounded[old]


def mprotect(st: State, thread: Thread, call: Call) -> None:
    """mprotect(addr, length, prot), pkey_mprotect: record accesses that are newly allowed."""
    bounded = thread.group.bounded
    if not bounded or parse_result(call.result) is None:
        return
    at, length, prot = split_args(call.args)[:3]
    low, high = number(at), number(at) + number(length)
    for address, m in bounded.items():
        first, last = max(low, address), min(high, address + m.length)
        new = _allowed_accesses(prot, shared=m.shared) - m.ops
        if first < last:
            for op in sorted(new):
                start = m.start + first - address
                access.record_mapping(st, thread, m.ofd, m.fd, op, start, last - first, call.t_ns)


def mremap(st: State, thread: Thread, call: Call) -> None:
    """mremap(old, old_length, new_length, flags[, new]): record the added range."""
    if parse_result(call.result) is None:
        return
    old, before, after = (number(a) for a in split_args(call.args)[:3])
    mapping = thread.group.maps.pop(old, None)
    if mapping is None:
        return
    at = number(call.result)
    _cut_mappings(thread, at, after)
    bounded = thread.group.bounded.pop(old, None)
    mapping = replace(mapping, length=after)
    thread.group.maps[at] = mapping
    if bounded is not None:
        thread.group.bounded[at] = mapping
    if after > before:
        start = mapping.start + before
        for op in sorted(mapping.ops):
            access.record_mapping(
                st, thread, mapping.ofd, mapping.fd, op, start, after - before, call.t_ns
            )


def truncate(st: State, thread: Thread, call: Call) -> None:
    """truncate(path, size)."""
    if parse_result(call.result) is None:
        return
    path_arg, size = split_args(call.args)[:2]
    path = path_at(st, thread, None, path_arg, follow=True)
    proc = thread.group.epoch.proc
    rec, first = file_at(st, path, "file", proc, call.t_ns)
    if first:
        rec.existed = True
        st.name_row(proc, rec, "open", path, None, call.t_ns)
    rec.size = number(size)
    access.record_removal(rec, proc)
    st.extent(proc, rec, "truncate", "truncate", rec.size, 0, call.t_ns)


def ftruncate(st: State, thread: Thread, call: Call) -> None:
    """ftruncate(fd, size)."""
    fd, ofd = head_fd(st, thread, call.args, call.t_ns)
    if parse_result(call.result) is None or ofd is None:
        return
    size = number(call.args.rsplit(b", ", 1)[1])
    _cut_file(st, thread, ofd, fd, call, size)


def _cut_file(st: State, thread: Thread, ofd: Ofd, fd: int, call: Call, size: int) -> None:
    row = st.row(thread, ofd, fd, call.t_ns)
    access.record_removal(ofd.file, row.proc)
    ofd.file.size = size
    st.extent(row.proc, ofd.file, "truncate", "truncate", size, 0, call.t_ns, row.number)


def fallocate(st: State, thread: Thread, call: Call) -> None:
    """fallocate(fd, mode, offset, length): punched and zeroed ranges lose their bytes."""
    if parse_result(call.result) is None:
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
        access.record_removal(rec, row.proc)
        st.extent(row.proc, rec, "deallocate", "fallocate", start, length, call.t_ns, row.number)


def _shift(st: State, thread: Thread, ofd: Ofd, fd: int, call: Call, start: int, by: int) -> None:
    """Record as a copy that all bytes from `start`, or after a removed range, move by `by`."""
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
    access.record_removal(rec, row.proc)
    access.write_at(st, thread, ofd, fd, target, n, "fallocate", call)
    if by > 0:
        st.extent(row.proc, rec, "deallocate", "fallocate", start, by, call.t_ns, row.number)


# ioctls that exchange the bytes of two files, or let the kernel use a file as a block device.
_UNTRACKED_IOCTLS = re.compile(
    rb", (?:LOOP_SET_FD|LOOP_CONFIGURE|LOOP_CHANGE_FD|XFS_IOC_SWAPEXT|EXT4_IOC_MOVE_EXT)\b"
)
_FIELD = re.compile(rb"(\w+)=(?:\[)?([^,}\]]+)")
_IOCB_FIELD = re.compile(rb"(\w+)=([^,{}\"]*(?:\"(?:[^\"\\]|\\.)*\"(?:\.\.\.)?)?)", re.DOTALL)
_IOCB = re.compile(rb"\{aio_data=(?:[^{}\"]|\"(?:[^\"\\]|\\.)*\")*\}")


def copy_range(st: State, thread: Thread, call: Call) -> None:
    """copy_file_range and splice: (in, off_in, out, off_out, len, flags)."""
    n = _moved_bytes(st, thread, call)
    if n:
        args = split_args(call.args)
        how = call.name.decode()
        _copy_bytes(st, thread, call, args[0], args[1], args[2], args[3], n, how)


def sendfile(st: State, thread: Thread, call: Call) -> None:
    """sendfile(out, in, [offset], count)."""
    n = _moved_bytes(st, thread, call)
    if n:
        args = split_args(call.args)
        _copy_bytes(st, thread, call, args[1], args[2], args[0], b"NULL", n, "sendfile")


def tee(st: State, thread: Thread, call: Call) -> None:
    """tee(in, out, len, flags): copy from pipe to pipe; the input pipe keeps the bytes."""
    n = parse_result(call.result)
    if n:
        args = split_args(call.args)
        _copy_bytes(st, thread, call, args[0], b"NULL", args[1], b"NULL", n, "splice")


def vmsplice(st: State, thread: Thread, call: Call) -> None:
    """vmsplice(pipe, vectors, n, flags): memory into a pipe, or out of it."""
    n = parse_result(call.result)
    fd, note, _ = descriptor(split_args(call.args)[0])
    ofd = lookup(st, thread, fd, note, call.t_ns)
    if n and ofd is not None:
        step = access.write if ofd.flags & os.O_ACCMODE == os.O_WRONLY else access.read
        step(st, thread, ofd, fd, None, n, "splice", call.t_ns, call.end_ns)


def _moved_bytes(st: State, thread: Thread, call: Call) -> int:
    """Return the number of bytes moved; 0 if the call failed or never returned."""
    if call.result == b"?":
        count_unfinished(st, thread, call.args)
    return parse_result(call.result) or 0


def _copy_bytes(
    st: State,
    thread: Thread,
    call: Call,
    source: bytes,
    source_at: bytes,
    target: bytes,
    target_at: bytes,
    n: int,
    how: str,
) -> None:
    """Record a copy inside the kernel: a read of `source` and a write of `target`."""
    for arg, where, step in ((source, source_at, access.read), (target, target_at, access.write)):
        fd, note, _ = descriptor(arg)
        ofd = lookup(st, thread, fd, note, call.t_ns)
        if ofd is None:
            continue
        found = _BRACKET.search(where)
        at = number(found[1]) if found else None
        before = ofd.offset
        step(st, thread, ofd, fd, at, n, how, call.t_ns, call.end_ns)
        if at is not None:
            ofd.offset = before


def ioctl(st: State, thread: Thread, call: Call) -> None:
    """FICLONE, FICLONERANGE copy by sharing blocks; FIOCLEX, FIONCLEX set and clear FD_CLOEXEC."""
    if parse_result(call.result) is None:
        return
    if b"FIOCLEX" in call.args or b"FIONCLEX" in call.args:
        fd = descriptor(split_args(call.args)[0])[0]
        change = set.add if b"FIOCLEX" in call.args else set.discard
        change(thread.table.cloexec, fd)
    elif _UNTRACKED_IOCTLS.search(call.args):
        st.losses["unknown_calls", "ioctl that changes files"] += 1
    if b"FICLONE" not in call.args:
        return
    args = split_args(call.args)
    fd, note, _ = descriptor(args[0])
    target = lookup(st, thread, fd, note, call.t_ns)
    fields = dict(_FIELD.findall(args[2]))
    source_fd, source_note, _ = descriptor(fields.get(b"src_fd", args[2]))
    source = lookup(st, thread, source_fd, source_note, call.t_ns)
    if target is None or source is None:
        return
    start, to = number(fields.get(b"src_offset", b"0")), number(fields.get(b"dest_offset", b"0"))
    n = number(fields.get(b"src_length", b"0")) or max(0, (source.file.size or 0) - start)
    keep = source.offset, target.offset
    access.read(st, thread, source, source_fd, start, n, "clone", call.t_ns, call.end_ns)
    access.write(st, thread, target, fd, to, n, "clone", call.t_ns, call.end_ns)
    source.offset, target.offset = keep


def io_submit(st: State, thread: Thread, call: Call) -> None:
    """io_submit(ctx, n, [{...}]): record the accepted requests; their results are not logged."""
    taken = parse_result(call.result) or 0
    for found in list(_IOCB.finditer(call.args))[:taken]:
        fields = dict(_IOCB_FIELD.findall(found[0]))
        kind = fields.get(b"aio_lio_opcode", b"")
        if kind not in (b"IOCB_CMD_PREAD", b"IOCB_CMD_PWRITE"):
            st.losses["unknown_calls", "io_submit"] += 1
            continue
        taken -= 1
        fd, note, _ = descriptor(fields[b"aio_fildes"])
        ofd = lookup(st, thread, fd, note, call.t_ns)
        if ofd is None:
            continue
        at, n, size = number(fields[b"aio_offset"]), number(fields[b"aio_nbytes"]), ofd.file.size
        keep = ofd.offset
        if kind == b"IOCB_CMD_PREAD":
            n = n if size is None else max(0, min(n, size - at))
            access.read(st, thread, ofd, fd, at, n, "aio", call.t_ns, call.end_ns)
        else:
            access.write(st, thread, ofd, fd, at, n, "aio", call.t_ns, call.end_ns)
        ofd.offset = keep
