"""Calls that move bytes: read and write in all forms, copies inside the kernel, mappings."""

from __future__ import annotations

import re

from tracehint.collectors.strace import access
from tracehint.collectors.strace.decode import LIMIT, MalformedError, descriptor, number, split_args
from tracehint.collectors.strace.files import file_at, lookup
from tracehint.collectors.strace.handlers.common import head_fd, path_at, returned
from tracehint.collectors.strace.lexer import Call
from tracehint.collectors.strace.model import Ofd, Thread
from tracehint.collectors.strace.state import State

_BRACKET = re.compile(rb"\[(-?(?:0x[0-9a-f]+|\d+))")
_FIELD = re.compile(rb"(\w+)=(?:\[)?([^,}\]]+)")
_MINUS_ONE = b"0xffffffffffffffff"
_RWF_APPEND = 0x10
_MAX_MAPS = 65_536  # of one process, remembered for mremap
_IOCB_FIELD = re.compile(rb"(\w+)=([^,{}\"]*(?:\"(?:[^\"\\]|\\.)*\"(?:\.\.\.)?)?)", re.DOTALL)
_IOCB = re.compile(rb"\{aio_data=(?:[^{}\"]|\"(?:[^\"\\]|\\.)*\")*\}")


def read(st: State, thread: Thread, call: Call) -> None:
    """read, readv: at the offset of the open description."""
    n = returned(call.result)
    fd, ofd = head_fd(st, thread, call.args, call.t_ns)
    if n is not None and ofd is not None:
        access.read(st, thread, ofd, fd, None, n, "read", call.t_ns, call.end_ns)
    elif n is not None:
        st.unknown_fd()


def write(st: State, thread: Thread, call: Call) -> None:
    """write, writev."""
    n = returned(call.result)
    fd, ofd = head_fd(st, thread, call.args, call.t_ns)
    if n is not None and ofd is not None:
        access.write(st, thread, ofd, fd, None, n, "write", call.t_ns, call.end_ns)
    elif n is not None:
        st.unknown_fd()


def pread(st: State, thread: Thread, call: Call) -> None:
    """pread64, preadv, preadv2: at an offset of their own."""
    _at_offset(st, thread, call, "read")


def pwrite(st: State, thread: Thread, call: Call) -> None:
    """pwrite64, pwritev, pwritev2."""
    _at_offset(st, thread, call, "write")


def _at_offset(st: State, thread: Thread, call: Call, op: str) -> None:
    n = returned(call.result)
    if n is None:
        return
    fd, ofd = head_fd(st, thread, call.args, call.t_ns)
    if ofd is None:
        st.unknown_fd()
        return
    at, append = _offset(call)
    was = ofd.append
    ofd.append = was or append
    step = access.read if op == "read" else access.write
    before = ofd.offset
    step(st, thread, ofd, fd, at, n, op, call.t_ns, call.end_ns)
    if at is not None:
        ofd.offset = before  # positioned calls leave the shared offset alone
    ofd.append = was


def _offset(call: Call) -> tuple[int | None, bool]:
    """The position argument (None: the shared offset) and whether RWF_APPEND is given.

    Decoded and raw output (`-e raw=...`) differ: raw preadv has a high half of the position.
    """
    name, args = call.name, call.args
    if name in (b"pread64", b"pwrite64", b"pread", b"pwrite"):
        if b'"' not in args and args.count(b",") == 4:  # raw, of a 32-bit program: two halves
            low, high = args.rsplit(b", ", 2)[1:]
            return number(low) | number(high) << 32, False
        return _position(args.rpartition(b",")[2]), False
    parts = args.rsplit(b", ", 3)
    raw = b"[" not in args
    if name in (b"preadv", b"pwritev"):
        at = number(parts[-2] if raw and args.count(b",") == 4 else parts[-1])
        return at, False
    how = parts[-1]
    where = parts[-3] if raw and args.count(b",") == 5 else parts[-2]
    append = b"RWF_APPEND" in how or (how[:1].isdigit() and bool(int(how, 0) & _RWF_APPEND))
    if where == b"-1" or where == _MINUS_ONE:
        return None, append
    return number(where), append


def _position(text: bytes) -> int:
    """A file offset; int() is faster than a pattern, and this is a hot path."""
    at = int(text, 0)
    if not 0 <= at < LIMIT:
        raise MalformedError(text[:80])
    return at


def copy_file_range(st: State, thread: Thread, call: Call) -> None:
    """copy_file_range(in, off_in, out, off_out, len, flags)."""
    n = returned(call.result)
    if n:
        args = split_args(call.args)
        _moved(st, thread, call, args[0], args[1], args[2], args[3], n, "copy_file_range")


def splice(st: State, thread: Thread, call: Call) -> None:
    """splice(in, off_in, out, off_out, len, flags)."""
    n = returned(call.result)
    if n:
        args = split_args(call.args)
        _moved(st, thread, call, args[0], args[1], args[2], args[3], n, "splice")


def sendfile(st: State, thread: Thread, call: Call) -> None:
    """sendfile(out, in, [offset], count)."""
    n = returned(call.result)
    if n:
        args = split_args(call.args)
        _moved(st, thread, call, args[1], args[2], args[0], b"NULL", n, "sendfile")


def _moved(
    st: State, thread: Thread, call: Call, source: bytes, source_at: bytes, target: bytes,
    target_at: bytes, n: int, how: str,
) -> None:  # fmt: skip
    """Bytes that went from one descriptor to the other inside the kernel."""
    for arg, where, step in (
        (source, source_at, access.read), (target, target_at, access.write),
    ):  # fmt: skip
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


def lseek(st: State, thread: Thread, call: Call) -> None:
    """lseek(fd, offset, whence): its result is the offset, and with SEEK_END the size."""
    result = returned(call.result)
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
    if returned(call.result) is None or found is None:
        return
    _, ofd = head_fd(st, thread, call.args, call.t_ns)
    if ofd is not None:
        ofd.offset, ofd.exact = number(found[1]), True


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


def ioctl(st: State, thread: Thread, call: Call) -> None:
    """FICLONE and FICLONERANGE copy by sharing blocks; other requests move no file bytes."""
    if b"FICLONE" not in call.args or returned(call.result) is None:
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
    """io_submit(ctx, n, [{...}]): the requests that were taken; their results are not seen."""
    taken = returned(call.result) or 0
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
