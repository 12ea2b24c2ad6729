"""The rule table as bytes: the layout that collectors/preload/tag/table.h reads.

Little-endian, 32-bit offsets from the start of the file. A *text* is an offset and a length. Every
name here has its twin in the C header; tests/test_creation_table.py compares the answers of both.
"""

from __future__ import annotations

import struct

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
