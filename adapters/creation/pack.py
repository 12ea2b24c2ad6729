"""Putting the sections of a rule table together: texts once each, hash tables with few probes."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable, Sequence

from tracehint.adapters.creation import layout
from tracehint.errors import InputError


class Blob:
    """The bytes behind the header, each text once."""

    def __init__(self) -> None:
        self.data = bytearray(layout.HEADER.size)
        self._texts: dict[bytes, int] = {}

    def text(self, text: bytes) -> tuple[int, int]:
        """Offset and length."""
        at = self._texts.get(text)
        if at is None:
            at = self._texts[text] = len(self.data)
            self.data += text
        return at, len(text)

    def rows(self, form: struct.Struct, rows: Iterable[Sequence[int]]) -> tuple[int, int]:
        """Offset (a multiple of 8) and number of the rows."""
        packed = b"".join(form.pack(*row) for row in rows)  # making a row may add texts
        self.data += bytes(-len(self.data) % 8)
        at = len(self.data)
        self.data += packed
        return at, len(packed) // form.size

    def finish(
        self, sections: Sequence[tuple[int, int]], *, run: int = 0, typed: bool = False
    ) -> bytes:
        """The whole table. `run`: the process that runs the command; `typed`: something depends on
        who makes a file. Raises InputError where it is larger than a table may be."""
        if len(self.data) > layout.MAX_BYTES:
            raise InputError(
                f"the compiled rules take more than {layout.MAX_BYTES:,} bytes",
                "Give fewer rules, or no --like.",
            )
        flat = [number for section in sections for number in section]
        head = (layout.MAGIC, len(self.data), run, int(typed), 0)
        layout.HEADER.pack_into(self.data, 0, *head, *flat)
        return bytes(self.data)


def place(hashes: Sequence[int]) -> list[int | None]:
    """An open hash table, a power of two large: the index of the entry at each place.

    Entries with one hash lie behind each other, none further than MAX_PROBES from its place.
    Raises InputError where too many have the same hash.
    """
    size = 8
    while size < 2 * len(hashes):
        size *= 2
    for _ in range(3):  # sparser, until all are near enough
        table = _placed(hashes, size)
        if table is not None:
            return table
        size *= 2
    raise InputError("too many names of one checksum", "Name fewer files.")


def _placed(hashes: Sequence[int], size: int) -> list[int | None] | None:
    table: list[int | None] = [None] * size
    for entry, value in enumerate(hashes):
        at = value & (size - 1)
        for _ in range(layout.MAX_PROBES):
            if table[at] is None:
                table[at] = entry
                break
            at = (at + 1) & (size - 1)
        else:
            return None
    return table


def checksum(text: bytes, *numbers: int) -> int:
    """CRC-32 of a text and of 16-bit numbers after it."""
    return zlib.crc32(struct.pack(f"<{len(numbers)}H", *numbers), zlib.crc32(text))
