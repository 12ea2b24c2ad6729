"""The data flow that a strace log proves, in the analysis's terms, by the slow references.

Bytes with identical accesses form one unit: the boundaries of all accesses of a file divide it into
units, and the byte-by-byte references of the tests process units with a length.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from tests.e2e.real.kernel import Kernel
from tests.e2e.real.model import Job
from tests.e2e.real.state import Access, Inode, Process
from tests.support import flow_reference, pattern_reference
from tests.support.byte_ranges import union
from tracehint.analyzer.model import Options

_FILE = ("file", "path", "version", "lineage", "size_bytes", "role")
_EDGE = ("edge", "producer", "file", "consumer", "bytes")

Use = tuple[str, str, str]  # job, path, read or write
Ranges = list[tuple[int, int]]  # sorted, disjoint


@dataclass
class Truth:
    """Ground truth of one run: bytes by use, edges, labels by (path, version)."""

    uses: dict[Use, Ranges] = field(default_factory=dict)  # which bytes
    mapped: set[Use] = field(default_factory=set)
    edges: dict[tuple[str, str, str], int] = field(default_factory=dict)
    labels: dict[tuple[str, int], set[str]] = field(default_factory=dict)
    primary: dict[tuple[str, int], str] = field(default_factory=dict)
    jobs: set[str] = field(default_factory=set)


def job_of(process: Process, jobs: Iterable[Job]) -> str | None:
    """Return the job of a process.

    It is the job of the outermost process whose command contains the marker of one job only.
    """
    line: list[Process] = []
    found: Process | None = process
    while found:
        line.append(found)
        found = found.parent
    for ancestor in reversed(line):
        for command in ancestor.commands:
            hits = [job.name for job in jobs if job.marker in " ".join(command)]
            if len(hits) == 1:
                return hits[0]
    return None


class _Units:
    """Units of one file between `borders`; `index` maps a border to the unit that starts there."""

    def __init__(self, accesses: list[Access], more: set[int]) -> None:
        self.borders = sorted(more | {x for a in accesses for x in (a.start, a.end)})
        self.index = {at: k for k, at in enumerate(self.borders)}

    def ranges(self, units: Iterable[int]) -> list[list[int]]:
        return [[self.borders[k], self.borders[k + 1]] for k in sorted(units)]

    def length(self, units: Iterable[int]) -> int:
        return sum(self.borders[k + 1] - self.borders[k] for k in units)


class WeightedPatterns(pattern_reference.Reference):
    """The pattern reference on units: a unit is known by its first byte and counts its length."""

    def __init__(
        self, flow: Any, tasks: Any, options: Options, nodes: int, units: dict[int, _Units]
    ) -> None:
        self.units = units
        super().__init__(flow, tasks, options, nodes)

    def positions(self, row: dict[str, Any], fallback: int) -> set[int]:
        units = self.units[row["file"]]
        return {
            units.borders[k]
            for a, b in row["ranges"]
            for k in range(units.index[a], units.index[b])
        }

    def weight(self, file: int, at: int) -> int:
        units = self.units[file]
        k = units.index[at]
        return units.borders[k + 1] - units.borders[k]


def establish(kernel: Kernel, jobs: list[Job], options: Options, nodes: int) -> Truth:
    """Derive everything that is compared, from the log's accesses and the definition's jobs."""
    owner = {id(p): job_of(p, jobs) for p in kernel.processes}
    truth = Truth(jobs={name for name in owner.values() if name})
    by_file: dict[int, list[Access]] = defaultdict(list)
    for access in kernel.accesses:
        by_file[id(access.file)].append(access)
    reference = flow_reference.Reference({"engine"})
    cut: dict[int, tuple[Inode, _Units]] = {}
    for inode in kernel.inodes:
        accesses = by_file.get(id(inode), [])
        header = min(options.header_bytes, int(inode.size * options.header_share))
        units = _Units(accesses, {0, header, inode.size, inode.before})
        file = _play(reference, inode, accesses, units, owner)
        cut[id(file)] = (inode, units)
        _count(truth, accesses, owner)
    reference.finish()
    _Tables(reference, cut, kernel, owner).label(truth, options, nodes)
    return truth


def _play(
    reference: flow_reference.Reference,
    inode: Inode,
    accesses: list[Access],
    units: _Units,
    owner: dict[int, str | None],
) -> flow_reference.File:
    """Replay one file's accesses in the byte-by-byte reference."""
    file = reference.create(
        inode.path, units.index[inode.before], existed=inode.existed, units=len(units.borders) - 1
    )
    for access in accesses:
        job = owner[id(access.process)] or "engine"
        start, end = units.index[access.start], units.index[access.end]
        if access.op == "truncate":
            reference.truncate(job, file, start)
        else:
            getattr(reference, access.op)(job, file, start, end)
    if not inode.links or inode.replaced:
        reference.remove(file, replaced=inode.replaced)
    return file


