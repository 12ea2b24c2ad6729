"""From names to shapes: counters, hashes, UUIDs and dates become placeholders.

Vectorised (Arrow/RE2), so a million names cost about a second and everything
after it works on distinct shapes.
"""

from __future__ import annotations

import re

import pyarrow as pa
import pyarrow.compute as pc

from tracehint.hintgen.hints.fitting import Part
from tracehint.hintgen.hints.template import Template, template_of

# A placeholder in a shape is NUL + one letter; NUL never occurs in a path.
MARKS = {"u": "uuid", "d": "date", "h": "hash", "n": "n", "a": "alnum"}

_EDGE_L, _EDGE_R = r"(^|[^0-9A-Za-z])", r"([^0-9A-Za-z]|$)"
# In order; applied twice where two neighbours share a separator.
_STEPS: tuple[tuple[str, str], ...] = (
    (
        _EDGE_L + r"[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12}"
        + _EDGE_R, "\\1\x00u\\2",
    ),
    # A work directory in the way of Nextflow: two hex digits, then the rest of the hash.
    (r"(^|/)[0-9a-f]{2}/[0-9a-f]{12,64}(/|$)", "\\1\x00h/\x00h\\2"),
    (_EDGE_L + r"(?:[0-9a-f]{12,128}|[0-9A-F]{12,128})" + _EDGE_R, "\\1\x00h\\2"),
    (_EDGE_L + r"(?:19|20)[0-9]{2}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12][0-9]|3[01])" + _EDGE_R,
     "\\1\x00d\\2"),
    (r"[0-9]+", "\x00n"),
)  # fmt: skip  # a table
_MIXED = (_EDGE_L + r"(?:[A-Za-z]*\x00n)+[A-Za-z]*" + _EDGE_R, "\\1\x00a\\2")

MAX_SHAPES = 20_000


def shapes_of(paths: pa.Array) -> pa.Array:
    """Shape of each path (binary in, binary out)."""
    out = paths.cast(pa.binary())
    for pattern, repl in _STEPS:
        for _ in range(2 if pattern.startswith(_EDGE_L) else 1):
            out = pc.replace_substring_regex(out, pattern=pattern, replacement=repl)
    if pc.count_distinct(out).as_py() > MAX_SHAPES:
        # Random names (mktemp): every run of letters and digits becomes one placeholder.
        for _ in range(2):
            out = pc.replace_substring_regex(out, pattern=_MIXED[0], replacement=_MIXED[1])
    return out


def with_shapes(facts: pa.Table) -> pa.Table:
    """The rows with the shape of their `path` as column `shape`."""
    return facts.append_column("shape", shapes_of(facts["path"].combine_chunks()))


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
