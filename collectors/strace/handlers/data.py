"""read, write and lseek in all forms."""

from __future__ import annotations

import re

from tracehint.collectors.strace import access
from tracehint.collectors.strace.decode import LIMIT, MalformedError, number, split_args
from tracehint.collectors.strace.handlers.common import head_fd, returned
from tracehint.collectors.strace.lexer import Call
from tracehint.collectors.strace.model import Thread
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
    n = returned(call.result)
    fd, ofd = head_fd(st, thread, call.args, call.t_ns)
    if n is not None and ofd is not None:
        access.read(st, thread, ofd, fd, None, n, "read", call.t_ns, call.end_ns)
    elif n is not None:
        st.unknown_fd()
    elif call.result == b"?":
        unfinished(st, thread, call.args)


def write(st: State, thread: Thread, call: Call) -> None:
    """write, writev."""
    n = returned(call.result)
    fd, ofd = head_fd(st, thread, call.args, call.t_ns)
    if n is not None and ofd is not None:
        access.write(st, thread, ofd, fd, None, n, "write", call.t_ns, call.end_ns)
    elif n is not None:
        st.unknown_fd()
    elif call.result == b"?":
        unfinished(st, thread, call.args)


def pread(st: State, thread: Thread, call: Call) -> None:
    """pread64, preadv, preadv2: at an offset of their own."""
    _at_offset(st, thread, call, "read")


def pwrite(st: State, thread: Thread, call: Call) -> None:
    """pwrite64, pwritev, pwritev2."""
    _at_offset(st, thread, call, "write")


def _at_offset(st: State, thread: Thread, call: Call, op: str) -> None:
    n = returned(call.result)
    if n is None:
        if call.result == b"?":
            unfinished(st, thread, call.args)
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
        ofd.offset = before  # positioned calls leave the shared offset alone
    ofd.append = was


def _offset(call: Call) -> tuple[int | None, bool | None]:
    """The position argument (None: the shared offset) and what RWF_APPEND or RWF_NOAPPEND says.

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
    """What the flags of one call say about O_APPEND, as names or as a number; None: nothing."""
    bits = int(how, 0) if how[:1].isdigit() else 0
    if b"RWF_APPEND" in how or bits & _RWF_APPEND:
        return True
    return False if b"RWF_NOAPPEND" in how or bits & _RWF_NOAPPEND else None


def interrupted(st: State, thread: Thread, call: Call) -> None:
    """The thread ended within a call, `args` is `write(0x3, ...`: what it moved is not known."""
    found = _MOVING.match(call.args)
    if found is not None:
        unfinished(st, thread, found[1])


def unfinished(st: State, thread: Thread, args: bytes) -> None:
    """A call that moves bytes never returned (`= ?`): count it when a file is concerned."""
    for arg in split_args(args)[:3]:
        digits = arg.partition(b"<")[0]
        ofd = thread.table.fds.get(number(digits)) if digits[:1].isdigit() else None
        if ofd is not None and ofd.file.kind == "file":
            st.losses["unknown_calls", "killed within a call that moves bytes of a file"] += 1
            return


def _position(text: bytes) -> int:
    """A file offset; int() is faster than a pattern, and this is a hot path."""
    at = int(text, 0)
    if not 0 <= at < LIMIT:
        raise MalformedError(text[:80])
    return at


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
