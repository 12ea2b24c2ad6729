"""Records that the steps of a metadata prediction exchange; times in seconds."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from tracehint.analyzer.arrays import Ints, Shorts
from tracehint.analyzer.predict.cluster import Cluster
from tracehint.analyzer.predict.model import Floats
from tracehint.errors import InputError

LOOKUP, UPDATE, COMPUTING = range(3)
# names as in Pineda-Morales, Costan and Antoniu (2015)
STRATEGIES = ("centralised", "replicated", "decentralised", "decentralised-replica")
TENTHS = 10
MOST_OPERATIONS = 1_000_000  # takes some seconds per strategy and central site


@dataclass
class MetaWork:
    """Tasks with their metadata operations.

    `op_begin`, `dep_begin`: offsets, one item more than tasks. `op_entry`: entry, -1 for computing.
    `paths`: the entries (files, then directories) as bytes; `known`: 1 if an entry exists before
    the run. `site`: name of each task's site, "" if unknown; `where`: description of that site.
    `recorded`: whether calls other than open (stat, rename, unlink ...) were recorded; otherwise
    the operations come from the graph only.
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
    """Sites of a cluster. `nodes`, `cores`: per site; `round_trip[a, b]`: seconds; service times of
    a registry: `lookup`, `update`, and `sync` per entry that the agent copies."""

    names: tuple[str, ...]
    nodes: tuple[int, ...]
    cores: tuple[int, ...]
    round_trip: Floats
    lookup: float
    update: float
    sync: float


@dataclass(frozen=True)
class MetaRun:
    """One run to simulate: index into STRATEGIES; site of the central registry or the agent."""

    strategy: int
    centre: int = 0
    near: bool = True  # tasks start at the site of their last producer
    seed: int = 1


@dataclass(frozen=True)
class MetaOutcome:
    """Result of one simulated run. `tenths`: time at which each tenth of the operations was done;
    `sites`: rows of (operations served, seconds busy, round trips of its tasks to other sites).
    `stale_mean`, `stale_most`: seconds until a new entry was visible at another site."""

    seconds: float
    operations: int
    stale_mean: float
    stale_most: float
    tenths: Floats
    sites: Floats


MAX_SITES = 64


def sites_of(cluster: Cluster) -> Sites:
    """Return the sites of a cluster. Raises InputError unless it has 2 to MAX_SITES."""
    names = tuple(name for name, _ in cluster.sites)
    if not 2 <= len(names) <= MAX_SITES:
        raise InputError(
            f"{cluster.name}: has {len(names)} sites: metadata over sites needs 2 to {MAX_SITES}",
            "Name them in [[sites]], and the site of each class of [[nodes]] "
            "(docs/reference/cluster-file.md).",
        )
    nodes, cores = [0] * len(names), [0] * len(names)
    for part in cluster.nodes:
        at = names.index(part.words["site"])
        nodes[at] += int(part["count"])
        cores[at] += int(part["count"] * part["cores"])
    registry = cluster.registry
    return Sites(
        names=names,
        nodes=tuple(nodes),
        cores=tuple(cores),
        round_trip=_round_trips(cluster, names),
        lookup=registry["lookup_ms"],
        update=registry["update_ms"],
        sync=registry["sync_ms"],
    )


def at_nodes(work: MetaWork, node: Shorts, cluster: Cluster) -> MetaWork:
    """Return a copy with each task at the site of its node; "" for tasks without a node (-1)."""
    words = [part.words["site"] for part in cluster.nodes for _ in range(int(part["count"]))]
    site = [words[n] if n >= 0 else "" for n in node.tolist()]
    return replace(work, site=site, where="the site of its node in the plan")


def _round_trips(cluster: Cluster, names: tuple[str, ...]) -> np.ndarray:
    """Return the round-trip times between each pair of sites and within each, in seconds."""
    near = cluster.store["latency_ms"]
    found = np.full((len(names), len(names)), near + cluster.store["site_latency_ms"])
    np.fill_diagonal(found, near)
    for link in cluster.links:
        a, b = names.index(link.words["a"]), names.index(link.words["b"])
        found[a, b] = found[b, a] = link["round_trip_ms"]
    return found
