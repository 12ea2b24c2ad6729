"""Decoding of strace's argument text: strings to bytes, descriptors, numbers, flags."""

from __future__ import annotations

import re

_ESCAPE = re.compile(rb"\\(x[0-9a-fA-F]{2}|[0-7]{1,3}|.)", re.DOTALL)
_SIMPLE = {
    b"n": b"\n", b"t": b"\t", b"r": b"\r", b"v": b"\v", b"f": b"\f", b"a": b"\a", b"b": b"\b",
}  # fmt: skip  # a table
# A descriptor's annotation (-y, -yy): strace escapes < and > inside paths.
ANNOTATION = (
    rb'<(?:[A-Z][\w-]*:\[(?:"(?:[^"\\]|\\.)*"|->|[^>"])*\]'
    rb"|(?:[^<>\\]|\\.)*(?:<[^<>]*>)?)>(?:\(deleted\))?"
)
_STRING = rb'"(?:[^"\\]|\\.)*"(?:\.\.\.)?'
_TOKEN = re.compile(
    _STRING + rb"|" + ANNOTATION + rb"|/\*.*?\*/|[(\[{]|[)\]}]|,|[^\"<,()\[\]{}/]+|.", re.DOTALL
)
_STRING_ONLY = re.compile(_STRING, re.DOTALL)
_NUMBER = re.compile(rb"-?(?:0x[0-9a-fA-F]+|\d+)")
_FD = re.compile(rb"(AT_FDCWD|-?(?:0x[0-9a-fA-F]+|\d+))(?:<(.*)>)?(\(deleted\))?$", re.DOTALL)
_DEVICE = re.compile(rb"<(?:char|block) [^<>]*>$")
AT_FDCWD = -100
LIMIT = 1 << 61  # of any number, so that sums fit into 64 bits
MAX_FD = 1 << 31
MAX_PID = 1 << 22  # PID_MAX_LIMIT of the kernel


class MalformedError(ValueError):
    """The text is not what strace prints for this call."""


def _one_escape(found: re.Match[bytes]) -> bytes:
    code = found[1]
    if code[:1] == b"x" and len(code) == 3:
        return bytes((int(code[1:], 16),))
    if code[:1].isdigit():
        return bytes((int(code, 8) & 0xFF,))
    return _SIMPLE.get(code, code)


def unescape(text: bytes) -> bytes:
    """The bytes that strace wrote as octal, hexadecimal or C escapes."""
    return _ESCAPE.sub(_one_escape, text) if b"\\" in text else text


def string(arg: bytes) -> bytes:
    """The bytes of a quoted argument; `"abc"...` gives what is there."""
    return string_cut(arg)[0]


def string_cut(arg: bytes) -> tuple[bytes, bool]:
    """The bytes of a quoted argument and whether strace cut it."""
    cut = arg.endswith(b'"...')
    body = arg[:-3] if cut else arg
    if len(body) < 2 or body[:1] != b'"' or body[-1:] != b'"':
        raise MalformedError(arg[:80])
    return unescape(body[1:-1]), cut


def split_args(args: bytes) -> list[bytes]:
    """Top-level arguments; commas inside strings, annotations and brackets do not count."""
    if not args:
        return []
    if b'"' not in args and b"<" not in args and b"[" not in args and b"{" not in args:
        return [a.strip() for a in args.split(b",")]
    out: list[bytes] = []
    depth, start = 0, 0
    for token in _TOKEN.finditer(args):
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
    """A leading decimal or hexadecimal number; comments after it are ignored."""
    found = _NUMBER.match(text)
    if found is None:
        raise MalformedError(text[:80])
    value = int(found[0], 0) if b"x" in found[0] else int(found[0])
    if not -LIMIT < value < LIMIT:
        raise MalformedError(text[:80])
    return value


def descriptor(arg: bytes) -> tuple[int, bytes | None, bool]:
    """Descriptor number, annotation (a path, `pipe:[1]`, ...) and whether it is marked deleted."""
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
    """Elements of `["a", "b"...]` and how many of them (or the list itself) were cut."""
    out, cut = [], 0
    for found in _STRING_ONLY.finditer(arg):
        value, short = string_cut(found[0])
        out.append(value)
        cut += short
    if arg.rstrip(b"]").endswith((b"...", b", ...")) and not arg.rstrip(b"]").endswith(b'"...'):
        cut += 1
    return out, cut


def flags(text: bytes) -> frozenset[bytes]:
    """`A|B|0x4` as a set of names; comments (`/* O_... */`) dropped."""
    return frozenset(part.strip() for part in text.split(b"/*", 1)[0].split(b"|"))


def pid_result(result: bytes) -> int:
    """A returned pid as strace's own namespace sees it (`5 /* 105 in strace's PID NS */`)."""
    inner = b"in strace's PID NS" in result
    pid = number(result.split(b"/*", 1)[1].strip() if inner else result)
    if not 0 < pid < MAX_PID:
        raise MalformedError(result[:80])
    return pid
