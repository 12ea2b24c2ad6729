"""What the steps of a metadata prediction hand to each other. Seconds."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from tracehint.analyzer.arrays import Ints, Shorts
from tracehint.analyzer.predict.model import Floats

LOOKUP, UPDATE, COMPUTING = range(3)  # enum meta_kind of engine/metadata.h
# enum strategy of engine/metadata.h: names as in Pineda-Morales, Costan and Antoniu (2015)
STRATEGIES = ("centralised", "replicated", "decentralised", "decentralised-replica")
TENTHS = 10


@dataclass
class MetaWork:
    """Tasks with their metadata operations, in the form of the engine.

    `op_begin`, `dep_begin`: one item more than tasks. `op_entry`: entry or -1 for computing.
    `paths`: the entries (files, then directories) as bytes; `known`: 1 where it exists before the
    run. `site`: name of each task's site, "" where unknown; `where`: in
    words which one. `recorded`: whether calls
    beyond opening (stat, rename, unlink ...) were recorded; else only the graph says something.
    """

    op_begin: Ints
    op_kind: Shorts
    op_entry: Shorts
    op_seconds: Floats
    dep_begin: Ints
    dep: Shorts
    known: Shorts
    paths: list[bytes]
    site: list[str]
    recorded: bool
    where: str = "its recorded site"
    notes: list[str] = field(default_factory=list)

    @property
    def tasks(self) -> int:
        """Number of tasks."""
        return len(self.op_begin) - 1

    @property
    def operations(self) -> int:
        """Number of lookups and updates."""
        return int(np.count_nonzero(self.op_kind != COMPUTING))


@dataclass(frozen=True)
class Sites:
    """Sites of a cluster. `cores` by site; `round_trip[a, b]` in seconds; costs of a registry:
    `lookup`, `update`, and `sync` for an entry that an agent passes on."""

    names: tuple[str, ...]
    nodes: tuple[int, ...]
    cores: tuple[int, ...]
    round_trip: Floats
    lookup: float
    update: float
    sync: float


@dataclass(frozen=True)
class MetaRun:
    """One run to simulate: a strategy by its number, the site of its central registry or agent."""

    strategy: int
    centre: int = 0
    near: bool = True
    seed: int = 1


@dataclass(frozen=True)
class MetaOutcome:
    """One simulated run. `tenths`: when each tenth of the operations was done; `sites`: rows of
    (operations served, seconds busy, round trips of its tasks to other sites). `stale_mean` and
    `stale_most`: seconds until an entry was known at another site."""

    seconds: float
    operations: int
    stale_mean: float
    stale_most: float
    tenths: Floats
    sites: Floats
