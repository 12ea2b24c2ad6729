"""What an analysis may use, and whom it tells how far it is."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

# stage, done, in all, of what
Tell = Callable[[str, int, int, str], None]


def silent(_stage: str, _done: int, _total: int, _unit: str) -> None:
    """Tell nobody."""


@dataclass(frozen=True)
class Resources:
    """Threads; bytes of memory that the accesses may take about half of; where temporary files
    go; and who is told."""

    threads: int = 1
    memory: int | None = None  # None: no limit
    folder: Path | None = None  # None: the system's directory for temporary files
    tell: Tell = silent


def cores() -> int:
    """The processors that this process may use."""
    return len(os.sched_getaffinity(0))


def half_of_memory() -> int:
    """Half of the machine's memory, in bytes."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
