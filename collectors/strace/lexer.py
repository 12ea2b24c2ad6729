"""Parse the bytes of a strace log to calls: one compiled pattern per line, one call per event.

Supports the prefixes that strace's options add (`[pid N]`, `N`, `-t`, `-tt`,
`-ttt`, `-r`, `-i`, `-n`), the suffix of `-T`, and joins `<unfinished ...>` with
`<... resumed>` lines. Memory is bounded: one unfinished call per thread.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from tracehint.limits import limit

_ESCAPE = re.compile(rb"\\(x[0-9a-fA-F]{2}|[0-7]{1,3}|.)", re.DOTALL)
_SIMPLE = {
    b"n": b"\n",
    b"t": b"\t",
    b"r": b"\r",
    b"v": b"\v",
    b"f": b"\f",
    b"a": b"\a",
    b"b": b"\b",
}
# A descriptor's annotation (-y, -yy): strace escapes < and > inside paths.
ANNOTATION = (
    rb'<(?:[A-Z][\w-]*:\[(?:"(?:[^"\\]|\\.)*"|->|[^>"])*\]'
    rb"|(?:[^<>\\]|\\.)*(?:<[^<>]*>)?)>(?:\(deleted\))?"
)
_STRING = rb'"(?:[^"\\]|\\.)*"(?:\.\.\.)?'
_ARGUMENT_TOKEN = re.compile(
    _STRING + rb"|" + ANNOTATION + rb"|/\*.*?\*/|[(\[{]|[)\]}]|,|[^\"<,()\[\]{}/]+|.", re.DOTALL
)
_STRING_ONLY = re.compile(_STRING, re.DOTALL)
_NUMBER = re.compile(rb"-?(?:0x[0-9a-fA-F]+|\d+)")
_FD = re.compile(rb"(AT_FDCWD|-?(?:0x[0-9a-fA-F]+|\d+))(?:<(.*)>)?(\(deleted\))?$", re.DOTALL)
_DEVICE = re.compile(rb"<(?:char|block) [^<>]*>$")
AT_FDCWD = -100
LIMIT = 1 << 61  # bound of every number, so that sums fit into 64 bits
MAX_FD = 1 << 31
MAX_PID = 1 << 22  # PID_MAX_LIMIT of the kernel


class MalformedError(ValueError):
    """The text does not have strace's format for this call."""


def _one_escape(found: re.Match[bytes]) -> bytes:
    code = found[1]
    if code[:1] == b"x" and len(code) == 3:
        return bytes((int(code[1:], 16),))
    if code[:1].isdigit():
        return bytes((int(code, 8) & 0xFF,))
    return _SIMPLE.get(code, code)


def unescape(text: bytes) -> bytes:
    """Decode strace's octal, hexadecimal and C escapes."""
    return _ESCAPE.sub(_one_escape, text) if b"\\" in text else text


def string(arg: bytes) -> bytes:
    """Return the bytes of a quoted argument; of `"abc"...`, the printed part."""
    return string_cut(arg)[0]


def string_cut(arg: bytes) -> tuple[bytes, bool]:
    """Return the bytes of a quoted argument and whether strace cut it."""
    cut = arg.endswith(b'"...')
    body = arg[:-3] if cut else arg
    if len(body) < 2 or body[:1] != b'"' or body[-1:] != b'"':
        raise MalformedError(arg[:80])
    return unescape(body[1:-1]), cut


def split_args(args: bytes) -> list[bytes]:
    """Split top-level arguments, ignoring commas inside strings, annotations and brackets."""
    if not args:
        return []
    if b'"' not in args and b"<" not in args and b"[" not in args and b"{" not in args:
        return [a.strip() for a in args.split(b",")]
    out: list[bytes] = []
    depth, start = 0, 0
    for token in _ARGUMENT_TOKEN.finditer(args):
        piece = token[0]
        if piece == b",":
            if depth == 0:
                out.append(args[start : token.start()].strip())
                start = token.end()
        elif piece in (b"(", b"[", b"{"):
            depth += 1
        elif piece in (b")", b"]", b"}"):
            depth -= 1
    out.append(args[start:].strip())
    return out


