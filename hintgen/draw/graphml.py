"""The graph as GraphML, some nodes or edges at a time: memory does not grow with it.

The text is that of networkx (`write_graphml_xml` with `infer_numeric_types`), byte for byte.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import MISSING, fields
from typing import Any
from xml.sax.saxutils import escape, quoteattr

from tracehint.hintgen.draw.model import GraphNode, Link
from tracehint.hintgen.text.escape import text

_HEAD = """<?xml version='1.0' encoding='utf-8'?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns" \
xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" \
xsi:schemaLocation="http://graphml.graphdrawing.org/xmlns \
http://graphml.graphdrawing.org/xmlns/1.0/graphml.xsd">
"""
_TYPES = {bool: "boolean", int: "long", float: "double", str: "string"}
_ENDS = {"id", "source", "target"}
_ATTRIBUTES = {
    "node": [field for field in fields(GraphNode) if field.name not in _ENDS],
    "edge": [field for field in fields(Link) if field.name not in _ENDS],
}

Key = tuple[str, str]  # graph, node or edge; attribute
Batch = Mapping[str, Sequence[Any]]  # columns of some nodes or links; a missing one: its default


def graphml(
    nodes: Callable[[], Iterator[Batch]], links: Callable[[], Iterator[Batch]], folded: bool
) -> Iterator[bytes]:
    """The pieces of the file. `links` come in the order of their source among the nodes; of
    those between the same two nodes, which lie together, the last one counts."""
    keys = {("graph", "folded"): (0, "boolean")}
    _add_keys(keys, "node", nodes())
    _add_keys(keys, "edge", links())
    numbers = {key: number for key, (number, _) in keys.items()}
    yield (_HEAD + "".join(_declared(key, *keys[key]) for key in reversed(keys))).encode()
    yield b'  <graph edgedefault="directed">\n'
    for batch in nodes():
        heads = [f"    <node id={name}>\n" for name in _quoted(batch["id"])]
        yield _lines(heads, _data("node", batch, numbers), "    </node>\n")
    for batch in _last(links()):
        ends = zip(_quoted(batch["source"]), _quoted(batch["target"]), strict=True)
        heads = [f"    <edge source={a} target={b}>\n" for a, b in ends]
        yield _lines(heads, _data("edge", batch, numbers), "    </edge>\n")
    yield f'    <data key="d0">{folded}</data>\n  </graph>\n</graphml>\n'.encode()


def _quoted(names: Sequence[str]) -> list[str]:
    """As attributes; letters and digits alone, as nearly all are, need no look at each."""
    if "".join(names).isalnum():
        return [f'"{name}"' for name in names]
    return list(map(quoteattr, names))


def batch_of(items: Iterable[GraphNode | Link]) -> Batch:
    """Nodes or links as columns."""
    rows = [vars(item) for item in items]
    return {name: [row[name] for row in rows] for name in (rows[0] if rows else ())}


def _add_keys(keys: dict[Key, tuple[int, str]], kind: str, batches: Iterable[Batch]) -> None:
    """Number the attributes in the order in which they are first seen; GraphML knows no null."""
    missing = [field.name for field in _ATTRIBUTES[kind]]
    for batch in batches:
        first: list[tuple[int, int, str, str]] = []
        for name in missing:
            column = _column(kind, name, batch)
            at = next((n for n, value in enumerate(column) if value is not None), None)
            if at is not None:
                first.append((at, len(first), name, _TYPES[type(column[at])]))
        for _, _, name, shown in sorted(first):
            keys[kind, name] = (len(keys), shown)
        missing = [name for name in missing if (kind, name) not in keys]
        if not missing:
            return


def _declared(key: Key, number: int, kind: str) -> str:
    return f'  <key id="d{number}" for="{key[0]}" attr.name="{key[1]}" attr.type="{kind}" />\n'


def _column(kind: str, name: str, batch: Batch) -> Sequence[Any]:
    if name in batch:
        return batch[name]
    (default,) = (field.default for field in _ATTRIBUTES[kind] if field.name == name)
    assert default is not MISSING
    return [default] * len(next(iter(batch.values()), ()))


def _data(kind: str, batch: Batch, numbers: dict[Key, int]) -> list[list[str]]:
    """One column of text per attribute that is there at all."""
    return [
        _shown(numbers[kind, field.name], _column(kind, field.name, batch))
        for field in _ATTRIBUTES[kind]
        if (kind, field.name) in numbers
    ]


def _shown(number: int, values: Sequence[Any]) -> list[str]:
    """Each value as its element; empty for a null."""
    known = {None: ""}
    head = f'      <data key="d{number}"'
    for value in set(values) - {None}:
        shown = escape(text(value)) if isinstance(value, str) else str(value)
        known[value] = f"{head}>{shown}</data>\n" if shown else f"{head} />\n"
    return [known[value] for value in values]


def _lines(heads: list[str], data: list[list[str]], end: str) -> bytes:
    rows = zip(heads, *data, [end] * len(heads), strict=True)
    return "".join(["".join(row) for row in rows]).encode("utf-8", "xmlcharrefreplace")


def _last(batches: Iterator[Batch]) -> Iterator[Batch]:
    """Of neighbours between the same two nodes the last one."""
    before: Batch | None = None
    for batch in batches:
        if before is not None:
            yield _kept(before, (batch["source"][0], batch["target"][0]))
        before = batch
    if before is not None:
        yield _kept(before, None)


def _kept(batch: Batch, following: tuple[str, str] | None) -> Batch:
    """The rows that are not followed by one between the same nodes."""
    ends = list(zip(batch["source"], batch["target"], strict=True))
    kept = [here != after for here, after in zip(ends, [*ends[1:], following], strict=True)]
    return {
        name: [value for value, stays in zip(column, kept, strict=True) if stays]
        for name, column in batch.items()
    }
