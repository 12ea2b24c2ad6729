"""Learning: files known by their sibling names.

`p{name}.fits` is a projected image where `{name}.fits` and `c{name}.fits` are files of the run as
well, whatever the images are called there. So data sets with other names share rules, where all
names of the next run are known beforehand (a dry run, an earlier listing).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace

from tracehint.hintgen.hints.pathtext import to_text
from tracehint.hintgen.hints.template import template_of
from tracehint.hintgen.learn.groups import captures_of
from tracehint.hintgen.learn.nodes import Node

MAX_NAMES = 50_000  # names of a run, above which no families are looked for
MEMBERS = 40  # names per cell that must agree
LONGEST_HEAD = 3  # characters before the common part
MAX_ENDS = 4  # places where the common part may end
MIN_STEM = 4  # characters
MAX_SIBLINGS = 8

Affixes = tuple[bytes, bytes]  # what stands before and after the common part


def affixes(path: bytes) -> Iterator[Affixes]:
    """Ways to see a path as head + common part + tail, with the longest common part first."""
    folder, slash, base = path.rpartition(b"/")
    ends = [i for i in range(1, len(base)) if base[i : i + 1] in b"._-"][-MAX_ENDS:]
    for end in (len(base), *reversed(ends)):
        for head in range(min(LONGEST_HEAD, end - MIN_STEM) + 1):
            yield folder + slash + base[:head], base[end:]


def looked_for(nodes: list[Node]) -> bool:
    """False where the run has too many names."""
    return sum(len(cell.samples) for node in nodes for cell in node.cells) <= MAX_NAMES


def by_family(nodes: list[Node]) -> list[Node]:
    """Nodes for names that differ only in what they have in common with other names of the run."""
    if not looked_for(nodes):
        return []
    paths = {path for node in nodes for cell in node.cells for path, _ in cell.samples}
    siblings: dict[bytes, set[Affixes]] = defaultdict(set)
    for path in paths:
        for head, tail in affixes(path):
            siblings[path[len(head) : len(path) - len(tail)]].add((head, tail))
    alike: dict[tuple[Affixes, tuple[Affixes, ...]], list[Node]] = defaultdict(list)
    for node in nodes:
        found = _siblings(node, siblings)
        if found is not None:
            alike[found].append(node)
    made = [_family_node(*key, group) for key, group in sorted(alike.items(), key=lambda i: i[0])]
    return [node for node in made if node is not None]


def by_mark(families: list[Node], others: list[Node]) -> list[Node]:
    """Nodes for a mark in front alone, `c{name}_area.fits`, where sibling names cannot be asked.

    Not where one of `others` has that template: it was made of all names that fit it.
    """
    taken = {node.template.text for node in others}
    return [
        replace(node, siblings=())
        for node in families
        if _mark(node) and node.template.text not in taken
    ]


def _mark(node: Node) -> bool:
    head = node.template.parts[0]
    return isinstance(head, bytes) and not head.endswith(b"/")


def _siblings(
    node: Node, siblings: dict[bytes, set[Affixes]]
) -> tuple[Affixes, tuple[Affixes, ...]] | None:
    """How the node's names are made, and what is always there beside them."""
    members = [path for cell in node.cells for path, _ in cell.samples[:MEMBERS]]
    if len(members) < 2:
        return None
    best: tuple[Affixes, tuple[Affixes, ...]] | None = None
    for head, tail in affixes(members[0]):
        fits = all(
            m.startswith(head) and m.endswith(tail) and len(m) - len(head) - len(tail) >= MIN_STEM
            for m in members
        )
        if not fits:
            continue
        stems = [m[len(head) : len(m) - len(tail)] for m in members]
        if any(b"/" in stem for stem in stems):
            continue
        common = set.intersection(*(siblings[stem] for stem in stems)) - {(head, tail)}
        if common and (best is None or len(common) > len(best[1])):
            best = (head, tail), tuple(sorted(common))
    return best


def _family_node(own: Affixes, others: tuple[Affixes, ...], group: list[Node]) -> Node | None:
    """One node for all of the group; None where neither name nor use tells the pattern."""
    template = template_of([own[0], "name", own[1]])
    beside = tuple(_text(head) + "{name}" + _text(tail) for head, tail in others[:MAX_SIBLINGS])
    cells = [cell for node in group for cell in node.cells]
    node = Node(template, cells, level=1, siblings=beside)
    if len(node.patterns) > 1:
        node.need = "use"
    told = node.decided and any(node.patterns)
    return node if told and _groups_told(node) else None


def _groups_told(node: Node) -> bool:
    """True unless groups matter and the common part does not name them: other levels may."""
    return all(
        captures_of(node, [c for c in node.cells if c.pattern == pattern], by_producer)[0]
        for pattern, by_producer in (("reduce", False), ("distribute", True))
        if pattern in node.patterns
    )


def _text(part: bytes) -> str:
    return to_text(part, braces=True)
