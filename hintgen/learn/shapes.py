"""Shapes as parts of templates, and what several shapes have in common."""

from __future__ import annotations

import re

import pyarrow as pa

from tracehint.hintgen.hints.fitting import Part
from tracehint.hintgen.hints.template import Template, template_of
from tracehint.hintgen.text.masks import MARKS, shapes_of


def with_shapes(facts: pa.Table) -> pa.Table:
    """The rows with the shape of their `path` as column `shape`; `run` tells the runs apart."""
    runs = facts["run"].combine_chunks() if "run" in facts.schema.names else None
    return facts.append_column("shape", shapes_of(facts["path"].combine_chunks(), runs))


def parts_of(shape: bytes) -> list[Part]:
    """Literals and holes of a shape."""
    first, *rest = shape.split(b"\x00")
    parts: list[Part] = [first]
    for piece in rest:
        parts += [MARKS[chr(piece[0])], piece[1:]]
    return [part for part in parts if part != b""]


def template_of_shape(shape: bytes) -> Template:
    """The template with a placeholder wherever the shape has one."""
    return template_of(parts_of(shape))


_FIELD = re.compile(rb"(?:\x00[a-z]|[0-9A-Za-z])+")
_SEPARATED = re.compile(rb"((?:\x00[a-z]|[0-9A-Za-z])+)")
_TOKEN = re.compile(rb"\x00[a-z]|[A-Za-z]+|[^\x000-9A-Za-z]|[0-9]+", re.DOTALL)


def skeleton(shape: bytes) -> bytes:
    """The shape with every run of letters, digits and placeholders as one `W`."""
    return _FIELD.sub(b"\x00W", shape)


def fields(shape: bytes) -> list[bytes]:
    """Separators and fields in turn (odd positions are fields)."""
    return _SEPARATED.split(shape)


def tokens(shape: bytes) -> list[bytes]:
    """Words, placeholders and single separators."""
    return _TOKEN.findall(shape)


def merge_fields(shapes: list[bytes]) -> list[Part]:
    """Parts that cover shapes of one skeleton; only fields that vary become placeholders."""
    columns = zip(*(fields(shape) for shape in shapes), strict=True)
    parts: list[Part] = []
    for at, column in enumerate(columns):
        distinct = set(column)
        if len(distinct) == 1:
            parts += parts_of(column[0])
        elif at % 2 and all(value.isalpha() for value in distinct):
            parts.append("word")
        else:
            parts += _affixes(list(distinct))
    return parts


def _affixes(values: list[bytes]) -> list[Part]:
    """One field: common leading and trailing tokens around {word} or {alnum}."""
    lists = [tokens(value) for value in values]
    low = min(map(len, lists))
    if len({len(value) for value in lists}) == 1:
        return [part for column in zip(*lists, strict=True) for part in _column(set(column))]
    head = next((i for i in range(low) if len({value[i] for value in lists}) > 1), low)
    tail = next((i for i in range(low - head) if len({v[-1 - i] for v in lists}) > 1), low - head)
    if head + tail >= low:  # nothing left for the middle of the shortest
        return ["alnum"]
    front = [part for token in lists[0][:head] for part in parts_of(token)]
    back = lists[0][len(lists[0]) - tail :] if tail else []
    return [*front, "alnum", *(part for token in back for part in parts_of(token))]


def _column(distinct: set[bytes]) -> list[Part]:
    if len(distinct) == 1:
        return parts_of(next(iter(distinct)))
    return ["word"] if all(value.isalpha() for value in distinct) else ["alnum"]
