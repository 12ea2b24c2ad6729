"""Learning, first half: files of one shape together, mixed ones split, like ones merged.

A Cell is a set of files that the learner cannot tell apart: same shape, types,
use and pattern. A Node is a template with the cells that it covers.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from tracehint.hintgen.shapes import (
    MARKS,
    merge_fields,
    shapes_of,
    skeleton,
    template_of_shape,
)
from tracehint.hintgen.template import (
    MAX_AMBIGUOUS,
    Part,
    Template,
    ambiguity,
    template_of,
)

SAMPLES = 400  # paths per cell kept for naming groups and for checks
Types = tuple[str, ...]


@dataclass(frozen=True)
class Cell:
    """Files with the same shape, types, use and pattern."""

    shape: bytes
    producers: Types
    consumers: Types
    use: str
    pattern: str
    files: int
    size_sum: int  # bytes of all files
    saves_bytes: int
    confidence: float
    readers: int  # median
    min_readers: int
    max_readers: int
    size: int  # median
    region: int
    starts: tuple[int, ...]
    samples: tuple[tuple[bytes, int | None], ...]  # path, group
    traits: tuple[tuple[str, Any], ...]  # for advisory hints


@dataclass
class Node:
    """A template and what it covers."""

    template: Template
    cells: list[Cell]
    need: str = ""  # what must be declared for it to fire: "", "use", "types"
    exclude: list[Template] = field(default_factory=list)
    level: int = 0  # 0 seen shapes, 1 generalised by name, 2 by types

    @property
    def table(self) -> dict[str, set[str]]:
        """use -> patterns seen."""
        out: dict[str, set[str]] = defaultdict(set)
        for cell in self.cells:
            out[cell.use].add(cell.pattern)
        return dict(out)

    @property
    def patterns(self) -> set[str]:
        """All patterns seen, "" for none."""
        return {cell.pattern for cell in self.cells}

    @property
    def decided(self) -> bool:
        """True when the use tells the pattern."""
        return all(len(patterns) == 1 for patterns in self.table.values())

    @property
    def files(self) -> int:
        return sum(cell.files for cell in self.cells)

    @property
    def size_sum(self) -> int:
        return sum(cell.size_sum for cell in self.cells)

    @property
    def types(self) -> set[tuple[Types, Types]]:
        """(producing types, consuming types) of its files."""
        return {(cell.producers, cell.consumers) for cell in self.cells}

    @property
    def samples(self) -> list[bytes]:
        """One path per cell."""
        return [cell.samples[0][0] for cell in self.cells]


_CELLS = """
select shape, producer_types, consumer_types, use, pattern,
       count(*) as files, sum(size_bytes)::bigint as size_sum, sum(saves_bytes)::bigint as saves_bytes,
       min(confidence) as confidence, median(len(consumers))::bigint as readers,
       min(len(consumers)) as min_readers, max(len(consumers)) as max_readers,
       median(size_bytes)::bigint as size, coalesce(median(region_bytes), 0)::bigint as region,
       any_value(starts) as starts,
       list({'path': path, 'grp': grp} order by path)[1:?] as samples,
       any_value(last_reader) as last_reader, count(distinct last_reader) as last_readers,
       any_value(role) as role, count(distinct role) as roles, bool_and(random) as random,
       coalesce(median(reread), 1) as reread, bool_and(deleted) as deleted
