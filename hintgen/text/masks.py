"""What changes in a name from file to file and from run to run: the one masker of names.

    shapes = shapes_of(paths)       # part_\\0n.txt: NUL and a letter of MARKS stand for such a part
    texts = shown(shapes)           # part_*.txt: as people see it

Rules, findings, the summary and the comparison of runs all use these shapes. Vectorised (Arrow,
RE2) on names; the search for random parts (random_parts.py) works on the few distinct layouts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tracehint.hintgen.text.random_parts import digits, masked

# Letter in a shape -> placeholder of a template. NUL never occurs in a path.
MARKS = {"u": "uuid", "d": "date", "h": "hash", "n": "n", "a": "alnum", "r": "random"}
RUN_ONLY = ("uuid", "date", "hash", "random")  # that no two runs share
RANDOM_PART = "\x00[" + "".join(mark for mark, name in MARKS.items() if name in RUN_ONLY) + "]"

_EDGE_L, _EDGE_R = r"(^|[^0-9A-Za-z])", r"([^0-9A-Za-z]|$)"
_DATED = r"[0-9]{4}-[0-9]{2}-"
# What is in every name that a step changes, the step. In order.
_STEPS: tuple[tuple[str, str, str], ...] = (
    (r"[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-",
     _EDGE_L + r"[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12}"
     + _EDGE_R, "\\1\x00u\\2"),
    # A work directory in the way of Nextflow: two hex digits, then the rest of the hash.
    (r"[0-9a-f]{12}", r"(^|/)[0-9a-f]{2}/[0-9a-f]{12,64}(/|$)", "\\1\x00h/\x00h\\2"),
    (r"[0-9A-Fa-f]{12}",
     _EDGE_L + r"(?:[0-9a-f]{12,128}|[0-9A-F]{12,128})" + _EDGE_R, "\\1\x00h\\2"),
    (_DATED,
     _EDGE_L + r"(?:19|20)[0-9]{2}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12][0-9]|3[01])" + _EDGE_R,
     "\\1\x00d\\2"),
    (r"(?:^|/)cc[A-Za-z0-9]{6}\.",  # compiler drivers
     r"(^|/)cc[A-Za-z0-9]{6}(\.(?:s|o|res|le|ld|cdtor))", "\\1cc\x00r\\2"),
)  # fmt: skip  # a table
_NEEDED = "|".join(needed for needed, _, _ in _STEPS)  # a quick look for most runs
_MIXED = (_EDGE_L + r"(?:[A-Za-z]*\x00n)+[A-Za-z]*" + _EDGE_R, "\\1\x00a\\2")

_ZEROS = np.frombuffer(
    bytes(range(256)).translate(bytes.maketrans(b"123456789", b"0" * 9)), np.uint8
)

MAX_SHAPES = 20_000
MAX_LAYOUTS = 200_000  # distinct names, digits aside, above which no random parts are looked for


@dataclass(frozen=True)
class Layouts:
    """Names by their layout: with every digit as 0, and what steps have marked.

    `code`: of each name, a place in `known` and in `shapes`, which are binary.
    """

    code: pa.Array
    known: pa.Array
    shapes: pa.Array


def shapes_of(paths: pa.Array, runs: pa.Array | None = None) -> pa.Array:
    """Shape of each path (binary in, binary out). `runs`: the number of the run of each path,
    where names of several are given: what is in two of them is not random."""
    layouts = layouts_of(paths, runs)
    return layouts.shapes.take(layouts.code)


def layouts_of(paths: pa.Array, runs: pa.Array | None = None) -> Layouts:
    """The same, layout by layout: of many names few differ. A null is a layout, too."""
    encoded = _encoded(paths.cast(pa.binary()))
    known = encoded.dictionary.to_pylist()
    if len(known) <= MAX_LAYOUTS:
        found = masked(known, _runs_of(encoded, runs))
    else:
        found = [None if layout is None else digits(layout) for layout in known]
    shapes = pa.array(found, pa.binary())
    if pc.count_distinct(shapes).as_py() > MAX_SHAPES:
        # Random in some other way: every run of letters and digits becomes one placeholder.
        for _ in range(2):
            shapes = pc.replace_substring_regex(shapes, pattern=_MIXED[0], replacement=_MIXED[1])
    return Layouts(encoded.indices, encoded.dictionary, shapes)


def _encoded(paths: pa.Array) -> pa.DictionaryArray:
    """The layouts. Steps know digits as such only, but for dates: what they change in names they
    change in names with zeros for digits as well, of which there are few."""
    zeros = zeroed(paths).dictionary_encode("encode")
    if pc.any(pc.match_substring_regex(zeros.dictionary, _DATED)).as_py():
        return zeroed(_marked(paths)).dictionary_encode("encode")
    few = zeroed(_marked(zeros.dictionary)).dictionary_encode("encode")
    return pa.DictionaryArray.from_arrays(few.indices.take(zeros.indices), few.dictionary)


def _marked(paths: pa.Array) -> pa.Array:
    """The paths after all steps."""

    def steps(some: pa.Array) -> pa.Array:
        for needed, pattern, repl in _STEPS:
            some = _where(
                pc.match_substring_regex(some, needed), some, partial(_step, pattern, repl)
            )
        return some

    return _where(pc.match_substring_regex(paths, _NEEDED), paths, steps)


def _step(pattern: str, repl: str, names: pa.Array) -> pa.Array:
    """Names after a step. Neighbours may share a separator: what it changed it sees again."""
    out = pc.replace_substring_regex(names, pattern=pattern, replacement=repl)
    if not pattern.startswith(_EDGE_L):
        return out
    again = partial(pc.replace_substring_regex, pattern=pattern, replacement=repl)
    return _where(pc.not_equal(out, names), out, again)


def _where(chosen: pa.Array, names: pa.Array, change: Callable[[pa.Array], pa.Array]) -> pa.Array:
    """The names, of which the chosen ones are changed."""
    chosen = pc.fill_null(chosen, False)
    some = names.filter(chosen)
    if not len(some):
        return names
    return (
        change(some)
        if len(some) == len(names)
        else pc.replace_with_mask(names, chosen, change(some))
    )


def zeroed(paths: pa.Array) -> pa.Array:
    """Binary values with every digit as 0: byte by byte, since each stays as long as it is."""
    there, ends, text = paths.buffers()
    if text is None:
        return paths
    zeros = pa.py_buffer(_ZEROS[np.frombuffer(text, np.uint8)])
    return pa.Array.from_buffers(
        paths.type, len(paths), [there, ends, zeros], paths.null_count, paths.offset
    )


def _runs_of(encoded: pa.DictionaryArray, runs: pa.Array | None) -> list[frozenset[int]]:
    """The runs that each layout occurs in."""
    count = len(encoded.dictionary)
    if runs is None:
        return [frozenset((0,))] * count
    pairs = pa.table({"layout": encoded.indices, "run": runs})
    pairs = pairs.group_by(["layout", "run"]).aggregate([])
    found: list[set[int]] = [set() for _ in range(count)]
    for layout, run in zip(pairs["layout"].to_pylist(), pairs["run"].to_pylist(), strict=True):
        if layout is not None:
            found[layout].add(run)
    return [frozenset(seen) for seen in found]


def shown(shapes: pa.Array) -> pa.Array:
    """Shapes as text for people: a star for each placeholder."""
    return pc.replace_substring_regex(shapes, pattern="(?:\x00[a-z])+", replacement="*")


def masks_of(texts: pa.Array) -> pa.Array:
    """The masks of texts, as text: what changes as `*`; nulls stay."""
    kept = texts.combine_chunks() if isinstance(texts, pa.ChunkedArray) else texts
    layouts = layouts_of(kept)
    return shown(layouts.shapes).cast(pa.string()).take(layouts.code)
