"""A flow byte by byte, as the reference of the patterns uses it (pattern_reference.py)."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from math import floor, inf
from typing import Any

from tracehint.analyzer.model import Options


@dataclass
class Expected:
    """Results of the definitions."""

    labels: dict[int, set[str]] = field(default_factory=lambda: defaultdict(set))
    m: dict[int, float] = field(default_factory=dict)
    groups: set[tuple[str, int, frozenset[int]]] = field(default_factory=set)
    primary: dict[int, str] = field(default_factory=dict)
    saves: dict[tuple[int, str], int] = field(default_factory=dict)
    edges: dict[tuple[int, int, int], set[str]] = field(default_factory=dict)


def bytes_of(row: dict[str, Any], fallback: int) -> set[int]:
    """Return the positions of all bytes in the row's ranges."""
    if not row["ranges"]:
        return set(range(fallback))
    return {k for a, b in row["ranges"] for k in range(a, b)}


class SeenFlow:
    """Writers, readers and owners of each file; subclasses with the definitions fill `out`."""

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
        self.last_write = {  # the truth of real runs has no times of single writes
            (p["file"], p["task"]): p.get("last_s", inf) for p in flow.producers.to_pylist()
        }
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
        """Return the positions that the row's task accessed; real runs use units of bytes."""
        return bytes_of(row, fallback)

    def weight(self, file: int, at: int) -> int:
        """Return the number of bytes in the unit at a position."""
        return 1

    def count(self, file: int, positions: Iterable[int]) -> int:
        """Return the number of bytes in all units."""
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
            t: c for t, c in self.readers[file].items() if t in fed or t not in self.writers[file]
        }

    def owners(self, file: int) -> dict[int, dict[str, Any]]:
        rows = self.writers[file]
        return {t: r for t, r in rows.items() if r["owned"] > 0} or rows

    def deciding(self, file: int) -> dict[int, set[int]]:
        """Return the readers that count, with the bytes that each read."""
        rows = self.readers[file]
        read = {t: self.positions(c, c["unique_bytes"]) for t, c in rows.items()}
        wide = {t: b for t, b in read.items() if not rows[t]["peek"]}
        seen = set().union(*wide.values())
        rest = set().union(*read.values()) - seen
        if not wide or self.count(file, rest) > self.count(file, seen):
            wide = read
        header = max(self.header_of(file, wide), default=-1)
        return {t: b for t, b in wide.items() if not b or max(b) > header}

    def header_of(self, file: int, read: dict[int, set[int]]) -> set[int]:
        """Return the leading bytes that nearly all readers read, unless they read nothing else."""
        count = Counter(k for b in read.values() for k in b)
        size = self.files[file]["size_bytes"]
        limit = min(self.o.header_bytes, floor(size * self.o.header_share))
        least = self.o.header_readers * len(read)
        header = {k for k, n in count.items() if len(read) > 1 and k < limit and n >= least}
        return set() if len(header) == len(count) else header

    def own_regions(self, file: int, used: dict[int, set[int]], header: Iterable[int] = ()) -> int:
        """Count the tasks that used mostly bytes of their own, behind the shared header."""
        begin = max(header, default=-1) + 1
        count = Counter(k for b in used.values() for k in b)
        found = 0
        for positions in used.values():
            behind = [k for k in positions if k >= begin]
            own = self.count(file, (k for k in behind if count[k] == 1))
            found += own > 0 and self.count(file, behind) <= 2 * own
        return found

    def mean_readers(self, file: int, read: dict[int, set[int]]) -> float:
        """Return m: readers per byte that any of them read, without a shared header."""
        count = Counter(k for b in read.values() for k in b)
        if not count:
            return float(len(read))
        header = self.header_of(file, read)
        rest = {k: n for k, n in count.items() if k not in header}
        reads = sum(n * self.weight(file, k) for k, n in rest.items())
        return reads / self.count(file, rest)
