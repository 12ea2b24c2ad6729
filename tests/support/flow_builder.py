"""Build the analyzer's flow tables by hand: tasks, files, written and read bytes.

    flow = FlowBuilder()
    a, b = flow.task("gen"), flow.task("use")
    f = flow.file("x", 100)
    flow.write(a, f, 0, 100)
    flow.read(b, f, 0, 100)
    patterns = flow.labels()

One file is one version: the last writer of a byte owns it, all reads follow all writes.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from tests.support.byte_ranges import Range, common, length, minus, union
from tests.support.rows import file_row, task_row
from tracehint.analyzer import model
from tracehint.analyzer.model import Options


def _edge(
    producer: int | str, file: int | str, consumer: int | str, moved: int, via: str, order: str
) -> dict[str, Any]:
    ends = {"producer": producer, "file": file, "consumer": consumer}
    return {**ends, "bytes": moved, "via": via, "order": order}


def _role(made: object, used: object, others: bool) -> str:
    """Return a file's role in the run; `others`: read by tasks that did not write it."""
    if not made:
        return "input"
    if others:
        return "intermediate"
    return "scratch" if used else "output"


@dataclass
class Flow:
    """The tables that `patterns.label` expects."""

    files: pa.Table
    producers: pa.Table
    consumers: pa.Table
    edges: pa.Table


