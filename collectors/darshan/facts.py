"""What one Darshan log says, before it is joined with others."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tracehint.collectors.darshan.runs import RUN, Runs

# columns of `opens` that are added up where several records are of one file
SUMMED = ("read_ops", "read_bytes", "write_ops", "write_bytes", "seq_ops", "small_ops")


@dataclass
class LogFacts:
    """What one log says. Times in `opens` and `runs` are seconds from `start_ns`."""

    path: str
    jobid: int = 0
    pid: int | None = None
    uid: int = 0
    nprocs: int = 1
    start_ns: int = 0
    end_ns: int | None = None
    hostname: str = ""
    rank_hosts: dict[int, str] = field(default_factory=dict)  # of the ranks that have segments
    exe: bytes = b""
    metadata: dict[str, str] = field(default_factory=dict)
    mounts: list[tuple[str, str]] = field(default_factory=list)
    names: list[bytes] = field(default_factory=list)
    opens: list[dict[str, Any]] = field(default_factory=list)
    runs: Runs = field(default_factory=lambda: np.zeros(0, RUN))
    attributes: list[tuple[bytes, str, str]] = field(default_factory=list)
    losses: list[tuple[str, int, str]] = field(default_factory=list)


class UnreadableLogError(Exception):
    """The library could not open or read the log."""
