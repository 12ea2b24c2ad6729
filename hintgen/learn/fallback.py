"""Learning, second half: templates that also hold where names differ more.

Two fallback levels below the shapes that were seen:
  by name   the shortest beginning and end of a name that tell its files from all
            others of the run: `{name}_area.fits`, `p{name}.fits`
  by types  any name, where the declared producing and consuming types are known
The more specific fallback level wins when both fit.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from tracehint.hintgen.hints.fitting import Part
from tracehint.hintgen.hints.template import MAX_AMBIGUOUS, ambiguity, template_of
from tracehint.hintgen.learn.cells import Cell, Types
from tracehint.hintgen.learn.nodes import Node
from tracehint.hintgen.learn.shapes import parts_of, tokens

MAX_HEAD, MAX_TAIL = 2, 8  # tokens of a base name that a fallback level may fix

Key = tuple[bytes, tuple[bytes, ...], tuple[bytes, ...]]  # directory, head, tail


def _keys(shape: bytes) -> list[Key]:
    """Every (head, tail) that covers the shape and says something, loosest first."""
    folder, slash, base = shape.rpartition(b"/")
    words = tokens(base)
    found: list[Key] = []
    for tail in range(1, min(MAX_TAIL, len(words) - 1) + 1):
        if _is_word(words[-tail]) or words[-tail].startswith(b"\x00"):
            continue  # the end of a name starts at a separator
        for head in range(min(MAX_HEAD, len(words) - tail - 1) + 1):
            key = (folder + slash, tuple(words[:head]), tuple(words[len(words) - tail :]))
            if any(map(_is_word, key[1] + key[2])):
                found.append(key)
    return sorted(found, key=_loose_first)


def _is_word(token: bytes) -> bool:
    return token[:1].isalnum()


def _loose_first(key: Key) -> tuple[int, int, int]:
    """Fixed words count most: they are what another run's names may not share."""
    fixed = key[1] + key[2]
    return (sum(map(_is_word, fixed)), len(key[1]), len(fixed))


def _agree(nodes: list[Node]) -> tuple[bool, bool]:
    """(the name alone decides, the declared use decides) over the nodes together."""
    patterns: set[str] = set()
    table: dict[str, set[str]] = defaultdict(set)
    for node in nodes:
        patterns |= node.patterns
        for use, seen in node.table.items():
            table[use] |= seen
    return len(patterns) == 1, all(len(seen) == 1 for seen in table.values())


def by_name(nodes: list[Node]) -> list[Node]:
    """Generalised nodes for `nodes` (all nodes of the run, unhinted ones too)."""
    members: dict[Key, dict[int, Node]] = defaultdict(dict)
    for node in nodes:
        for shape in {cell.shape for cell in node.cells}:
            for key in _keys(shape):
                members[key][id(node)] = node
    chosen: dict[tuple[Key, str], list[Node]] = {}
    verdicts = {key: _agree(list(group.values())) for key, group in members.items()}
    for node in nodes:
        if not any(node.patterns):
            continue
        for shape in sorted({cell.shape for cell in node.cells}):
            keys = _keys(shape)
            for need, verdict in (("", 0), ("use", 1)):
                for key in keys:
                    if verdicts[key][verdict]:
                        chosen[key, need] = list(members[key].values())
                        break
    return [
        made
        for (key, need), group in sorted(chosen.items())
        if not (need and (key, "") in chosen) and (made := _name_node(key, need, group)) is not None
    ]


def _name_node(key: Key, need: str, group: list[Node]) -> Node | None:
    folder, head, tail = key
    parts: list[Part] = [
        *parts_of(folder), *parts_of(b"".join(head)), "name", *parts_of(b"".join(tail)),
    ]  # fmt: skip  # a table
    template = template_of(parts)
    if ambiguity(template) > MAX_AMBIGUOUS:
        return None
    return Node(template, [cell for node in group for cell in node.cells], need=need, level=1)


def by_types(
    cells: list[Cell], tasks: int, per_pair: Mapping[tuple[Types, Types], int]
) -> list[Node]:
    """Nodes for any name, per (producing types, consuming types), where these decide.

    `tasks`: tasks in the run. Where nearly every task has a type of its own, types
    say nothing about another run, and there are none of these nodes. `per_pair`: see
    `facts.files_per_pair`.
    """
    kinds = {name for cell in cells for name in (*cell.producers, *cell.consumers)}
    if not kinds or len(kinds) > max(12, tasks // 2):
        return []
    by_pair: dict[tuple[Types, Types], list[Cell]] = defaultdict(list)
    for cell in cells:
        by_pair[cell.producers, cell.consumers].append(cell)
    out: list[Node] = []
    for types, group in by_pair.items():
        most = per_pair.get(types, 0)
        whole = _typed_node(b"", group, most)
        if whole.decided:
            out.append(whole)
            continue
        by_end: dict[bytes, list[Cell]] = defaultdict(list)
        for cell in group:
            by_end[_end(cell.shape)].append(cell)
        parts = [_typed_node(end, part, most) for end, part in by_end.items() if end]
        out += [node for node in parts if node.decided]
    return [node for node in out if any(node.patterns)]


def _end(shape: bytes) -> bytes:
    base = shape.rpartition(b"/")[2]
    stem, dot, end = base.rpartition(b".")
    return dot + end if stem else b""


def _typed_node(end: bytes, cells: list[Cell], per_pair: int) -> Node:
    template = template_of(["dirs", "name", *parts_of(end)])
    return Node(template, cells, need="types", level=2, per_pair=per_pair)
