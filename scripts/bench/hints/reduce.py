"""Reduce: five files by five programs, read by one; producers start together, or one by one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from scripts.bench.hints.row import MB, NODES, Row, rules

SIZE = 20 * MB
STEP = 1  # seconds between two staggered producers: what one file takes over a link, about


def make(step: int) -> Callable[[Path, int], str]:
    """The workflow; producer i begins to write after i * step seconds."""

    def text(_folder: Path, size: int) -> str:
        names = [f"part_{i}.dat" for i in range(NODES)]
        wait = [f"sleep {i * step}; " if step else "" for i in range(NODES)]
        producers = [
            (name, "", f"{wait[i]}yes {name} | head -c {size} > {name}")
            for i, name in enumerate(names)
        ]
        total = ("total.txt", " ".join(names), f"cat {' '.join(names)} | sha256sum > total.txt")
        return rules(*producers, total)

    return text


def _by_hand() -> Mapping[str, Mapping[str, str]]:
    return {f"part_{i}.dat": {"DP": "collocation|total"} for i in range(NODES)}


ROWS = [
    Row(
        name="reduce", title="reduce, producers together", size=SIZE, make=make(0), by_hand=_by_hand
    ),
    Row(
        name="reduce-staggered",
        title="reduce, producers staggered",
        size=SIZE,
        make=make(STEP),
        by_hand=_by_hand,
    ),
]
