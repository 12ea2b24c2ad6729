"""Bytes that move inside the kernel: copies, splices, clones, libaio."""

from __future__ import annotations

import os
import re

from tracehint.collectors.strace import access
from tracehint.collectors.strace.decode import descriptor, number, split_args
from tracehint.collectors.strace.files import lookup
from tracehint.collectors.strace.handlers.common import returned
from tracehint.collectors.strace.handlers.data import unfinished
from tracehint.collectors.strace.lexer import Call
from tracehint.collectors.strace.model import Thread
from tracehint.collectors.strace.state import State

# Whole files exchange their bytes, or the kernel reads and writes one as a disk from now on.
_UNFOLLOWED = re.compile(
    rb", (?:LOOP_SET_FD|LOOP_CONFIGURE|LOOP_CHANGE_FD|XFS_IOC_SWAPEXT|EXT4_IOC_MOVE_EXT)\b"
)
_BRACKET = re.compile(rb"\[(-?(?:0x[0-9a-f]+|\d+))")
_FIELD = re.compile(rb"(\w+)=(?:\[)?([^,}\]]+)")
_IOCB_FIELD = re.compile(rb"(\w+)=([^,{}\"]*(?:\"(?:[^\"\\]|\\.)*\"(?:\.\.\.)?)?)", re.DOTALL)
_IOCB = re.compile(rb"\{aio_data=(?:[^{}\"]|\"(?:[^\"\\]|\\.)*\")*\}")


def copy_file_range(st: State, thread: Thread, call: Call) -> None:
    """copy_file_range(in, off_in, out, off_out, len, flags)."""
    n = _moved_bytes(st, thread, call)
    if n:
        args = split_args(call.args)
        _moved(st, thread, call, args[0], args[1], args[2], args[3], n, "copy_file_range")


def splice(st: State, thread: Thread, call: Call) -> None:
    """splice(in, off_in, out, off_out, len, flags)."""
    n = _moved_bytes(st, thread, call)
    if n:
        args = split_args(call.args)
        _moved(st, thread, call, args[0], args[1], args[2], args[3], n, "splice")


def sendfile(st: State, thread: Thread, call: Call) -> None:
    """sendfile(out, in, [offset], count)."""
    n = _moved_bytes(st, thread, call)
    if n:
        args = split_args(call.args)
        _moved(st, thread, call, args[1], args[2], args[0], b"NULL", n, "sendfile")


def tee(st: State, thread: Thread, call: Call) -> None:
    """tee(in, out, len, flags): from pipe to pipe, the bytes stay in the first one as well."""
    n = returned(call.result)
    if n:
        args = split_args(call.args)
        _moved(st, thread, call, args[0], b"NULL", args[1], b"NULL", n, "splice")


def vmsplice(st: State, thread: Thread, call: Call) -> None:
    """vmsplice(pipe, vectors, n, flags): memory into a pipe, or out of it."""
    n = returned(call.result)
    fd, note, _ = descriptor(split_args(call.args)[0])
    ofd = lookup(st, thread, fd, note, call.t_ns)
    if n and ofd is not None:
        step = access.write if ofd.flags & os.O_ACCMODE == os.O_WRONLY else access.read
        step(st, thread, ofd, fd, None, n, "splice", call.t_ns, call.end_ns)


def _moved_bytes(st: State, thread: Thread, call: Call) -> int:
    """What the call returned; 0 where it failed or never returned."""
    if call.result == b"?":
        unfinished(st, thread, call.args)
    return returned(call.result) or 0


def _moved(
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
    """Bytes that went from one descriptor to the other inside the kernel."""
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
    """FICLONE and FICLONERANGE copy by sharing blocks; FIOCLEX is a way to say FD_CLOEXEC."""
    if returned(call.result) is None:
        return
    if b"FIOCLEX" in call.args or b"FIONCLEX" in call.args:
        fd = descriptor(split_args(call.args)[0])[0]
        change = set.add if b"FIOCLEX" in call.args else set.discard
        change(thread.table.cloexec, fd)
    elif _UNFOLLOWED.search(call.args):
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