def number(text: bytes) -> int:
    """Parse a leading decimal or hexadecimal number; the text after it is ignored."""
    found = _NUMBER.match(text)
    if found is None:
        raise MalformedError(text[:80])
    value = int(found[0], 0) if b"x" in found[0] else int(found[0])
    if not -LIMIT < value < LIMIT:
        raise MalformedError(text[:80])
    return value


def descriptor(arg: bytes) -> tuple[int, bytes | None, bool]:
    """Return descriptor number, annotation (path, `pipe:[1]`, ...) and whether marked deleted."""
    if b"<" not in arg:
        fd = AT_FDCWD if arg == b"AT_FDCWD" else number(arg)
        if not -MAX_FD < fd < MAX_FD:
            raise MalformedError(arg[:80])
        return fd, None, False
    found = _FD.match(arg)
    if found is None:
        raise MalformedError(arg[:80])
    fd = AT_FDCWD if found[1] == b"AT_FDCWD" else int(found[1], 0)
    if not -MAX_FD < fd < MAX_FD:
        raise MalformedError(arg[:80])
    note = found[2]
    if note is not None:
        note = unescape(_DEVICE.sub(b"", note))
    return fd, note, found[3] is not None


def strings(arg: bytes) -> tuple[list[bytes], int]:
    """Return the elements of `["a", "b"...]` and how many of them (or the list) were cut."""
    out, cut = [], 0
    for found in _STRING_ONLY.finditer(arg):
        value, short = string_cut(found[0])
        out.append(value)
        cut += short
    if arg.rstrip(b"]").endswith((b"...", b", ...")) and not arg.rstrip(b"]").endswith(b'"...'):
        cut += 1
    return out, cut


def flags(text: bytes) -> frozenset[bytes]:
    """Return `A|B|0x4` as a set of names; comments (`/* O_... */`) are dropped."""
    return frozenset(part.strip() for part in text.split(b"/*", 1)[0].split(b"|"))


def pid_result(result: bytes) -> int:
    """Return a pid result in strace's own namespace (`5 /* 105 in strace's PID NS */`)."""
    inner = b"in strace's PID NS" in result
    pid = number(result.split(b"/*", 1)[1].strip() if inner else result)
    if not 0 < pid < MAX_PID:
        raise MalformedError(result[:80])
    return pid


_DAY_NS = 86_400 * 10**9
_PID_LIMIT = 1 << 22  # kernel's PID_MAX_LIMIT: a larger leading number is a time in seconds

_PREFIX = (
    rb" *(?:\[pid +(\d{1,7})\] +|(\d+) +)?"
    rb"(?:(\d+\.\d+|\d\d:\d\d:\d\d(?:\.\d+)?) +)?(?:\(\+ +\d+\.\d+\) +)?"
    rb"(?:\[ *[0-9a-f?]+\] +)*"
)
_CALL = re.compile(_PREFIX + rb"([a-z_]\w*)\((.*)\) += ([^\n]*)\n?")
_OTHER = re.compile(_PREFIX + rb"([^\n]*)\n?")
_BODY = re.compile(rb"([a-z_]\w*)\((.*)\) += ([^\n]*)")
_UNFINISHED = re.compile(
    rb"([a-z_]\w*)\((.*?)\s*<(?:unfinished|detached|pid changed to \d+) \.\.\.>(?:\) += \?.*)?$"
)
_RESUMED = re.compile(rb"<\.\.\. ([a-z_]\w*) resumed>(.*)$")
_EXIT = re.compile(rb"\+\+\+ (exited with|killed by|superseded by execve in pid) (\w+).*\+\+\+")
_DEAD = (b"???(", b"<... ??? resumed>")  # strace could no longer read which call it was
_DURATION = re.compile(rb" +<\d+\.\d+>$")
_EQUALS = re.compile(rb"\) +=")
# Tokens between the parentheses, to find the true end of the arguments.
_TOKEN = re.compile(
    rb'"(?:[^"\\]|\\.)*"|<(?:[A-Z][\w-]*:\[(?:->|[^>])*\]|(?:[^<>\\]|\\.)*(?:<[^<>]*>)?)>'
    rb"|[(\[{]|[)\]}]|[^\"<()\[\]{}]+|.",
    re.DOTALL,
)


