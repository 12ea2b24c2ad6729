"""The pattern definitions, slow and obvious: pure Python over bytes one by one.

Shares no code with the analyzer. Every rule is written as docs/patterns.md words it, for
files of at most some thousand bytes. Used on random flows in tests/test_patterns_random.py.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from math import ceil, floor
from typing import Any

import networkx as nx

from tracehint.analyzer.model import Options

ORDER = [
    "concurrently_shared", "scatter", "gather", "broadcast", "reduce", "distribute", "pipeline",
    "partly_shared", "stage_in", "stage_out",
]  # fmt: skip


@dataclass
class Expected:
    """What the definitions say."""

    labels: dict[int, set[str]] = field(default_factory=lambda: defaultdict(set))
    m: dict[int, float] = field(default_factory=dict)
    groups: set[tuple[str, int, frozenset[int]]] = field(default_factory=set)
    primary: dict[int, str] = field(default_factory=dict)
    saves: dict[tuple[int, str], int] = field(default_factory=dict)
    edges: dict[tuple[int, int, int], set[str]] = field(default_factory=dict)


def bytes_of(row: dict[str, Any], fallback: int) -> set[int]:
    """Positions of all bytes in the row's ranges."""
    if not row["ranges"]:
        return set(range(fallback))
    return {k for a, b in row["ranges"] for k in range(a, b)}


