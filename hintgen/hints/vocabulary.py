"""Names, allowed values and meanings of the store-independent hints.

An adapter maps this table to its store; a new hint is a new row of this table.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class HintName:
    """One store-independent hint."""

    name: str
    values: str  # full-match regex of its values
    level: str  # placement, advisory
    meaning: str
    qualifies: str = ""  # the hint that it requires


GROUP = r"[A-Za-z0-9_.:-]{1,120}"
BYTES = r"[1-9][0-9]{0,18}"

HINT_NAMES: dict[str, HintName] = {
    h.name: h
    for h in (
        HintName(
            "DP",
            rf"local|collocation\|{GROUP}|scatter\|[1-9][0-9]{{0,8}}|distribute\|{GROUP}",
            "placement",
            "data placement: on the writing client's node; with its group on one node; runs of n "
            "blocks on the next node each; the group's files evenly over the consumers' nodes",
        ),
        HintName("BlockSize", BYTES, "placement", "block (chunk, stripe) size in bytes"),
        HintName("Replication", r"[1-9][0-9]{0,4}", "placement", "copies of every block"),
        HintName(
            "ReplicationSemantics",
            "optimistic|pessimistic",
            "placement",
            "return after the first copy, or after all",
            qualifies="Replication",
        ),
        HintName("CacheSize", BYTES, "advisory", "client cache for this file, bytes"),
        HintName("Access", "sequential|random", "advisory", "order in which readers go"),
        HintName(
            "Lifetime",
            r"persistent|temporary(\|[A-Za-z0-9_.:-]{1,120})?",
            "advisory",
            "kept after the run, or needed only until tasks of that type have ended",
        ),
        HintName(
            "Metadata",
            GROUP,
            "placement",
            "of a directory: the site whose metadata service has it and what is in it",
        ),
        HintName("LastReader", GROUP, "advisory", "type of the task that reads it last"),
    )
}


_UNSAFE = re.compile(r"[^A-Za-z0-9_.:-]")


def valid(name: str, value: str) -> bool:
    """Whether the hint exists and allows the value."""
    row = HINT_NAMES.get(name)
    return row is not None and re.fullmatch(row.values, value) is not None


def common_hints(files: Sequence[Mapping[str, str]]) -> dict[str, str]:
    """Return the hints that all of these files share with equal values; a hint that qualifies
    another one is dropped without it.

    >>> copies = {"Replication": "2", "ReplicationSemantics": "optimistic"}
    >>> common_hints([copies, {**copies, "Replication": "3"}])
    {}
    """
    found = dict(files[0]) if files else {}
    for hints in files:
        found = {name: value for name, value in found.items() if hints.get(name) == value}
    return {
        name: value for name, value in found.items() if HINT_NAMES[name].qualifies in ("", *found)
    }


def safe_name(text: str, limit: int = 60) -> str:
    """Return `text` as part of a group name; a checksum keeps modified texts distinct."""
    import zlib

    kept = _UNSAFE.sub("_", text)[:limit]
    if kept == text and kept:
        return kept
    return f"{kept[: limit - 9]}-{zlib.crc32(text.encode('utf-8', 'surrogateescape')):08x}"


PART = "part-"


def group(part: int) -> str:
    """Return the name of a part's group on the store."""
    return f"{PART}{part}"


def part_of(group: str) -> int | None:
    """Return the part of a group name; None: not a part's group."""
    number = group.removeprefix(PART)
    known = number != group and number.isascii() and number.isdecimal() and len(number) < 10
    return int(number) if known else None
