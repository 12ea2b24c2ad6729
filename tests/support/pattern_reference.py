"""The pattern definitions, slow and obvious: pure Python over single bytes.

Shares no code with the analyzer. Every rule follows the wording of docs/patterns.md, for files of
at most a few thousand bytes. Used on random flows in tests/test_patterns_random.py.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import Any

import networkx as nx

from tests.support.reference_costs import Costs
from tests.support.reference_flow import Expected
from tracehint.analyzer.catalogue import MIN_SHARING

ORDER = [
    "concurrently_shared", "scatter", "gather", "broadcast", "reduce", "distribute", "pipeline",
    "partly_shared", "stage_in", "stage_out",
]  # fmt: skip  # a table


class Reference(Costs):
    """One flow, labelled file by file."""

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
        if n >= MIN_SHARING:
            if m >= 1 + o.broadcast_slope * (n - 1):
                labels.add("broadcast")
            elif (
                m <= o.scatter_max_m
                and self.own_regions(file, read, self.header_of(file, read)) >= MIN_SHARING
            ):
                labels.add("scatter")
            else:
                labels.add("partly_shared")
        wrote = {t: set().union(*row["bytes"]) for t, row in owners.items()}
        if self.own_regions(file, wrote) >= MIN_SHARING:
            written = Counter(k for positions in wrote.values() for k in positions)
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
        """Map a file to (its only counting reader, if a producer feeds it; bytes it read)."""
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
        """Count the files, with the versions of a path as one."""
        return len({self.files[m]["lineage"] for m in members})

    def reduces(self, shared: set[int]) -> None:
        groups: dict[int, set[int]] = defaultdict(set)
        bytes_: Counter[int] = Counter()
        for file, (c, u) in self.single(shared).items():
            groups[c].add(file)
            bytes_[c] += u
        for c, members in groups.items():
            total = sum(
                rows[c]["unique_bytes"]
                for file, rows in self.readers.items()
                if c in rows and self.feeds(file, c)
            )
            makers = {e["p"] for e in self.edges if e["file"] in members and e["c"] == c}
            if (
                self.paths(members) >= 2
                and len(makers) >= 2
                and (bytes_[c] >= self.o.reduce_min_share * total)
            ):
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
            )
            self.out.saves[file, p] = round(net0 - net) if pays else 0

    def on_edges(self) -> None:
        for e in self.all_edges:
            key = (e["producer"], e["file"], e["consumer"])
            mine = [x for x in self.edges if x["edge"] == e["edge"]]
            labels = self.out.labels.get(e["file"], set()) if mine else set()
            if mine and mine[0]["c"] not in self.deciding(e["file"]):
                labels = labels & {"gather", "concurrently_shared"}
            self.out.edges[key] = set(labels)
