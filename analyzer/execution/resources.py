"""What an analysis may use, and whom it tells how far it is."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

# stage, done, in all, of what
Tell = Callable[[str, int, int, str], None]


# name and table, of analyzer.model.ANALYSIS_TABLES
Ready = Callable[[str, "pa.Table"], None]


def silent(_stage: str, _done: int, _total: int, _unit: str) -> None:
    """Tell nobody."""


def wait(_name: str, _table: pa.Table) -> None:
    """Do nothing yet: the table is a part of the analysis."""


@dataclass(frozen=True)
class Resources:
    """Threads; bytes of memory that the accesses may take about half of; where temporary files
    go; who is told; and who is given each table as soon as it is complete."""

    threads: int = 1
    memory: int | None = None  # None: no limit
    folder: Path | None = None  # None: the system's directory for temporary files
    tell: Tell = silent
    ready: Ready = wait


def cores() -> int:
    """The processors that this process may use."""
    return len(os.sched_getaffinity(0))


def half_of_memory() -> int:
    """Half of the machine's memory, in bytes."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