@dataclass
class FlowBuilder:
    """Collects tasks, files and accesses; ids count from 1."""

    tasks: list[dict[str, Any]] = field(default_factory=list)
    files: list[dict[str, Any]] = field(default_factory=list)
    writes: list[tuple[int, int, int, int, float, float]] = field(default_factory=list)
    reads: list[tuple[int, int, int, int, float, float]] = field(default_factory=list)
    dead: set[tuple[int, int]] = field(default_factory=set)
    unsure: set[tuple[int, int, int]] = field(default_factory=set)
    extra_edges: list[tuple[int, int, int, int]] = field(default_factory=list)
    options: Options = field(default_factory=Options)
    blind_to: list[str] = field(default_factory=list)
    lost: dict[int, tuple[int, int]] = field(default_factory=dict)  # task -> lost, seen
    gone: dict[int, tuple[float, float]] = field(default_factory=dict)  # accesses: lost, recorded
    nodes: int = 4

    def task(
        self,
        name: str,
        *,
        start: float | None = None,
        end: float | None = None,
        engine: bool = False,
        attempt: int = 1,
    ) -> int:
        task = len(self.tasks) + 1
        start = float(task) if start is None else start
        times = {"start_s": start, "end_s": start + 1 if end is None else end}
        more = {"type": name.split()[0], "attempt": attempt, "engine": engine}
        self.tasks.append(task_row(task, name, **times, **more))
        return task

    def file(
        self,
        path: str,
        size: int,
        *,
        role: str | None = None,
        version: int = 0,
        exact: float = 1.0,
        lineage: int | None = None,
    ) -> int:
        """Add a file version; without `role` it follows from its writers and readers."""
        file = len(self.files) + 1
        more = {"lineage": lineage or file, "version": version, "exact_share": exact}
        self.files.append(file_row(file, path.encode(), size, role=role, **more))
        return file

    def write(
        self, task: int, file: int, a: int, b: int, at: float = 1.0, until: float | None = None
    ) -> None:
        self.writes.append((task, file, a, b, at, at if until is None else until))

    def read(
        self, task: int, file: int, a: int, b: int, at: float = 10.0, until: float | None = None
    ) -> None:
        self.reads.append((task, file, a, b, at, at if until is None else until))

    def _spans(
        self, rows: list[tuple[int, int, int, int, float, float]], file: int
    ) -> dict[int, dict[str, Any]]:
        out: dict[int, dict[str, Any]] = {}
        for task, where, a, b, at, until in rows:
            if where != file:
                continue
            row = out.setdefault(task, {"raw": [], "bytes": 0, "first_s": at, "last_s": until})
            row["raw"].append((a, b))
            row["bytes"] += b - a
            row["first_s"], row["last_s"] = min(row["first_s"], at), max(row["last_s"], until)
        for task, row in out.items():
            row["ranges"] = union(row["raw"])
            row["unique_bytes"] = length(row["ranges"])
            row.update(file=file, task=task)
        return out

    def owned(self, file: int) -> dict[int, list[Range]]:
        """Return the bytes that each task wrote last; later calls of `write` win."""
        owner: dict[int, list[Range]] = {}
        for task, where, a, b, _, _ in self.writes:
            if where == file:
                owner = {t: minus(r, [(a, b)]) for t, r in owner.items()}
                owner[task] = union([*owner.get(task, []), (a, b)])
        return owner

    def flow(self) -> Flow:
        """Return the tables as analyzer.flow would create them."""
        producers, consumers, edges, files = [], [], [], []
        for row in self.files:
            file, size = row["file"], row["size_bytes"]
            owned = self.owned(file)
            made = self._spans(self.writes, file)
            used = self._spans(self.reads, file)
            for task, p in made.items():
                superseded = (task, file) in self.dead or not length(owned[task])
                kept = {"owned_bytes": length(owned[task]), "superseded": superseded}
                producers.append({**p, **kept, "how": ["write"]})
            others = False
            for task, c in used.items():
                edge = [(p, common(c["ranges"], r)) for p, r in owned.items() if p != task]
                edge = [(p, r) for p, r in edge if r and (p, file) not in self.dead]
                cover = c["unique_bytes"] / size if size else 1.0
                peek = cover < self.options.peek_share and (
                    c["unique_bytes"] < self.options.peek_bytes
                )
                consumers.append({**c, "cover": cover, "peek": peek, "how": ["read"]})
                others = others or bool(edge)
                for p, r in edge:
                    order = "uncertain" if (p, file, task) in self.unsure else "certain"
                    edges.append(_edge(p, file, task, length(r), "data", order))
            files.append({**row, "role": row["role"] or _role(made, used, others)})
        edges += [_edge(*extra, "engine_copy", "certain") for extra in self.extra_edges]
        numbered = [{"edge": k + 1, **e} for k, e in enumerate(edges)]
        return Flow(
            pa.Table.from_pylist(files, schema=model.FILES),
            pa.Table.from_pylist(producers, schema=model.PRODUCERS),
            pa.Table.from_pylist(consumers, schema=model.CONSUMERS),
            pa.Table.from_pylist(numbered, schema=model.EDGES),
        )

    def task_table(self) -> pa.Table:
        return pa.Table.from_pylist(self.tasks, schema=model.TASKS)

    def tables(self) -> tuple[pa.Table, pa.Table]:
        """Return the result of `patterns.label` for this flow."""
        from tracehint.analyzer.patterns.run_labels import label

        run = {"nodes": self.nodes, "completeness": {"blind_to": self.blind_to}}
        found = label(self.flow(), self.task_table(), self.options, run, self.losses())
        return found.patterns, found.groups

    def losses(self) -> pa.Table | None:
        """Return losses by task, in the columns of `analyzer.run.lost_events`."""
        if not self.lost and not self.gone:
            return None
        rows = []
        for task in sorted(self.lost.keys() | self.gone.keys()):
            (lost, seen), (gone, opens) = self.lost.get(task, (0, 0)), self.gone.get(task, (0, 0))
            rows.append(
                {
                    "task": task,
                    "lost": lost + gone,
                    "seen": seen + opens,
                    "ranges": lost,
                    "gone": float(gone),
                    "opens": float(opens),
                }
            )
        return pa.Table.from_pylist(rows)

    def labels(self, **options: Any) -> Labels:
        """Label the flow and return the result with short queries."""
        if options:
            self.options = replace(self.options, **options)
        patterns, groups = self.tables()
        return Labels(patterns.to_pylist(), groups.to_pylist(), self.flow().edges.to_pylist())


@dataclass
class Labels:
    """Rows of the two result tables."""

    patterns: list[dict[str, Any]]
    groups: list[dict[str, Any]]
    edges: list[dict[str, Any]]

    def of(self, file: int) -> set[str]:
        return {p["pattern"] for p in self.patterns if p["file"] == file and p["edge"] is None}

    def get(self, file: int, pattern: str) -> dict[str, Any]:
        (row,) = [
            p
            for p in self.patterns
            if p["file"] == file and p["edge"] is None and p["pattern"] == pattern
        ]
        return row

    def evidence(self, file: int, pattern: str) -> dict[str, Any]:
        data: dict[str, Any] = json.loads(self.get(file, pattern)["evidence"])
        return data

    def primary(self, file: int) -> str | None:
        names = [
            p["pattern"]
            for p in self.patterns
            if p["file"] == file and p["edge"] is None and p["primary"]
        ]
        assert len(names) <= 1, names
        return names[0] if names else None

    def on_edge(self, producer: int, file: int, consumer: int) -> list[str]:
        (edge,) = [
            e["edge"]
            for e in self.edges
            if (e["producer"], e["file"], e["consumer"]) == (producer, file, consumer)
        ]
        return [p["pattern"] for p in self.patterns if p["edge"] == edge]
