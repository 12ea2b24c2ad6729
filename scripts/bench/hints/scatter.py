"""Scatter: five programs read a part each of one file."""

from __future__ import annotations

from pathlib import Path

from scripts.bench.hints.row import NODES, Row, rules

REGION = 8 << 20


def make(_folder: Path, size: int) -> str:
    """One writer; reader i reads region i."""
    region = size // NODES >> 20
    readers = [
        (
            f"sum_{i}.txt",
            "all.dat",
            f"dd if=all.dat bs=1M skip={i * region} count={region} status=none"
            f" | sha256sum > sum_{i}.txt",
        )
        for i in range(NODES)
    ]
    return rules(("all.dat", "", f"seq 100000000 | head -c {size} > all.dat"), *readers)


ROWS = [
    Row(
        name="scatter",
        title="scatter",
        size=NODES * REGION,
        make=make,
        by_hand=lambda: {"all.dat": {"DP": "scatter|1", "BlockSize": str(REGION)}},
    )
]
