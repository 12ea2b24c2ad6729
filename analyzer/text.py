"""Conversion of recorded names, which are bytes, to text that can be encoded as UTF-8."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa


def clean(raw: str) -> str:
    """Return the text with U+FFFD for undecodable bytes (surrogates)."""
    try:
        return raw.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
    except UnicodeEncodeError:
        return raw.encode("utf-8", "replace").decode("utf-8")


def texts(names: pa.ChunkedArray) -> tuple[pa.ChunkedArray, pa.ChunkedArray]:
    """Return binary names as text, and base64 of those that are not UTF-8 (else null)."""
    import pyarrow as pa

    try:
        return names.cast(pa.string()), pa.chunked_array([pa.nulls(len(names), pa.string())])
    except pa.ArrowInvalid:
        pass
    shown: list[str | None] = []
    exact: list[str | None] = []
    for raw in names.to_pylist():
        text, code = text_of(raw)
        shown.append(text)
        exact.append(code)
    return pa.chunked_array([pa.array(shown, pa.string())]), pa.chunked_array(
        [pa.array(exact, pa.string())]
    )


def text_of(raw: bytes | None) -> tuple[str | None, str | None]:
    """Return one name as text, and its base64 if it is not UTF-8."""
    if raw is None:
        return None, None
    try:
        return raw.decode("utf-8"), None
    except UnicodeDecodeError:
        return raw.decode("utf-8", "replace"), base64.b64encode(raw).decode("ascii")


def name_of(text: str, code: str | None) -> bytes:
    """Return the bytes of a name written by `text_of`."""
    if code is not None:
        return base64.b64decode(code)
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace")


def printable(text: str) -> str:
    """Return text for a terminal: control, format and other unprintable characters are escaped."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else _escape(c) for c in text)


def _escape(char: str) -> str:
    code = ord(char)
    return (
        f"\\x{code:02x}"
        if code < 0x100
        else f"\\u{code:04x}"
        if code < 0x10000
        else (f"\\U{code:08x}")
    )


def shorten_head(text: str, width: int) -> str:
    """Shorten text to at most `width` characters: a third from the start, the rest from the end."""
    if len(text) <= width:
        return text
    head = (width - 1) // 3
    return text[:head] + "…" + text[len(text) - (width - 1 - head) :]


def human_bytes(count: float) -> str:
    """Format bytes with a binary unit and three significant digits.

    >>> human_bytes(1536), human_bytes(0), human_bytes(-1023 * 1024)
    ('1.5 KiB', '0 B', '-1023 KiB')
    """
    value = float(count)
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if abs(value) < 1023.5:
            whole = unit == "B" or abs(value) >= 99.95
            return f"{value:.0f} {unit}" if whole else f"{value:.3g} {unit}"
        value /= 1024
    return f"{value:,.3g} PiB"


def human_seconds(seconds: float) -> str:
    """Format a duration, with three significant digits below a minute.

    >>> human_seconds(0.4213), human_seconds(12.3), human_seconds(0.0004)
    ('0.421 s', '12.3 s', '0.000 s')
    >>> human_seconds(75), human_seconds(245.0), human_seconds(4380)
    ('1 min 15 s', '4 min 05 s', '1 h 13 min')
    """
    if seconds < 59.95:
        return f"{seconds:.3f} s" if seconds < 0.01 else f"{seconds:#.3g} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest:02d} s"
    return f"{minutes // 60} h {minutes % 60:02d} min"
