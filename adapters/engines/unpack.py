"""Reading of engines' files, packed or not, within limits: as text, lines or JSON."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
from pathlib import Path
from typing import IO, Any

from tracehint.errors import InputError
from tracehint.limits import check, limit, limit_error, values_of

_PACKED: dict[bytes, Any] = {b"\x1f\x8b": gzip.open, b"BZh": bz2.open, b"\xfd7zXZ\x00": lzma.open}
_ALWAYS_ALLOWED = 64 << 20  # unpacked bytes allowed for a file of any size


class _Counted(io.RawIOBase):
    """Unpacked data of a file; raises InputError if it is too large for the packed size."""

    def __init__(self, stream: IO[bytes], path: Path) -> None:
        self._stream, self._path, self._read = stream, path, 0
        self._most = max(_ALWAYS_ALLOWED, path.stat().st_size * limit("unpack-ratio"))

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._stream.read(len(buffer))
        self._read += len(data)
        if self._read > self._most:
            raise limit_error("unpack-ratio", f"{self._path}: unpacked")
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        self._stream.close()
        super().close()


def is_packed(head: bytes) -> bool:
    """Whether a file with this start is gzip, bzip2 or xz."""
    return head.startswith(tuple(_PACKED))


def open_packed(path: Path) -> IO[bytes]:
    """Open a file, unpacked if it is gzip, bzip2 or xz. Raises InputError, also when read."""
    try:
        if not path.is_file():
            raise InputError(f"{path}: not a file", "Give the file itself.")
        with path.open("rb") as probe:
            head = probe.read(6)
        for magic, opener in _PACKED.items():
            if head.startswith(magic):
                return io.BufferedReader(_Counted(opener(path, "rb"), path), 1 << 20)
        return path.open("rb")
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}", "Check the path.") from None


def read_text(path: Path, most: int | None = None) -> str:
    """Read the whole file as text; invalid UTF-8 becomes surrogates. Raises InputError.

    `most`: limit in bytes, if below the limit text-bytes.
    """
    size = limit("text-bytes") if most is None else min(most, limit("text-bytes"))
    try:
        with open_packed(path) as stream:
            data = stream.read(size + 1)
    except (OSError, EOFError, lzma.LZMAError, ValueError) as error:
        raise InputError(f"{path}: cannot be unpacked: {error}", "Get the file again.") from None
    if len(data) > size:
        if most is not None and size == most:
            raise InputError(f"{path}: larger than {size >> 20} MiB", "Split it.")
        raise limit_error("text-bytes", str(path))
    return data.decode("utf-8", "surrogateescape")


def read_lines(path: Path) -> list[str]:
    """Read the lines of a log, without line ends. Raises InputError."""
    return lines_of(read_text(path), path)


def lines_of(text: str, path: Path) -> list[str]:
    """Split text that was read from `path` into lines. Raises InputError."""
    check("rows", f"{path}: lines", text.count("\n"))
    lines = text.split("\n")
    check("line-bytes", str(path), max(map(len, lines)))
    return lines


def parse_json(text: str, path: Path) -> Any:
    """Parse JSON, including the `\\'` that jx2json writes. Raises InputError."""
    check("json-values", str(path), values_of(text))
    try:
        return json.loads(text.replace("\\'", "'") if "\\'" in text else text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: not JSON: {error}", "Check it with a JSON parser.") from None
