"""A cluster: nodes, the store's servers and its law, scheduler; each measured number a range."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

SCHEDULERS = ("idle-random", "most-input-bytes", "plan")  # enum scheduler of engine/sim.h
SERVERS = ("all", "apart", "one", "local")


@dataclass(frozen=True)
class Range:
    """A number, and what it may be at least and at most."""

    low: float
    value: float
    high: float

    def at(self, place: float) -> float:
        """The number at a place from 0 (lowest) over 0.5 (the value itself) to 1 (highest)."""
        if place < 0.5:
            return self.low + (self.value - self.low) * 2 * place
        return self.value + (self.high - self.value) * (2 * place - 1)

    @property
    def exact(self) -> bool:
        """Whether it is one number."""
        return self.low == self.high


@dataclass(frozen=True)
class ClusterSection:
    """The values of one table of a cluster file: ranges and words by the key in the file."""

    numbers: dict[str, Range]
    words: dict[str, str]

    def __getitem__(self, key: str) -> float:
        return self.numbers[key].value

    def with_number(self, key: str, value: float) -> ClusterSection:
        """The same with one number exactly so."""
        return replace(self, numbers={**self.numbers, key: Range(value, value, value)})


@dataclass(frozen=True)
class Cluster:
    """What a cluster file says. `nodes`: classes of machines that run tasks, each with its
    `count`; `servers`: the machines of a store that has its own; `sites`: name and section;
    `links` between two of them; `hosts`: machines whose
    processors several nodes share, name and section; `registry`: the metadata service of each site.
    """

    name: str
    nodes: tuple[ClusterSection, ...]
    servers: ClusterSection
    store: ClusterSection
    scheduler: ClusterSection
    model: ClusterSection
    registry: ClusterSection
    sites: tuple[tuple[str, ClusterSection], ...] = ()
    links: tuple[ClusterSection, ...] = ()
    hosts: tuple[tuple[str, ClusterSection], ...] = ()

    @property
    def count(self) -> int:
        """Nodes that run tasks."""
        return sum(int(part["count"]) for part in self.nodes)

    @property
    def exact(self) -> bool:
        """Whether all its numbers are exactly known."""
        return all(r.exact for part in self.sections() for r in part.numbers.values())

    @property
    def spread(self) -> bool:
        """Whether the store puts each chunk of a file on a server of its own."""
        return self.store.words["law"] in ("rotate", "random")

    def sections(self) -> list[ClusterSection]:
        """All tables, in one order."""
        own = [self.servers, self.store, self.scheduler, self.model, self.registry, *self.links]
        return [*self.nodes, *own, *(part for _, part in (*self.sites, *self.hosts))]

    def with_nodes(self, count: int) -> Cluster:
        """The same with so many nodes; of several classes each keeps its share."""
        total, left, parts = self.count, count, []
        for number, part in enumerate(self.nodes):
            rest = len(self.nodes) - number - 1
            share = (
                left if not rest else max(1, min(left - rest, round(part["count"] * count / total)))
            )
            parts.append(part.with_number("count", share))
            left -= share
        return replace(self, nodes=tuple(parts))

    def with_store(self, **numbers: float) -> Cluster:
        """The same with other numbers of the store."""
        store = self.store
        for key, value in numbers.items():
            store = store.with_number(key, value)
        return replace(self, store=store)

    def split(self, servers: int) -> Cluster:
        """So many of the nodes serve the store, and only that; the others run tasks."""
        store = replace(self.store, words={**self.store.words, "servers": "apart"})
        own = replace(self.nodes[0].with_number("count", servers))
        fewer = self.with_nodes(self.count - servers)
        return replace(fewer, servers=own, store=store)

    def words(self) -> dict[str, Any]:
        """The words of the store and the scheduler, for the output."""
        return {**self.store.words, "scheduler": self.scheduler.words["kind"]}
