"""Helpers shared by all handlers."""

from __future__ import annotations

import re

from tracehint.collectors.strace.finish import absolute, lookup, real
from tracehint.collectors.strace.lexer import (
    ANNOTATION,
    AT_FDCWD,
    LIMIT,
    MAX_FD,
    MalformedError,
    descriptor,
    number,
    string,
)
from tracehint.collectors.strace.model import Ofd, Thread
from tracehint.collectors.strace.state import State

_HEAD_FD = re.compile(rb"(-?\d+)(?:" + ANNOTATION + rb")?", re.DOTALL)


def parse_result(result: bytes) -> int | None:
    """Return the call's result; None if it failed or never returned (`= ?`)."""
    try:
        value = int(result, 0)
    except ValueError:
        first = result[:1]
        if first == b"?" or not first:
            return None
        value = number(result)
    if value >= LIMIT:
        raise MalformedError(result[:80])
    return value if value >= 0 else None


def head_fd(st: State, thread: Thread, args: bytes, t_ns: int) -> tuple[int, Ofd | None]:
    """Return the descriptor in the first argument and its open description, if known."""
    first = args.partition(b",")[0]
    try:
        fd = int(first, 0)
    except ValueError:
        return _lookup_annotation(st, thread, args, first, t_ns)
    if not -MAX_FD < fd < MAX_FD:
        raise MalformedError(first[:80])
    return fd, thread.table.fds.get(fd)


def _lookup_annotation(
    st: State, thread: Thread, args: bytes, first: bytes, t_ns: int
) -> tuple[int, Ofd | None]:
    """Look up `3</path>`: decoded once per open description, then compared as bytes."""
    digits = first.partition(b"<")[0]
    if digits.isdigit() and len(digits) < 8:
        ofd = thread.table.fds.get(int(digits))
        if ofd is not None and ofd.text == first:
            return int(digits), ofd
    found = _HEAD_FD.match(args)
    fd, note, _ = descriptor(found[0] if found else first)
    ofd = lookup(st, thread, fd, note, t_ns)
    if ofd is not None and first[-1:] == b">" and found is not None and found[0] == first:
        ofd.text = first
    return fd, ofd


def directory(thread: Thread, dirfd: bytes) -> bytes | None:
    """Return the path of a `dirfd` argument; None if it is unknown."""
    fd, note, _ = descriptor(dirfd)
    if fd == AT_FDCWD:
        if note is not None and note != thread.fs.cwd:
            thread.fs.cwd = note
        return thread.fs.cwd or None
    if note is not None and note[:1] == b"/":
        return note
    ofd = thread.table.fds.get(fd)
    return ofd.path if ofd is not None else None


def path_at(
    st: State, thread: Thread, dirfd: bytes | None, arg: bytes, *, follow: bool = False
) -> bytes:
    """Return the absolute path of a path argument, symbolic links resolved as far as known."""
    folder = directory(thread, dirfd) if dirfd is not None else None
    return real(st, absolute(thread, string(arg), folder), follow=follow)