Begun = tuple[int, bytes, bytes]  # time, name and arguments of a call that has not returned


class Call(NamedTuple):
    """One event. `kind`: call, start (an unfinished call begins), done (close resumed), exit.

    `args` of an exit: the call in progress, `write(0x3, ...`.
    """

    kind: str
    tid: int
    t_ns: int  # when the call began
    end_ns: int  # time of the resumed line; t_ns if the line is not split
    name: bytes
    args: bytes
    result: bytes
    line: int = 0


@dataclass
class LexStats:
    """Lines read, lines rejected, and the format of the log."""

    lines: int = 0
    bad: int = 0
    bad_lines: list[str] = field(default_factory=list)  # the first ones only
    clock: str = "none"  # none, unix, daytime, relative
    per_process: bool = False  # `-ff`: line numbers need the process

    def reject(self, tid: int, number: int) -> None:
        """Count a line that could not be parsed."""
        self.bad += 1
        if len(self.bad_lines) < 20:
            self.bad_lines.append(f"{tid}:{number}" if self.per_process else str(number))


class LogClock:
    """Converts the time column to nanoseconds; tracks day wraps and relative sums."""

    def __init__(self, stats: LexStats) -> None:
        self._stats = stats
        self._now = 0
        self._last_day = 0
        self._wraps = 0

    def read(self, text: bytes | None) -> int:
        """Return ns since the epoch (unix), since midnight (daytime) or since the start (else)."""
        if text is None:
            self._now += 1000  # no clock: keep the order, a microsecond apart
            return self._now
        if b":" in text:
            self._stats.clock = "daytime"
            h, m, s = text.split(b":")
            now = (int(h) * 3600 + int(m) * 60) * 10**9 + _fraction(s)
            if now + _DAY_NS // 2 < self._last_day:
                self._wraps += 1
            self._last_day = now
            self._now = now + self._wraps * _DAY_NS
            return self._now
        value = _fraction(text)
        if value < 10**8 * 10**9:  # before 1973: `-r`, the time since the previous line
            self._stats.clock = "relative"
            self._now += value
            return self._now
        self._stats.clock = "unix"
        self._now = value
        return value


def _fraction(text: bytes) -> int:
    """Convert `12.345` seconds to nanoseconds, exactly."""
    whole, _, part = text.partition(b".")
    if len(whole) > 10:
        raise ValueError("a time beyond the year 2286")
    return int(whole) * 10**9 + (int(part[:9].ljust(9, b"0")) if part else 0)


def lex(lines: Iterable[bytes], stats: LexStats, *, tid: int = 0) -> Iterator[Call]:
    """Yield the calls of a log in its order. `tid`: thread of lines without a pid (`-ff` files)."""
    clock = LogClock(stats)
    read_clock = clock.read
    pending: dict[int, Begun] = {}
    match = _CALL.match
    number = 0
    for line in lines:
        number += 1
        stats.lines += 1
        found = match(line)
        if found is None:
            try:
                yield from _lex_other(line, number, stats, clock, pending, tid)
            except ValueError:  # a time or pid out of bounds
                stats.reject(tid, number)
            continue
        bracket, plain, stamp, name, args, result = found.groups()
        pid = bracket or plain
        if plain is not None and len(plain) > 6 and int(plain) > _PID_LIMIT:
            if stamp is not None:
                stats.reject(tid, number)
                continue
            stamp, pid = plain + b".0", None
        if b") " in args and _EQUALS.search(args):
            args, result = _resplit_call(args, result)
        if result[-1:] == b">" and b" <" in result:
            result = _DURATION.sub(b"", result)
        try:
            now = read_clock(stamp)
        except ValueError:
            stats.reject(tid, number)
            continue
        thread = int(pid) if pid else tid
        yield Call("call", thread, now, now, name, args, result, number)


