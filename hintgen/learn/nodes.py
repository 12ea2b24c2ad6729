"""Learning: files of one shape together, mixed ones split.

A Node is a template with the cells (cells.py) that it covers.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

from tracehint.hintgen.hints.fitting import Part
from tracehint.hintgen.hints.template import Template, template_of
from tracehint.hintgen.learn.cells import Cell, Types
from tracehint.hintgen.learn.shapes import template_of_shape


@dataclass
class Node:
    """A template and what it covers."""

    template: Template
    cells: list[Cell]
    need: str = ""  # what must be declared for it to fire: "", "use", "types"
    exclude: list[Template] = field(default_factory=list)
    level: int = 0  # 0 seen shapes, 1 generalised by name, 2 by types
    siblings: tuple[str, ...] = ()  # templates of names that must be there: family.py
    per_pair: int = 0  # files between the same two tasks, where it was always that many; 0: varied

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
        if part not in ("n", "word", "alnum"):  # a hash or date never comes again
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
