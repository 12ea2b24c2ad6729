"""The graph as GraphML, a node or edge at a time: memory does not grow with it.

The text is that of networkx (`write_graphml_xml` with `infer_numeric_types`), byte for byte.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any
from xml.sax.saxutils import escape, quoteattr

from tracehint.hintgen.draw.model import Link, Node
from tracehint.hintgen.text.escape import text

_HEAD = """<?xml version='1.0' encoding='utf-8'?>
<graphml xmlns="http://graphml.graphdrawing.org/xmlns" \
xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" \
xsi:schemaLocation="http://graphml.graphdrawing.org/xmlns \
http://graphml.graphdrawing.org/xmlns/1.0/graphml.xsd">
"""
_TYPES = {bool: "boolean", int: "long", float: "double", str: "string"}
_BATCH = 10_000  # nodes or edges written at one time
_ENDS = {"id", "source", "target"}
_ATTRIBUTES = {
    "node": [name for name in Node.__dataclass_fields__ if name not in _ENDS],
    "edge": [name for name in Link.__dataclass_fields__ if name not in _ENDS],
}

Key = tuple[str, str]  # graph, node or edge; attribute


def graphml(
    nodes: Callable[[], Iterator[Node]], links: Callable[[], Iterator[Link]], folded: bool
) -> Iterator[bytes]:
    """The pieces of the file. `links` come in the order of their source among the nodes; of
    those between the same two nodes, which lie together, the last one counts."""
    keys = {("graph", "folded"): (0, "boolean")}
    _add_keys(keys, "node", nodes())
    _add_keys(keys, "edge", links())
    numbers = {key: number for key, (number, _) in keys.items()}
    yield (_HEAD + "".join(_declared(key, *keys[key]) for key in reversed(keys))).encode()
    yield b'  <graph edgedefault="directed">\n'
    yield from _batches(_node(node, numbers) for node in nodes())
    yield from _batches(_edge(link, numbers) for link in _last(links()))
    yield f'    <data key="d0">{folded}</data>\n  </graph>\n</graphml>\n'.encode()


def _add_keys(keys: dict[Key, tuple[int, str]], kind: str, items: Iterable[Node | Link]) -> None:
    """Number the attributes in the order in which they are first seen; GraphML knows no null."""
    missing = list(_ATTRIBUTES[kind])
    for item in items:
        for name in missing:
            value = getattr(item, name)
            if value is not None:
                keys[kind, name] = (len(keys), _TYPES[type(value)])
        missing = [name for name in missing if (kind, name) not in keys]
        if not missing:
            return


def _declared(key: Key, number: int, kind: str) -> str:
    return f'  <key id="d{number}" for="{key[0]}" attr.name="{key[1]}" attr.type="{kind}" />\n'


def _node(node: Node, numbers: dict[Key, int]) -> str:
    name = quoteattr(node.id)
    return f"    <node id={name}>\n{_data('node', node, numbers)}    </node>\n"


def _edge(link: Link, numbers: dict[Key, int]) -> str:
    ends = f"source={quoteattr(link.source)} target={quoteattr(link.target)}"
    return f"    <edge {ends}>\n{_data('edge', link, numbers)}    </edge>\n"


def _data(kind: str, item: Node | Link, numbers: dict[Key, int]) -> str:
    lines = []
    for name in _ATTRIBUTES[kind]:
        value: Any = getattr(item, name)
        if value is None:
            continue
        shown = escape(text(value)) if isinstance(value, str) else str(value)
        end = f">{shown}</data>" if shown else " />"
        lines.append(f'      <data key="d{numbers[kind, name]}"{end}\n')
    return "".join(lines)


def _last(links: Iterator[Link]) -> Iterator[Link]:
    """Of neighbours between the same two nodes the last one."""
    before = next(links, None)
    for link in links:
        if before is not None and (link.source, link.target) != (before.source, before.target):
            yield before
        before = link
    if before is not None:
        yield before


def _batches(items: Iterator[str]) -> Iterator[bytes]:
    lines: list[str] = []
    for item in items:
        lines.append(item)
        if len(lines) == _BATCH:
            yield "".join(lines).encode("utf-8", "xmlcharrefreplace")
            lines.clear()
    yield "".join(lines).encode("utf-8", "xmlcharrefreplace")
