"""The rule table as bytes: the layout that collectors/preload/tag/table.h reads.

Little-endian, 32-bit offsets from the start of the file. A *text* is an offset and a length. Every
name here has a counterpart in the C header; tests/test_creation_table.py compares their results.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable, Sequence

from tracehint.errors import InputError

MAGIC = b"THTAGS\0\2"
# magic; file size, pid of the process that runs the command, whether any entry depends on the
# creating task, unused; then offset and count of each section (SECTIONS)
SECTIONS = ("roots", "exact", "combos", "buckets", "rules", "lists", "sets", "makers")
HEADER = struct.Struct("<8sIIII" + "II" * len(SECTIONS))

ROOT = struct.Struct("<II")  # text
EXACT = struct.Struct("<IIIII")  # CRC-32 of the name, set, type, text; an empty slot has no name
COMBO = struct.Struct("<HH")  # length of prefix and suffix in a bucket's key
BUCKET = struct.Struct("<IHHII")  # CRC-32, combo, slashes, first and count in `lists`
# parts, excludes, required types of the creating task (offset, count each); rank, hints, set
RULE = struct.Struct("<9I")
PARTS = struct.Struct("<II")  # an excluded template: offset and count of its parts
PART = struct.Struct("<III")  # kind (0: literal, else 1 + index in HOLES), text
SET = struct.Struct("<7I")  # ways (count, offset), group prefix (text), group, captures (same)
WAY = struct.Struct("<II")  # settings: offset, count
SETTING = struct.Struct("<IIIIIII")  # key, value, tail (texts), flags
INDEX = struct.Struct("<I")
MAKER = struct.Struct("<IIII")  # CRC-32 of a process's word, type of its task, text

NONE = 0xFFFFFFFF  # as a set: no hint, even if a template matches; as a type: any
UNASKED, UNKNOWN = 0xFFFFFFFE, 0xFFFFFFFD  # types in journal records
ANY_SLASHES = 0xFFFF
LITERAL = 0

NO_GROUP, BY_NAME, BY_LETTERS = 0, 1, 2  # of a set: how the group's name is formed
GROUP, HOST, CLASS = 1, 2, 4  # flags: group or @host before the tail; MooseFS class

MAX_BYTES = 1 << 30
MAX_PROBES = 64  # slots of a hash table that are probed for one name
MAX_SETTINGS = 64  # of one file
MAX_KEY, MAX_VALUE = 255, 4096


class Blob:
    """The bytes of the table; each text is stored once."""

    def __init__(self) -> None:
        self.data = bytearray(HEADER.size)
        self._texts: dict[bytes, int] = {}

    def text(self, text: bytes) -> tuple[int, int]:
        """Store a text; return its offset and length."""
        at = self._texts.get(text)
        if at is None:
            at = self._texts[text] = len(self.data)
            self.data += text
        return at, len(text)

    def rows(self, form: struct.Struct, rows: Iterable[Sequence[int]]) -> tuple[int, int]:
        """Append rows; return their offset (a multiple of 8) and count."""
        packed = b"".join(form.pack(*row) for row in rows)  # first: rows may add texts
        self.data += bytes(-len(self.data) % 8)
        at = len(self.data)
        self.data += packed
        return at, len(packed) // form.size

    def finish(
        self, sections: Sequence[tuple[int, int]], *, run: int = 0, typed: bool = False
    ) -> bytes:
        """Return the complete table. `run`: pid of the process that runs the command; `typed`: an
        entry depends on the creating task. Raises InputError if it exceeds MAX_BYTES."""
        if len(self.data) > MAX_BYTES:
            raise InputError(
                f"the compiled rules take more than {MAX_BYTES:,} bytes",
                "Give fewer rules, or no --like.",
            )
        flat = [number for section in sections for number in section]
        head = (MAGIC, len(self.data), run, int(typed), 0)
        HEADER.pack_into(self.data, 0, *head, *flat)
        return bytes(self.data)


def place(hashes: Sequence[int]) -> list[int | None]:
    """Build an open-addressing hash table, its size a power of two: an entry's index per slot.

    Collisions are resolved by linear probing, within MAX_PROBES slots.
    Raises InputError if too many entries have the same hash.
    """
    size = 8
    while size < 2 * len(hashes):
        size *= 2
    for _ in range(3):  # sparser, until all are within MAX_PROBES
        table = _place_entries(hashes, size)
        if table is not None:
            return table
        size *= 2
    raise InputError("too many names with the same checksum", "Name fewer files.")


def _place_entries(hashes: Sequence[int], size: int) -> list[int | None] | None:
    table: list[int | None] = [None] * size
    for entry, value in enumerate(hashes):
        at = value & (size - 1)
        for _ in range(MAX_PROBES):
            if table[at] is None:
                table[at] = entry
                break
            at = (at + 1) & (size - 1)
        else:
            return None
    return table


def checksum(text: bytes, *numbers: int) -> int:
    """Return the CRC-32 of a text followed by 16-bit numbers."""
    return zlib.crc32(struct.pack(f"<{len(numbers)}H", *numbers), zlib.crc32(text))
