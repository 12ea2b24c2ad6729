"""The graph as GraphML, some nodes or edges at a time: memory does not grow with it.

The text is that of networkx (`write_graphml_xml` with `infer_numeric_types`), byte for byte.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import MISSING, fields
from typing import Any
from xml.sax.saxutils import escape, quoteattr

import pyarrow as pa
import pyarrow.compute as pc

from tracehint.hintgen.draw.model import GraphNode, Link
from tracehint.hintgen.text.escape import text

_HEAD = """<?xml version='1.0' encoding='utf-8'?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns" \
xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" \
xsi:schemaLocation="http://graphml.graphdrawing.org/xmlns \
http://graphml.graphdrawing.org/xmlns/1.0/graphml.xsd">
"""
_TYPES = (
    (pa.types.is_boolean, "boolean"),
    (pa.types.is_integer, "long"),
    (pa.types.is_floating, "double"),
    (pa.types.is_string, "string"),
)
_PLAIN = "^[ -%'-;=?-~]*$"  # that `text` and `escape` leave as it is
_ENDS = {"id", "source", "target"}
_ATTRIBUTES = {
    "node": [field for field in fields(GraphNode) if field.name not in _ENDS],
    "edge": [field for field in fields(Link) if field.name not in _ENDS],
}

Key = tuple[str, str]  # graph, node or edge; attribute


def graphml(
    nodes: Callable[[], Iterator[pa.RecordBatch]],
    links: Callable[[], Iterator[pa.RecordBatch]],
    folded: bool,
) -> Iterator[bytes]:
    """The pieces of the file, from columns of some nodes and links at a time: where one is
    missing, it has its default. `links` come in the order of their source among the nodes; of
    those between the same two nodes, which lie together, the last one counts."""
    keys = {("graph", "folded"): (0, "boolean")}
    _add_keys(keys, "node", nodes())
    _add_keys(keys, "edge", links())
    numbers = {key: number for key, (number, _) in keys.items()}
    yield (_HEAD + "".join(_declared(key, *keys[key]) for key in reversed(keys))).encode()
    yield b'  <graph edgedefault="directed">\n'
    for batch in nodes():
        head = ["    <node id=", _quoted(batch["id"]), ">\n"]
        yield _lines([*head, *_data("node", batch, numbers), "    </node>\n"])
    for batch in _last(links()):
        ends = [_quoted(batch[end]) for end in ("source", "target")]
        head = ["    <edge source=", ends[0], " target=", ends[1], ">\n"]
        yield _lines([*head, *_data("edge", batch, numbers), "    </edge>\n"])
    yield f'    <data key="d0">{folded}</data>\n  </graph>\n</graphml>\n'.encode()


def _quoted(names: pa.Array) -> pa.Array:
    """As attributes; of letters and digits alone, as nearly all are, none is looked at."""
    plain = pc.utf8_is_alnum(names)
    quoted = _joined(['"', names, '"'])
    return _where(pc.invert(plain), quoted, names, quoteattr)


def batch_of(items: Iterable[GraphNode | Link]) -> pa.RecordBatch:
    """Nodes or links as columns."""
    return pa.RecordBatch.from_pylist([vars(item) for item in items])


def _add_keys(
    keys: dict[Key, tuple[int, str]], kind: str, batches: Iterable[pa.RecordBatch]
) -> None:
    """Number the attributes in the order in which they are first seen; GraphML knows no null."""
    missing = [field.name for field in _ATTRIBUTES[kind]]
    for batch in batches:
        first: list[tuple[int, int, str, str]] = []
        for name in missing:
            column = _column(kind, name, batch)
            at = pc.index(column.is_valid(), True).as_py()
            if at >= 0:
                first.append((at, len(first), name, _type_of(column)))
        for _, _, name, shown in sorted(first):
            keys[kind, name] = (len(keys), shown)
        missing = [name for name in missing if (kind, name) not in keys]
        if not missing:
            return


def _declared(key: Key, number: int, kind: str) -> str:
    return f'  <key id="d{number}" for="{key[0]}" attr.name="{key[1]}" attr.type="{kind}" />\n'


def _type_of(column: pa.Array) -> str:
    return next(name for is_one, name in _TYPES if is_one(column.type))


def _column(kind: str, name: str, batch: pa.RecordBatch) -> pa.Array:
    if name in batch.schema.names:
        return batch[name]
    (default,) = (field.default for field in _ATTRIBUTES[kind] if field.name == name)
    assert default is not MISSING
    return pa.repeat(pa.scalar(default), batch.num_rows)


def _data(kind: str, batch: pa.RecordBatch, numbers: dict[Key, int]) -> list[pa.Array]:
    """One column of text per attribute that is there at all."""
    return [
        _shown(numbers[kind, field.name], _column(kind, field.name, batch))
        for field in _ATTRIBUTES[kind]
        if (kind, field.name) in numbers
    ]


def _shown(number: int, values: pa.Array) -> pa.Array:
    """Each value as its element; empty for a null."""
    head = f'      <data key="d{number}"'
    encoded = values.dictionary_encode()
    texts = _texts(encoded.dictionary)
    full = _joined([f"{head}>", texts, "</data>\n"])
    shown = pc.if_else(pc.equal(texts, ""), f"{head} />\n", full).take(encoded.indices)
    return pc.fill_null(shown, "") if values.null_count else shown


def _texts(values: pa.Array) -> pa.Array:
    """Each value as the text of an element."""
    if pa.types.is_string(values.type):
        odd = pc.invert(pc.match_substring_regex(values, _PLAIN))
        return _where(odd, values, values, lambda value: escape(text(value)))
    if pa.types.is_integer(values.type):
        return values.cast(pa.string())
    return pa.array([str(value) for value in values.to_pylist()], pa.string())


def _where(
    chosen: pa.Array, texts: pa.Array, values: pa.Array, change: Callable[[str], str]
) -> pa.Array:
    """The texts, but of the chosen ones what the change makes of the value."""
    chosen = pc.fill_null(chosen, False)
    changed = [change(value) for value in values.filter(chosen).to_pylist()]
    return pc.replace_with_mask(texts, chosen, pa.array(changed, pa.string()))


def _joined(parts: list[Any]) -> pa.Array:
    """Columns and constants side by side; null where one of them is."""
    return pc.binary_join_element_wise(*parts, "")


def _lines(parts: list[Any]) -> bytes:
    rows = _joined(parts)  # new, so that its texts lie one behind the other from the start
    size = pc.sum(pc.binary_length(rows)).as_py() or 0
    found: bytes = rows.buffers()[2].slice(0, size).to_pybytes()
    return found


def _last(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Of neighbours between the same two nodes the last one."""
    before: pa.RecordBatch | None = None
    for batch in batches:
        if before is not None:
            yield _kept(before, batch.slice(0, 1))
        before = batch
    if before is not None:
        yield _kept(before, before.slice(0, 0))


def _kept(batch: pa.RecordBatch, following: pa.RecordBatch) -> pa.RecordBatch:
    """The rows that are not followed by one between the same nodes."""
    same = pa.array([True] * batch.num_rows)
    for end in ("source", "target"):
        after = pa.concat_arrays([batch[end][1:], following[end].cast(batch[end].type)])
        here = pc.equal(batch[end][: len(after)], after)
        padding = pa.array([False] * (batch.num_rows - len(after)), pa.bool_())
        same = pc.and_(same, pa.concat_arrays([here, padding]))
    return batch.filter(pc.invert(same))
