"""Learning: nodes whose names differ only in words become one."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass, field

from tracehint.hintgen.hints.template import MAX_AMBIGUOUS, Template, ambiguity, template_of
from tracehint.hintgen.learn.cells import Types
from tracehint.hintgen.learn.nodes import Node
from tracehint.hintgen.learn.shapes import fields, merge_fields, skeleton
from tracehint.hintgen.text.masks import MARKS

MIN_WORDS = 3  # different words at one place from which it becomes a placeholder


Table = dict[str, set[str]]  # use -> patterns


@dataclass
class _Cluster:
    """Nodes of which no use has different patterns in two of them."""

    nodes: list[Node] = field(default_factory=list)
    types: set[tuple[Types, Types]] = field(default_factory=set)
    table: Table = field(default_factory=dict)

    def takes(self, types: set[tuple[Types, Types]], table: Table) -> bool:
        """Whether a node with these is of the same types and contradicts none that is in it."""
        shared = table.keys() & self.table.keys()
        return not types.isdisjoint(self.types) and all(
            table[use] == self.table[use] for use in shared
        )

    def add(self, node: Node, types: set[tuple[Types, Types]], table: Table) -> None:
        """Take the node in."""
        self.nodes.append(node)
        self.types |= types
        self.table |= table


def merge(nodes: list[Node]) -> list[Node]:
    """Nodes whose names differ only in words, of tasks of the same types, become one.

    Not where the merged template would catch a node of another pattern.
    """
    by_skeleton: dict[tuple[bytes, str], list[Node]] = defaultdict(list)
    for node in nodes:
        by_skeleton[skeleton(_shape(node)), node.need].append(node)
    out: list[Node] = []
    for group in by_skeleton.values():
        for cluster in _clusters(group):
            if len(cluster) == 1:
                out += cluster
                continue
            strangers = [node for node in group if node.patterns != cluster[0].patterns]
            out += _merged(cluster, strangers)
    return out


def _clusters(group: list[Node]) -> list[list[Node]]:
    """Each node with the first nodes that it goes with, in order."""
    clusters: list[_Cluster] = []
    for node in group:
        types, table = node.types, node.table
        home = next((c for c in clusters if c.takes(types, table)), None)
        if home is None:
            home = _Cluster()
            clusters.append(home)
        home.add(node, types, table)
    return [cluster.nodes for cluster in clusters]


def _merged(cluster: list[Node], strangers: list[Node]) -> list[Node]:
    """The cluster as one node; else, where that is too loose, merged at one place each."""
    whole = _one(cluster, strangers)
    if whole is not None:
        return [whole]
    for at in range(1, len(fields(_shape(cluster[0]))), 2):
        alike: dict[tuple[bytes, ...], list[Node]] = defaultdict(list)
        for node in cluster:
            columns = fields(_shape(node))
            alike[(*columns[:at], b"", *columns[at + 1 :])].append(node)
        if len(alike) < len(cluster):
            made = [(part, _one(part, strangers)) for part in alike.values()]
            if any(node is not None for _, node in made):
                return [n for part, node in made for n in ([node] if node else part)]
    return cluster


def _one(cluster: list[Node], strangers: list[Node]) -> Node | None:
    """All of the cluster under one template; None where evidence does not reach so far."""
    shapes = [_shape(node) for node in cluster]
    variety = max(len(set(column)) for column in zip(*map(fields, shapes), strict=True))
    if len(cluster) == 1 or variety < MIN_WORDS:
        return None
    template = template_of(merge_fields(shapes))
    if ambiguity(template) > MAX_AMBIGUOUS or not says_something(template):
        return None
    if any(template.match(path) is not None for node in strangers for path in node.samples):
        return None
    cells = [cell for node in cluster for cell in node.cells]
    return Node(template, cells, need=cluster[0].need)


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
