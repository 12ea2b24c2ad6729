"""Learning: nodes whose names differ only in words become one."""

from __future__ import annotations

import re
from collections import defaultdict

from tracehint.hintgen.hints.template import MAX_AMBIGUOUS, Template, ambiguity, template_of
from tracehint.hintgen.learn.nodes import Node
from tracehint.hintgen.learn.shapes import fields, merge_fields, skeleton
from tracehint.hintgen.text.masks import MARKS

MIN_WORDS = 3  # different words at one place from which it becomes a placeholder


def compatible(a: Node, b: Node) -> bool:
    """True when no use has different patterns in the two."""
    ours, theirs = a.table, b.table
    return all(ours[use] == theirs[use] for use in ours.keys() & theirs.keys())


def merge(nodes: list[Node]) -> list[Node]:
    """Nodes whose names differ only in words, of tasks of the same types, become one.

    Not where the merged template would catch a node of another pattern.
    """
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
            strangers = [node for node in group if node.patterns != cluster[0].patterns]
            out += _merged(cluster, strangers)
    return out


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


def _joins(node: Node, cluster: list[Node]) -> bool:
    types = set().union(*(other.types for other in cluster))
    return bool(node.types & types) and all(compatible(node, other) for other in cluster)
