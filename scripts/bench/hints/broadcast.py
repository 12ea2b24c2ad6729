"""Broadcast: one file that five programs read at the same time."""

from __future__ import annotations

from pathlib import Path

from scripts.bench.hints.row import MB, NODES, Row, fill, rules

SIZE = 40 * MB


def make(_folder: Path, size: int) -> str:
    """One writer, then all readers."""
    readers = [
        (f"sum_{i}.txt", "table.dat", f"(echo {i}; cat table.dat) | sha256sum > sum_{i}.txt")
        for i in range(NODES)
    ]
    return rules(("table.dat", "", fill("table.dat", size)), *readers)


# The paper: one replica for two to three readers.
ROWS = [
    Row(
        name="broadcast",
        title="broadcast",
        size=SIZE,
        make=make,
        by_hand=lambda: {"table.dat": {"Replication": "2"}},
    )
]
