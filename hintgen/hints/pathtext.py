"""Lossless conversion of paths (bytes) to printable text and back.

Printable UTF-8 is unchanged; a backslash is doubled; every other byte (control
characters, bidirectional marks, invalid UTF-8) becomes `\\xNN`. The result is
safe on a terminal, in JSON and in a comment.
"""

from __future__ import annotations

import re

from tracehint.errors import InputError

_ESCAPE = re.compile(r"\\(\\|\{|\}|x[0-9a-f]{2})")


def to_text(path: bytes, *, braces: bool = False) -> str:
    """Return `path` as printable text; with `braces`, escape `{` and `}` too (for templates)."""
    text = path.decode("utf-8", "surrogateescape")
    if text.isprintable() and "\\" not in text and not (braces and ("{" in text or "}" in text)):
        return text
    out: list[str] = []
    for char in text:
        if char == "\\" or (braces and char in "{}"):
            out.append("\\" + char)
        elif char.isprintable():
            out.append(char)
        else:
            raw = char.encode("utf-8", "surrogateescape")
            out.append("".join(f"\\x{byte:02x}" for byte in raw))
    return "".join(out)


def to_bytes(text: str) -> bytes:
    """Invert `to_text`. Raises InputError for an escape that `to_text` never writes."""
    out = bytearray()
    at = 0
    while at < len(text):
        if text[at] == "\\":
            found = _ESCAPE.match(text, at)
            if found is None:
                raise InputError(f"bad escape in {text[:80]!r}", "Write the hint file again.")
            code = found.group(1)
            out += bytes([int(code[1:], 16)]) if code[0] == "x" else code.encode()
            at = found.end()
            continue
        try:
            out += text[at].encode()
        except UnicodeEncodeError as error:
            raise InputError(f"bad character in {text[:80]!r}", "Use \\xNN.") from error
        at += 1
    return bytes(out)