class Reference:
    """One flow, looked at file by file."""

    def __init__(self, flow: Any, tasks: Any, options: Options, nodes: int) -> None:
        self.o, self.nodes = options, nodes
        self.tasks = {t["task"]: t for t in tasks.to_pylist()}
        self.files = {f["file"]: f for f in flow.files.to_pylist() if f["role"] != "software"}
        self.who = self._last_attempts()
        real = {t for t, row in self.tasks.items() if not row["engine"]}
        self.all_edges = flow.edges.to_pylist()
        self.edges = [
            {**e, "p": self.who[e["producer"]], "c": self.who[e["consumer"]]}
            for e in self.all_edges
            if {e["producer"], e["consumer"]} <= real
            and self.who[e["producer"]] != self.who[e["consumer"]]
        ]
        self.writers: dict[int, dict[int, dict[str, Any]]] = defaultdict(dict)
        for p in flow.producers.to_pylist():
            if p["task"] in real and not p["superseded"]:
                self._add_writer(p)
        self.readers: dict[int, dict[int, dict[str, Any]]] = defaultdict(dict)
        for c in sorted(flow.consumers.to_pylist(), key=lambda c: self._attempt(c["task"])):
            if c["task"] in real:
                self.readers[c["file"]][self.who[c["task"]]] = c  # a later attempt replaces it
        for file in self.readers:
            self._drop_own_readers(file)
        self.out = Expected()

    def positions(self, row: dict[str, Any], fallback: int) -> set[int]:
        """What the row's task touched, byte by byte; real runs take units of bytes."""
        return bytes_of(row, fallback)

    def weight(self, file: int, at: int) -> int:
        """Bytes in the unit at a position."""
        return 1

    def count(self, file: int, positions: Iterable[int]) -> int:
        """Bytes in all units."""
        return sum(self.weight(file, k) for k in positions)

    def _attempt(self, task: int) -> int:
        return int(self.tasks[task]["attempt"])

    def _last_attempts(self) -> dict[int, int]:
        who: dict[int, int] = {}
        series: dict[Any, list[int]] = {}
        for t in sorted(self.tasks.values(), key=lambda t: (t["start_s"], t["task"])):
            key = (t["type"], t["name"], t["command"])
            if t["attempt"] == 1 or key not in series:
                series[key] = []
            series[key].append(t["task"])
            last = max(series[key], key=lambda k: (self._attempt(k), k))
            who.update(dict.fromkeys(series[key], last))
        return who

    def _add_writer(self, p: dict[str, Any]) -> None:
        row = self.writers[p["file"]].setdefault(self.who[p["task"]], {"owned": 0, "bytes": []})
        row["owned"] += p["owned_bytes"]
        row["bytes"].append(self.positions(p, p["unique_bytes"]))

    def _drop_own_readers(self, file: int) -> None:
        fed = {e["c"] for e in self.edges if e["file"] == file}
        self.readers[file] = {
            t: c for t, c in self.readers[file].items()
            if t in fed or t not in self.writers[file]
        }  # fmt: skip

    def owners(self, file: int) -> dict[int, dict[str, Any]]:
        rows = self.writers[file]
        return {t: r for t, r in rows.items() if r["owned"] > 0} or rows

    def deciding(self, file: int) -> dict[int, set[int]]:
        """Readers that count, with the bytes that each read."""
        rows = self.readers[file]
        read = {t: self.positions(c, c["unique_bytes"]) for t, c in rows.items()}
        wide = {t: b for t, b in read.items() if not rows[t]["peek"]}
        if not wide:
            return read
        seen = set().union(*wide.values())
        rest = set().union(*read.values()) - seen
        if self.count(file, rest) > self.count(file, seen):
            return read
        return wide

    def mean_readers(self, file: int, read: dict[int, set[int]]) -> float:
        """m: readers per byte that any of them read, a shared header aside."""
        count = Counter(k for b in read.values() for k in b)
        if not count:
            return float(len(read))
        size = self.files[file]["size_bytes"]
        limit = min(self.o.header_bytes, floor(size * self.o.header_share))
        header = {
            k for k, n in count.items() if k < limit and n >= self.o.header_readers * len(read)
        } if len(read) > 1 else set()  # fmt: skip
        if len(header) == len(count):
            header = set()
        rest = {k: n for k, n in count.items() if k not in header}
        reads = sum(n * self.weight(file, k) for k, n in rest.items())
        return reads / self.count(file, rest)

    def run(self) -> Expected:
        shared = self.concurrent()
        for file, f in self.files.items():
            if f["role"] == "scratch":
                continue
            if file in shared:
                self.out.labels[file].add("concurrently_shared")
                continue
            self.by_itself(file, f)
        self.reduces(shared)
        self.distributes(shared)
        for file in list(self.out.labels):
            self.choose(file)
        self.on_edges()
        return self.out

    def concurrent(self) -> set[int]:
        graph = nx.DiGraph((e["p"], e["c"]) for e in self.edges)
        parts = [c for c in nx.strongly_connected_components(graph) if len(c) > 1]
        cyclic = {e["file"] for e in self.edges if any({e["p"], e["c"]} <= c for c in parts)}
        versions = Counter(f["lineage"] for f in self.files.values())
        many = {k for k, f in self.files.items() if versions[f["lineage"]] > self.o.max_versions}
        return cyclic | many

    def by_itself(self, file: int, f: dict[str, Any]) -> None:
        read, owners, o = self.deciding(file), self.owners(file), self.o
        n, labels = len(read), self.out.labels[file]
        m = self.out.m[file] = self.mean_readers(file, read) if n else 0.0
        if n >= 2:
            if m >= 1 + o.broadcast_slope * (n - 1):
                labels.add("broadcast")
            elif m <= o.scatter_max_m:
                labels.add("scatter")
            else:
                labels.add("partly_shared")
        if len(owners) >= 2:
            written = Counter(
                k for row in owners.values() for k in set().union(*row["bytes"])
            )  # fmt: skip
            twice = self.count(file, (k for k, times in written.items() if times > 1))
            if twice <= o.gather_max_overlap * max(1, self.count(file, written)):
                labels.add("gather")
        if n == 1 and len(owners) == 1 and self.feeds(file, *read):
            labels.add("pipeline")
        if n == 1 and f["role"] == "input":
            labels.add("stage_in")
        if f["role"] == "output":
            labels.add("stage_out")

    def feeds(self, file: int, consumer: int) -> bool:
        return any(e["file"] == file and e["c"] == consumer for e in self.edges)

    def single(self, shared: set[int]) -> dict[int, tuple[int, int]]:
        """file -> (its one reader that counts and that a producer feeds, bytes it read)."""
        out = {}
        for file, f in self.files.items():
            read = self.deciding(file)
            if f["role"] == "scratch" or file in shared or len(read) != 1:
                continue
            (c,) = read
            if self.feeds(file, c):
                out[file] = (c, self.readers[file][c]["unique_bytes"])
        return out

    def paths(self, members: Iterable[int]) -> int:
        """How many files, versions of one path being one."""
        return len({self.files[m]["lineage"] for m in members})

    def reduces(self, shared: set[int]) -> None:
        groups: dict[int, set[int]] = defaultdict(set)
        bytes_: Counter[int] = Counter()
        for file, (c, u) in self.single(shared).items():
            groups[c].add(file)
            bytes_[c] += u
        for c, members in groups.items():
            total = sum(
                rows[c]["unique_bytes"] for file, rows in self.readers.items()
                if c in rows and self.feeds(file, c)
            )  # fmt: skip
            makers = {e["p"] for e in self.edges if e["file"] in members and e["c"] == c}
            if self.paths(members) >= 2 and len(makers) >= 2 and (
                bytes_[c] >= self.o.reduce_min_share * total
            ):  # fmt: skip
                self.out.groups.add(("reduce", c, frozenset(members)))
                for file in members:
                    self.out.labels[file].add("reduce")

    def distributes(self, shared: set[int]) -> None:
        groups: dict[int, dict[int, int]] = defaultdict(dict)
        for file, (c, _) in self.single(shared).items():
            owners = self.owners(file)
            feeders = {e["p"] for e in self.edges if e["file"] == file and e["c"] == c}
            if len(owners) == 1 and set(owners) <= feeders:
                groups[next(iter(owners))][file] = c
        for p, members in groups.items():
            if self.paths(members) >= 2 and len(set(members.values())) >= 2:
                self.out.groups.add(("distribute", p, frozenset(members)))
                for file in members:
                    self.out.labels[file].add("distribute")

    # -- cost ---------------------------------------------------------------------------

    def choose(self, file: int) -> None:
        labels = self.out.labels[file]
        if not labels:
            return
        costs = {p: self.cost(file, p) for p in labels}
        groups = sorted(
            (p for p in labels if p in ("reduce", "distribute")),
            key=lambda p: (*(-round(x, 6) for x in self.group_saving(file, p)), ORDER.index(p)),
        )
        stands = [p for p in labels if p not in groups] + groups[:1]
        rank = lambda p: (*costs[p], ORDER.index(p))  # noqa: E731
        self.out.primary[file] = min(stands, key=rank)
        wait0, net0, _ = self.default(file)
        for p, (wait, net, _) in costs.items():
            pays = (wait, net) < (wait0, net0) and wait0 - wait + net0 - net >= (
                self.o.call_cost_bytes
            )  # fmt: skip
            self.out.saves[file, p] = round(net0 - net) if pays else 0

    def numbers(self, file: int) -> tuple[float, int, float]:
        read = self.deciding(file)
        total = sum(self.readers[file][t]["unique_bytes"] for t in read)
        return self.files[file]["size_bytes"], len(read), total / len(read) if read else 0.0

    def default(self, file: int) -> tuple[float, float, int]:
        s, n, u = self.numbers(file)
        k = self.nodes
        return (max(u, n * u / k) if n else 0.0, (k - 1) / k * (s + n * u), 1)

    def cost(self, file: int, pattern: str) -> tuple[float, float, int]:
        """(waiting, network, copies) of the placement that a label asks for."""
        s, n, u = self.numbers(file)
        k = self.nodes
        if pattern in ("concurrently_shared", "stage_out"):
            return self.default(file)
        if pattern == "stage_in":
            return (0.0, 0.0, 1)
        if pattern == "scatter":
            return (0.0, s * (k - 1) / k, 1)
        if pattern in ("broadcast", "partly_shared"):
            together = self.together(file)
            tries = {min(k, n, max(min(2, together), ceil(together / d))) for d in (2, 3)}
            offers = [
                (max(u, far * u / r), (r - 1) * s + far * u, r)
                if r > 1 else self.default(file)
                for r, far in ((r, max(0, n - r * max(1, n / k))) for r in tries)
            ]  # fmt: skip
            return min(offers)
        if pattern == "gather":
            owned = [r["owned"] for r in self.owners(file).values()]
            if n == 0:
                return (0.0, 0.0, 1)
            if n == 1:
                return (0.0, s * (1 - max(1 / k, max(owned) / max(1, sum(owned)))), 1)
            return (max(u, n * u / min(k, len(owned))), (k - 1) / k * n * u, 1)
        if pattern == "pipeline":
            away = u * (1 - self.pipeline_home(file))
            return (away, away, 1)
        return (0.0, u * (1 - self.group_home(file, pattern)), 1)

    def together(self, file: int) -> int:
        spans = [(self.tasks[t]["start_s"], self.tasks[t]["end_s"]) for t in self.deciding(file)]
        return max(sum(1 for a, b in spans if a <= at <= b) for at, _ in spans)

    def pipeline_home(self, file: int) -> float:
        piped = {}
        for other, labels in self.out.labels.items():
            if "pipeline" in labels:
                (c,) = self.deciding(other)
                (p,) = self.owners(other)
                piped[other] = (p, c, self.readers[other][c]["unique_bytes"])
        p, c, _ = piped[file]
        into: Counter[int] = Counter()
        out: Counter[int] = Counter()
        for q, d, u in piped.values():
            if d == c:
                into[q] += u
            if q == p:
                out[d] += u
        share = [max(x.values()) / sum(x.values()) if sum(x.values()) else 1 for x in (into, out)]
        return min(share)

    def group_of(self, file: int, pattern: str) -> tuple[str, int, frozenset[int]]:
        (group,) = [g for g in self.out.groups if g[0] == pattern and file in g[2]]
        return group

    def group_home(self, file: int, pattern: str) -> float:
        """Largest share of the group's bytes that one partner makes or takes."""
        _, task, members = self.group_of(file, pattern)
        by: Counter[int] = Counter()
        total = 0
        for f in members:
            (c,) = self.deciding(f)
            u = self.readers[f][c]["unique_bytes"]
            total += u
            if pattern == "distribute":
                by[c] += u
            else:
                for e in self.edges:
                    if e["file"] == f and e["c"] == task:
                        by[e["p"]] += e["bytes"]
        return max(1 / self.nodes, min(1, max(by.values()) / total) if total else 0)

    def group_saving(self, file: int, pattern: str) -> tuple[float, float]:
        _, _, members = self.group_of(file, pattern)
        wait = net = 0.0
        for f in members:
            wait0, net0, _ = self.default(f)
            w, x, _ = self.cost(f, pattern)
            wait, net = wait + wait0 - w, net + net0 - x
        return wait, net

    def on_edges(self) -> None:
        for e in self.all_edges:
            key = (e["producer"], e["file"], e["consumer"])
            mine = [x for x in self.edges if x["edge"] == e["edge"]]
            labels = self.out.labels.get(e["file"], set()) if mine else set()
            if mine and mine[0]["c"] not in self.deciding(e["file"]):
                labels = labels & {"gather", "concurrently_shared"}
            self.out.edges[key] = set(labels)
