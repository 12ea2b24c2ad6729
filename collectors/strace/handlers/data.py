"""read, write and lseek in all forms."""

from __future__ import annotations

import re

from tracehint.collectors.strace import access
from tracehint.collectors.strace.decode import LIMIT, MalformedError, number
from tracehint.collectors.strace.handlers.common import head_fd, returned
from tracehint.collectors.strace.lexer import Call
from tracehint.collectors.strace.model import Thread
from tracehint.collectors.strace.state import State

_BRACKET = re.compile(rb"\[(-?(?:0x[0-9a-f]+|\d+))")
_MINUS_ONE = b"0xffffffffffffffff"
_RWF_APPEND = 0x10


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
