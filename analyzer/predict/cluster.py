"""Cluster model: nodes, the store's servers and law, scheduler; measured numbers are ranges."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

SCHEDULERS = ("idle-random", "most-input-bytes", "plan")  # enum scheduler of engine/sim.h
SERVERS = ("all", "apart", "one", "local")


@dataclass(frozen=True)
class Range:
    """A number with its lower and upper bound."""

    low: float
    value: float
    high: float

    def at(self, place: float) -> float:
        """Interpolate: 0 is the lowest, 0.5 the usual value, 1 the highest."""
        if place < 0.5:
            return self.low + (self.value - self.low) * 2 * place
        return self.value + (self.high - self.value) * (2 * place - 1)

    @property
    def exact(self) -> bool:
        """Whether the range is a single number."""
        return self.low == self.high


@dataclass(frozen=True)
class ClusterSection:
    """Values of one table of a cluster file: ranges and words by key."""

    numbers: dict[str, Range]
    words: dict[str, str]

    def __getitem__(self, key: str) -> float:
        return self.numbers[key].value

    def with_number(self, key: str, value: float) -> ClusterSection:
        """Return a copy with one number set to an exact value."""
        return replace(self, numbers={**self.numbers, key: Range(value, value, value)})


@dataclass(frozen=True)
class Dispatch:
    """Seconds from ready to started (`delay_s`), and between consecutive starts of waiting tasks
    (`interval_s`); `source`: a text on their origin."""

    delay_s: float = 0.0
    interval_s: float = 0.0
    source: str = field(default="", compare=False)


@dataclass(frozen=True)
class Cluster:
    """Contents of a cluster file. `nodes`: classes of machines that run tasks, each with its
    `count`; `servers`: machines of a store with dedicated servers; `sites`: name and section;
    `links` between two sites; `hosts`: name and section of machines whose processors several
    nodes share; `registry`: the metadata service of each site.
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
        """Number of nodes that run tasks."""
        return sum(int(part["count"]) for part in self.nodes)

    @property
    def exact(self) -> bool:
        """Whether all numbers are exact."""
        return all(r.exact for part in self.sections() for r in part.numbers.values())

    @property
    def spread(self) -> bool:
        """Whether the store places each chunk of a file on a separately chosen server."""
        return self.store.words["law"] in ("rotate", "random")

    def sections(self) -> list[ClusterSection]:
        """Return all tables, in a fixed order."""
        own = [self.servers, self.store, self.scheduler, self.model, self.registry, *self.links]
        return [*self.nodes, *own, *(part for _, part in (*self.sites, *self.hosts))]

    def with_nodes(self, count: int) -> Cluster:
        """Return a copy with `count` nodes; each of several classes keeps its share."""
        total, left, parts = self.count, count, []
        for number, part in enumerate(self.nodes):
            rest = len(self.nodes) - number - 1
            share = (
                left if not rest else max(1, min(left - rest, round(part["count"] * count / total)))
            )
            parts.append(part.with_number("count", share))
            left -= share
        return replace(self, nodes=tuple(parts))

    def with_link(self, link: float) -> Cluster:
        """Return a copy in which all nodes have a link of `link` bytes/s."""
        return replace(self, nodes=tuple(p.with_number("link_mbit", link) for p in self.nodes))

    def with_store(self, **numbers: float) -> Cluster:
        """Return a copy with other numbers of the store."""
        store = self.store
        for key, value in numbers.items():
            store = store.with_number(key, value)
        return replace(self, store=store)

    def started_as(self, work: Dispatch) -> Cluster:
        """Return a copy whose task starts are at least as slow as in the recorded run."""
        scheduler = self.scheduler
        for key, least in (("task_ms", work.delay_s), ("dispatch_ms", work.interval_s)):
            known = scheduler.numbers[key]
            slower = Range(*(max(least, x) for x in (known.low, known.value, known.high)))
            scheduler = replace(scheduler, numbers={**scheduler.numbers, key: slower})
        return replace(self, scheduler=scheduler)

    def split(self, servers: int) -> Cluster:
        """Return a copy with `servers` nodes that only serve the store; the rest run tasks."""
        store = replace(self.store, words={**self.store.words, "servers": "apart"})
        own = replace(self.nodes[0].with_number("count", servers))
        fewer = self.with_nodes(self.count - servers)
        return replace(fewer, servers=own, store=store)

    def words(self) -> dict[str, Any]:
        """Return the words of the store and the scheduler, for the output."""
        return {**self.store.words, "scheduler": self.scheduler.words["kind"]}


MB, GB, MBIT, MS = 1e6, 1e9, 125_000.0, 1e-3