def _count(truth: Truth, accesses: list[Access], owner: dict[int, str | None]) -> None:
    """Add the bytes by job and direction to the truth."""
    for access in accesses:
        job = owner[id(access.process)]
        if job and access.op != "truncate":
            use = (job, access.file.path, access.op)
            truth.uses[use] = union([*truth.uses.get(use, []), (access.start, access.end)])
            if access.mapped:
                truth.mapped.add(use)


class _Tables:
    """Rows in the form of the analyzer's tables, for the pattern reference."""

    def __init__(
        self,
        reference: flow_reference.Reference,
        cut: dict[int, tuple[Inode, _Units]],
        kernel: Kernel,
        owner: dict[int, str | None],
    ) -> None:
        self.reference, self.cut = reference, cut
        spans: dict[str, list[float]] = defaultdict(list)
        for process in kernel.processes:
            if name := owner[id(process)]:
                spans[name] += [process.start, process.end]
        self.tasks = [
            {
                "task": k,
                "name": name,
                "type": name,
                "command": name,
                "start_s": min(times),
                "end_s": max(times),
                "attempt": 1,
                "engine": False,
            }
            for k, (name, times) in enumerate(sorted(spans.items()))
        ]
        self.number = {t["name"]: t["task"] for t in self.tasks}

    def label(self, truth: Truth, options: Options, nodes: int) -> None:
        files: list[dict[str, Any]] = []
        rows: dict[str, list[dict[str, Any]]] = {"producers": [], "consumers": [], "edges": []}
        entries = self.reference.entries()
        lines = {path: k for k, path in enumerate(dict.fromkeys(e[0] for e in entries))}
        last = {path: number for path, number, _, _ in entries}
        units = {}
        for k, (path, number, file, version) in enumerate(entries):
            units[k] = self.cut[id(file)][1]
            size = units[k].borders[
                min(file.sizes.get(version, file.size), len(units[k].borders) - 1)
            ]
            role = self.reference.role(file, version, last=last[path] == number)
            row = (k, path, number, lines[path], size, role)
            files.append(dict(zip(_FILE, row, strict=True)))
            self._users(rows, k, file, version, units[k], size, options)
            for pair, read in self.reference.edges(file, version).items():
                key = (pair[0], path, pair[1])
                count = units[k].length(read)
                truth.edges[key] = truth.edges.get(key, 0) + count
                made, used = (self.number[name] for name in pair)
                edge = (len(rows["edges"]), made, k, used, count)
                rows["edges"].append(dict(zip(_EDGE, edge, strict=True)))
        flow = _Flow(files, **rows)
        expected = WeightedPatterns(flow, _Rows(self.tasks), options, nodes, units).run()
        for row in files:
            key = (row["path"], row["version"])
            truth.labels[key] = set(expected.labels.get(row["file"], set()))
            if row["file"] in expected.primary:
                truth.primary[key] = expected.primary[row["file"]]

    def _users(
        self,
        rows: dict[str, list[dict[str, Any]]],
        k: int,
        file: flow_reference.File,
        version: int,
        units: _Units,
        size: int,
        options: Options,
    ) -> None:
        for task, (_, _, _, superseded) in self.reference.producers(file, version).items():
            wrote = file.wrote.get(version, {}).get(task, set())
            owned = file.owned.get(version, {}).get(task, set())
            rows["producers"].append(
                {
                    "file": k,
                    "task": self.number[task],
                    "owned_bytes": units.length(owned),
                    "unique_bytes": units.length(wrote or owned),
                    "superseded": superseded,
                    "ranges": units.ranges(wrote or owned),
                }
            )
        for task, read in self.reference.consumers(file, version).items():
            count = units.length(read)
            peek = count < options.peek_share * size and count < options.peek_bytes
            rows["consumers"].append(
                {
                    "file": k,
                    "task": self.number[task],
                    "unique_bytes": count,
                    "peek": peek,
                    "ranges": units.ranges(read),
                }
            )


class _Rows:
    """Rows with the interface of a table."""

    def __init__(self, rows: list[dict[str, Any]]) -> None:
        self.rows = rows

    def to_pylist(self) -> list[dict[str, Any]]:
        return self.rows


class _Flow:
    """The tables that the pattern reference reads."""

    def __init__(
        self,
        files: list[dict[str, Any]],
        producers: list[dict[str, Any]],
        consumers: list[dict[str, Any]],
        edges: list[dict[str, Any]],
    ) -> None:
        self.files, self.producers = _Rows(files), _Rows(producers)
        self.consumers, self.edges = _Rows(consumers), _Rows(edges)
