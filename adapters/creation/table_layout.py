"""The rule table as bytes: the layout that collectors/preload/tag/table.h reads.

Little-endian, 32-bit offsets from the start of the file. A *text* is an offset and a length. Every
name here has its twin in the C header; tests/test_creation_table.py compares the answers of both.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable, Sequence

from tracehint.errors import InputError

MAGIC = b"THTAGS\0\2"
# magic; size of the file, process that runs the command, whether something depends on who makes a
# file, nothing; then offset and number of each section, see SECTIONS
SECTIONS = ("roots", "exact", "combos", "buckets", "rules", "lists", "sets", "makers")
HEADER = struct.Struct("<8sIIII" + "II" * len(SECTIONS))

ROOT = struct.Struct("<II")  # text
EXACT = struct.Struct("<IIIII")  # CRC-32 of the name, set, type, text; an empty place has no name
COMBO = struct.Struct("<HH")  # bytes of prefix and suffix that a bucket is found by
BUCKET = struct.Struct("<IHHII")  # CRC-32, combo, slashes, first and number in `lists`
# parts, excludes, types of tasks that have to make the file (where, number each); rank, hints, set
RULE = struct.Struct("<9I")
PARTS = struct.Struct("<II")  # an excluded template: where its parts are, and their number
PART = struct.Struct("<III")  # kind (0: literal, else 1 + the hole's place in HOLES), text
SET = struct.Struct("<7I")  # ways, where, prefix of the group (text), group, captures: n, at
WAY = struct.Struct("<II")  # settings: where, number
SETTING = struct.Struct("<IIIIIII")  # key, value, tail (texts), flags
INDEX = struct.Struct("<I")
MAKER = struct.Struct("<IIII")  # CRC-32 of a process's word, type of its task, text

NONE = 0xFFFFFFFF  # as a set: no hint, whatever a template says; as a type: any
UNASKED, UNKNOWN = 0xFFFFFFFE, 0xFFFFFFFD  # as a type that a record has
ANY_SLASHES = 0xFFFF
LITERAL = 0

NO_GROUP, BY_NAME, BY_LETTERS = 0, 1, 2  # of a set: how its group's name is made
GROUP, HOST, CLASS = 1, 2, 4  # flags: the group stands between value and tail; @host; MooseFS

MAX_BYTES = 1 << 30
MAX_PROBES = 64  # places of a hash table that are looked at for one name
MAX_SETTINGS = 64  # of one file
MAX_KEY, MAX_VALUE = 255, 4096


class Blob:
    """The bytes behind the header, each text once."""

    def __init__(self) -> None:
        self.data = bytearray(HEADER.size)
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
    """An open hash table, a power of two large: the index of the entry at each place.

    Entries with one hash lie behind each other, none further than MAX_PROBES from its place.
    Raises InputError where too many have the same hash.
    """
    size = 8
    while size < 2 * len(hashes):
        size *= 2
    for _ in range(3):  # sparser, until all are near enough
        table = _place_entries(hashes, size)
        if table is not None:
            return table
        size *= 2
    raise InputError("too many names of one checksum", "Name fewer files.")


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
    """CRC-32 of a text and of 16-bit numbers after it."""
    return zlib.crc32(struct.pack(f"<{len(numbers)}H", *numbers), zlib.crc32(text))
