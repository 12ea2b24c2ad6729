"""The neutral hints: names, allowed values, and which pattern gives which.

An adapter maps this table to its store; a new hint is a new row here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class HintName:
    """One neutral hint."""

    name: str
    values: str  # full-match regex of its values
    level: str  # placement, advisory
    meaning: str


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
    """True when the hint exists and the value is one of its values."""
    row = HINT_NAMES.get(name)
    return row is not None and re.fullmatch(row.values, value) is not None


def safe_name(text: str, limit: int = 60) -> str:
    """`text` as part of a group name; what cannot stay is told apart by a short checksum."""
    import zlib

    kept = _UNSAFE.sub("_", text)[:limit]
    if kept == text and kept:
        return kept
    return f"{kept[: limit - 9]}-{zlib.crc32(text.encode('utf-8', 'surrogateescape')):08x}"