@dataclass(frozen=True)
class Number:
    """A numeric key: factor from the file's unit to seconds or bytes; minimum, maximum and default
    in the file's unit (None: required); meaning. `whole`: an integer, no range."""

    unit: float
    least: float
    most: float
    default: float | None
    meaning: str
    whole: bool = False


@dataclass(frozen=True)
class Word:
    """A key with one of several words (`choices`; empty: any name), and its default."""

    choices: tuple[str, ...]
    default: str
    meaning: str


@dataclass(frozen=True)
class Flag:
    """A boolean key."""

    default: bool
    meaning: str


Field = Number | Word | Flag

HARDWARE: dict[str, Field] = {
    "count": Number(1, 1, 10_000, None, "machines of this kind", whole=True),
    "memory_gb": Number(GB, 0, 1e6, 8, "memory that holds files' pages"),
    "write_buffer_gb": Number(GB, 0, 1e6, 1, "written bytes that wait in memory for the disk"),
    "link_mbit": Number(MBIT, 0.001, 1e8, None, "link of the machine, each way"),
    "link_efficiency": Number(1, 0.01, 1, 0.95, "share of the link that is left for data"),
    "disk_read_mb_s": Number(MB, 0, 1e7, 0, "disk, reading; 0: no limit"),
    "disk_write_mb_s": Number(MB, 0, 1e7, 0, "disk, writing; 0: no limit"),
    "local_mb_s": Number(MB, 0, 1e7, 0, "bytes that stay on the machine; 0: no limit"),
    "idle_watts": Number(1, 0, 1e6, 0, "power when nothing runs; 0: not known"),
    "compute_watts": Number(1, 0, 1e6, 0, "on top while tasks compute, all cores"),
    "storage_watts": Number(1, 0, 1e6, 0, "on top while the store works"),
    "network_watts": Number(1, 0, 1e6, 0, "on top while the link works"),
    "price_per_hour": Number(1, 0, 1e9, 0, "price of one machine; 0: not known"),
    "site": Word((), "", "name of one of `[[sites]]`"),
    "host": Word(
        (),
        "",
        "name of one of `[[hosts]]`: a machine whose processors all of its nodes "
        "share (virtual machines, containers); empty: one of its own each",
    ),
}
NODES: dict[str, Field] = {
    "cores": Number(1, 1, 4096, None, "tasks at one time", whole=True),
    "speed": Number(1, 1e-3, 1e3, 1, "computing, against the machine of the recorded run"),
    **HARDWARE,
}
STORE: dict[str, Field] = {
    "servers": Word(SERVERS, "all", "machines that hold the data: `all` nodes, machines `apart`, "
        "`one` machine apart, or `local`: each node for itself, inputs on one machine apart"),
    "law": Word(("rotate", "random", "local", "one", "stripe"), "rotate", "where a chunk goes: "
        "from server to server, any, the writer's own, the first, over `stripe_width` servers"),
    "chunk_mb": Number(MB, 1e-3, 1e6, 64, "bytes of a file on one server"),
    "stripe_width": Number(1, 1, 10_000, 1, "servers of a file under the law `stripe`", whole=True),
    "copies": Number(1, 1, 64, 1, "copies of each chunk", whole=True),
    "window": Number(1, 1, 10_000, 1, "chunks that a client moves at one time", whole=True),
    "metadata_servers": Number(1, 1, 10_000, 1, "metadata services, each with a queue", whole=True),
    "open_ms": Number(MS, 0, 1e6, 0.3, "metadata service: opening a file"),
    "create_ms": Number(MS, 0, 1e6, 0.5, "metadata service: making a file"),
    "close_ms": Number(MS, 0, 1e6, 0.2, "metadata service: closing a written file"),
    "lookup_ms": Number(MS, 0, 1e6, 0.1, "metadata service: finding one chunk"),
    "latency_ms": Number(MS, 0, 1e6, 0.2, "there and back over the network"),
    "small_kb": Number(1e3, 0, 1e6, 64, "up to so many bytes are one request, not a transfer"),
    "request_ms": Number(MS, 0, 1e6, 0.2, "a server's work for one small request"),
    "read_wait_ms": Number(MS, 0, 1e6, 0, "client and network, once per file that a task reads, "
        "beside services and latency"),
    "write_wait_ms": Number(MS, 0, 1e6, 0, "the same per file that a task writes"),
    "copies_shared": Number(1, 0, 1, 0, "share of a read that comes from other copies although the "
        "reader's node holds one"),
    "copies_first_mb": Number(MB, 0, 1e6, 0, "so much of each read comes from any copy"),
    "first_copy_only": Flag(False, "readers take the first copy, even if their node holds another"),
    "busy_ms": Number(MS, 0, 1e6, 0, "what a call of the metadata service or a small request waits "
        "on a node with a full link"),
    "read_ahead_mb": Number(MB, 0, 1e6, 0, "what a reader fetches itself although another one of "
        "its node reads the same file: what its client reads ahead"),
    "call_bytes": Number(1, 0, 1e6, 0, "bytes over the links for one call of the metadata service"),
    "stream_mb_s": Number(MB, 0, 1e7, 0, "most that one transfer gets; 0: no limit"),
    "client_mb_s": Number(MB, 0, 1e7, 0, "most that the client of a node moves; 0: no limit"),
    "shared_mb_s": Number(MB, 0, 1e7, 0, "most that all nodes together move, from themselves as "
        "well, where they share the processors of one machine; 0: no limit"),
    "file_cpu_ms": Number(MS, 0, 1e6, 0, "processor of the node for each file opened or made; "
        "this and the next three count where nodes share processors (`host`)"),
    "client_cpu_ms_mb": Number(MS / MB, 0, 1e6, 0, "processor of the client's node for each MB"),
    "server_cpu_ms_mb": Number(MS / MB, 0, 1e6, 0, "processor of the server's machine for each MB"),
    "link_cpu_ms_mb": Number(MS / MB, 0, 1e6, 0, "processor at both ends of a link for each MB"),
    "client_cache": Flag(True, "a node reads again from its memory what it read or wrote"),
    "client_cache_writes": Flag(True, "the same of what it wrote; false: the first read fetches it "
        "(MooseFS)"),
    "warm": Flag(False, "the inputs are in the servers' memory at the start"),
    "site_latency_ms": Number(MS, 0, 1e6, 20, "on top of `latency_ms` between two sites"),
}  # fmt: skip  # a table
SCHEDULER: dict[str, Field] = {
    "kind": Word(SCHEDULERS, "idle-random", "any idle node, the one that holds most of the input, "
        "or the one of the plan"),
    "steal": Flag(True, "an idle node takes tasks that would rather run elsewhere"),
    "fill": Flag(False, "a task starts on the first idle node, as with batch systems that fill one "
        "node after the other; false: on any"),
    "task_ms": Number(MS, 0, 1e9, 0, "between the choice of a node and the start of a task"),
    "dispatch_ms": Number(MS, 0, 1e9, 0, "engine and scheduler, for each start: one after the "
        "other (100: ten tasks a second). This and `task_ms` are those of the recorded run where "
        "these were longer"),
}  # fmt: skip  # a table
MODEL: dict[str, Field] = {
    "error": Number(
        1,
        0,
        1,
        0.4,
        "error of the model itself, as a share of the time: half of a "
        "90 % interval. `calibrate` writes what predictions on measured stores were wrong by "
        "(docs/reference/gain.md); the default is an estimate for numbers that were not measured",
    )
}
SITES: dict[str, Field] = {
    "name": Word((), "", "as in `site`"),
    "up_mbit": Number(MBIT, 0.001, 1e8, None, "link of the site to the others"),
    "down_mbit": Number(MBIT, 0.001, 1e8, None, "link of the others to the site"),
}
LINKS: dict[str, Field] = {
    "a": Word((), "", "a site"),
    "b": Word((), "", "another site"),
    "round_trip_ms": Number(
        MS,
        0,
        1e6,
        None,
        "there and back between the two, for metadata "
        "(pairs without: `latency_ms` and `site_latency_ms`)",
    ),
}
HOSTS: dict[str, Field] = {
    "name": Word((), "", "as in `host`"),
    "processors": Number(
        1,
        0.01,
        65_536,
        None,
        "processors that its nodes share: for tasks "
        "and for what the store needs (`client_cpu_ms_mb` ...)",
    ),
}
REGISTRY: dict[str, Field] = {
    "lookup_ms": Number(MS, 0, 1e6, 0.1, "a registry's work to look an entry up"),
    "update_ms": Number(MS, 0, 1e6, 0.2, "a registry's work to make or change an entry"),
    "sync_ms": Number(MS, 0, 1e6, 0.2, "work for an entry that is copied between registries"),
}
# name of the table in the file -> (its keys, whether it may be repeated as [[name]])
TABLES: dict[str, tuple[dict[str, Field], bool]] = {
    "nodes": (NODES, True),
    "servers": (HARDWARE, False),
    "store": (STORE, False),
    "scheduler": (SCHEDULER, False),
    "model": (MODEL, False),
    "sites": (SITES, True),
    "links": (LINKS, True),
    "registry": (REGISTRY, False),
    "hosts": (HOSTS, True),
}