from facts group by all order by shape, producer_types, consumer_types, use, pattern
"""
_TRAITS = ("last_reader", "last_readers", "role", "roles", "random", "reread", "deleted")


def cells_of(facts: pa.Table) -> list[Cell]:
    """Facts grouped by (shape, types, use, pattern); see `facts.facts_of`."""
    import duckdb

    con = duckdb.connect()
    paths = facts["path"].combine_chunks()
    con.register("facts", facts.append_column("shape", shapes_of(paths)))
    query = _CELLS.replace("?", str(SAMPLES))
    rows = con.sql(query).to_arrow_table().to_pylist() if facts.num_rows else []
    con.close()
    return [_cell(row) for row in rows]


def _cell(row: dict[str, Any]) -> Cell:
    return Cell(
        producers=tuple(row["producer_types"]),
        consumers=tuple(row["consumer_types"]),
        starts=tuple(row["starts"] or ()),
        samples=tuple((s["path"], s["grp"]) for s in row["samples"]),
        traits=tuple((key, row[key]) for key in _TRAITS),
        **{
            key: row[key]
            for key in (
                "shape", "use", "pattern", "files", "size_sum", "saves_bytes", "confidence",
                "readers", "min_readers", "max_readers", "size", "region",
            )
        },
    )  # fmt: skip


def nodes_of_shapes(cells: Iterable[Cell]) -> list[Node]:
    """One node per shape."""
    by_shape: dict[bytes, list[Cell]] = defaultdict(list)
    for cell in cells:
        by_shape[cell.shape].append(cell)
    return [Node(template_of_shape(shape), group) for shape, group in by_shape.items()]


def split(node: Node) -> tuple[list[Node], list[Node]]:
    """(nodes whose use tells the pattern, mixed nodes that nothing known beforehand splits)."""
    if node.decided:
        return [node], []
    by_types: dict[tuple[Types, Types], list[Cell]] = defaultdict(list)
    for cell in node.cells:
        by_types[cell.producers, cell.consumers].append(cell)
    good: list[Node] = []
    mixed: list[Node] = []
    for cells in by_types.values():
        part = Node(node.template, cells, need="types")
        if part.decided:
            good.append(part)
            continue
        pinned = _pin(part)
        (good if pinned else mixed).extend(pinned or [part])
    return good, mixed


def _pin(node: Node) -> list[Node]:
    """Fix one placeholder to the few values that tell the pattern; empty: none does."""
    parts = list(node.template.parts)
    for at, part in enumerate(parts):
        if not isinstance(part, str):
            continue
        hole = sum(isinstance(p, str) for p in parts[:at])
        by_value: dict[bytes, list[Cell]] = defaultdict(list)
        for cell in node.cells:
            values = {(node.template.match(path) or ())[hole] for path, _ in cell.samples}
            if len(cell.samples) < cell.files or len(values) > 4:
                break
            for value in values:
                by_value[value].append(cell)
        else:
            fixed: list[Part]
            out = []
            for value, cells in by_value.items():
                fixed = [*parts[:at], value, *parts[at + 1 :]]
                out.append(Node(template_of(fixed), cells, need=node.need))
            if len(out) <= 8 and all(n.decided for n in out):
                return out
    return []


def compatible(a: Node, b: Node) -> bool:
    """True when no use has different patterns in the two."""
    ours, theirs = a.table, b.table
    return all(ours[use] == theirs[use] for use in ours.keys() & theirs.keys())


def merge(nodes: list[Node]) -> list[Node]:
    """Nodes whose names differ only in words, of tasks of the same types, become one."""
    by_skeleton: dict[tuple[bytes, str], list[Node]] = defaultdict(list)
    for node in nodes:
        by_skeleton[skeleton(_shape(node)), node.need].append(node)
    out: list[Node] = []
    for group in by_skeleton.values():
        clusters: list[list[Node]] = []
        for node in group:
            home = next((c for c in clusters if _joins(node, c)), None)
            if home is None:
                clusters.append([node])
            else:
                home.append(node)
        for cluster in clusters:
            out += _merged(cluster)
    return out


def says_something(template: Template) -> bool:
    """True when some letter or digit of the base name is fixed."""
    base = template.text.rpartition("/")[2]
    return any(char.isalnum() for char in re.sub(r"\{[a-z]+\}", "", base))


def _shape(node: Node) -> bytes:
    back = {name: mark for mark, name in MARKS.items()}
    return b"".join(
        part if isinstance(part, bytes) else b"\x00" + back.get(part, "a").encode()
        for part in node.template.parts
    )


def _joins(node: Node, cluster: list[Node]) -> bool:
    types = set().union(*(other.types for other in cluster))
    return bool(node.types & types) and all(compatible(node, other) for other in cluster)


def _merged(cluster: list[Node]) -> list[Node]:
    if len(cluster) == 1:
        return cluster
    template = template_of(merge_fields([_shape(node) for node in cluster]))
    if ambiguity(template) > MAX_AMBIGUOUS or not says_something(template):
        return cluster
    cells = [cell for node in cluster for cell in node.cells]
    return [Node(template, cells, need=cluster[0].need)]
