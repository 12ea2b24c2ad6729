"""Escaping of text from traces: one function per output format, and no output without one.

Names in a trace are arbitrary bytes, chosen by the user of the workflow. `text`
converts them to visible text (without control, invisible and direction-changing
characters); the other functions quote this text for one format each. All are
pure functions, safe on any input.
"""

from __future__ import annotations

import json
import re
import unicodedata
from typing import Any

# Control, format (bidi, zero width), surrogate, private, unassigned, line and paragraph separator.
_INVISIBLE = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
_COMMENT_UNSAFE = re.compile(r"[^A-Za-z0-9 ._/+=,:@%*{}()\[\]<>|~^'-]|(?<![a-z])'|'(?![a-z])")


def text(value: str | bytes) -> str:
    """Return visible text: bytes that are not UTF-8 become `\\xNN`, invisible characters `\\uNNNN`.

    >>> text(b"a\\xffb")
    'a\\\\xffb'
    >>> text("a\\x1b[31m")
    'a\\\\x1b[31m'
    """
    if isinstance(value, bytes):
        value = value.decode("utf-8", "backslashreplace")
    if value.isascii() and value.isprintable():
        return value
    return "".join(c if _visible(c) else _code(c) for c in value)


def _visible(char: str) -> bool:
    return unicodedata.category(char) not in _INVISIBLE


def _code(char: str) -> str:
    point = ord(char)
    if 0xDC80 <= point <= 0xDCFF:  # a surrogate-escaped byte
        return f"\\x{point - 0xDC00:02x}"
    if point < 0x100:
        return f"\\x{point:02x}"
    return f"\\u{point:04x}" if point < 0x10000 else f"\\U{point:08x}"


terminal = text


def shorten(value: str, width: int) -> str:
    """Shorten to `width` characters, by a cut in the middle, where names differ least.

    >>> shorten("projected_image_0001.fits", 15)
    'project…01.fits'
    """
    if len(value) <= width:
        return value
    tail = (width - 1) // 2
    return value[: width - 1 - tail] + "…" + value[len(value) - tail :]


def dot(value: str | bytes) -> str:
    """Return a double-quoted DOT string; Graphviz's label escapes (`\\N`, `\\l`) are disabled.

    >>> dot('a"b')
    '"a\\\\"b"'
    """
    return '"' + dot_part(value) + '"'


def dot_part(value: str | bytes) -> str:
    """Return the inside of a DOT string, so that a caller may join several with its own `\\n`.

    `&` is written as an entity because Graphviz decodes entities in labels.
    """
    shown = text(value).replace("\\", "\\\\").replace('"', '\\"')
    return shown.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def xml(value: str | bytes) -> str:
    """Escape text or an attribute value of XML 1.0 or HTML (quotes included).

    >>> xml('<a b="c">')
    '&lt;a b=&quot;c&quot;&gt;'
    """
    shown = text(value).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return shown.replace('"', "&quot;").replace("'", "&#x27;")


html = xml


def github(value: str | bytes) -> str:
    """Escape the message of a GitHub workflow command.

    >>> github("50% ::error::x")
    '50%25 ::error::x'
    """
    return text(value).replace("%", "%25")


def github_property(value: str | bytes) -> str:
    """Escape a property (`title=`, `file=`) of a GitHub workflow command."""
    return github(value).replace(":", "%3A").replace(",", "%2C")


def comment(value: str | bytes) -> str:
    """Return one line for a comment of a generated script; characters not allow-listed become `?`.

    >>> comment("$(rm -rf x)\\n`y`")
    '?(rm -rf x)?x0a?y?'
    >>> comment("a file's reader, 'quoted'")
    "a file's reader, ?quoted?"
    """
    return _COMMENT_UNSAFE.sub("?", text(value))


def json_in_script(value: Any) -> str:
    """Return JSON for a `<script type="application/json">` element, without any `<`.

    >>> json_in_script("</script>")
    '"\\\\u003c/script\\\\u003e"'
    """
    raw = json.dumps(value, ensure_ascii=True, separators=(",", ":"), allow_nan=False)
    return raw.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def uri(value: str | bytes) -> str:
    """Return a relative URI reference of a path; bytes outside the unreserved set are `%NN`."""
    from urllib.parse import quote

    raw = value if isinstance(value, bytes) else value.encode("utf-8", "surrogateescape")
    return quote(raw, safe="/")