def _lex_other(
    line: bytes, number: int, stats: LexStats, clock: LogClock, pending: dict[int, Begun], tid: int
) -> Iterator[Call]:
    """Handle a line that is not a complete call: split calls, exits, signals, noise."""
    found = _OTHER.match(line)
    bracket, plain, stamp, body = found.groups() if found else (None, None, None, b"")
    pid = bracket or plain
    if plain is not None and int(plain) > _PID_LIMIT:
        if stamp is not None:
            raise ValueError("a pid beyond the kernel's limit")
        stamp, pid = plain + b".0", None
    thread = int(pid) if pid else tid
    if body.startswith(_DEAD):
        return  # the thread was killed before it could begin a call
    if body.startswith(b"<... "):
        begun, end = pending.pop(thread, None), clock.read(stamp)
        yield from _complete_call(body, begun, thread, end, number, stats)
    elif begun_now := _UNFINISHED.match(body):
        now = clock.read(stamp)
        if len(pending) < limit("strace-pending"):
            pending[thread] = (now, begun_now[1], begun_now[2])
        yield Call("start", thread, now, now, begun_now[1], begun_now[2], b"", number)
    elif body.startswith(b"+++ "):
        ended = _EXIT.match(body)
        if ended is None:
            stats.reject(thread, number)
            return
        under_way = _pop_interrupted(ended, thread, pending)
        now = clock.read(stamp)
        yield Call("exit", thread, now, now, ended[1], under_way, ended[2], number)
    elif body.startswith((b"--- ", b"strace: ", b"> ")) or not body.strip():
        return  # a signal, strace's own message, a stack trace of -k
    else:
        stats.reject(thread, number)


def _complete_call(
    body: bytes, begun: Begun | None, thread: int, end: int, number: int, stats: LexStats
) -> Iterator[Call]:
    """Yield the call that this resumed line completes."""
    resumed = _RESUMED.match(body)
    if resumed is None or begun is None or begun[1] != resumed[1]:
        stats.reject(thread, number)
        return
    start, name, head = begun
    text = name + b"(" + head + resumed[2]
    whole = _BODY.match(text)
    if whole is None:
        if not text.endswith(b"= ?"):
            stats.reject(thread, number)
        return
    args, result = whole[2], _DURATION.sub(b"", whole[3])
    if b") " in args and _EQUALS.search(args):
        args, result = _resplit_call(args, result)
    kind = "done" if name == b"close" else "call"  # the start event had all values
    yield Call(kind, thread, start, end, name, args, result, number)


def _pop_interrupted(ended: re.Match[bytes], thread: int, pending: dict[int, Begun]) -> bytes:
    """Return the call in progress when a thread ended; after exec, the leader's tid inherits it."""
    if ended[1].startswith(b"superseded"):
        caller = pending.pop(int(ended[2]), None)  # continues with the leader's tid
        if caller is not None:
            pending[thread] = caller
        return b""
    begun = pending.pop(thread, None)
    return begun[1] + b"(" + begun[2] if begun else b""


def _resplit_call(args: bytes, result: bytes) -> tuple[bytes, bytes]:
    """Split `args) = result` again at its true end: a name in it may contain `) =` itself."""
    text = args + b") = " + result
    depth = 0
    for token in _TOKEN.finditer(text):
        piece = token[0]
        if piece in (b"(", b"[", b"{"):
            depth += 1
        elif piece in (b")", b"]", b"}"):
            if depth == 0:
                rest = text[token.end() :].lstrip()
                return text[: token.start()], rest[1:].lstrip()
            depth -= 1
    return args, result
