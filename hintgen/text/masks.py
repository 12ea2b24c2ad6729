"""What changes in a name from file to file and from run to run: the one masker of names.

    shapes = shapes_of(paths)       # part_\\0n.txt: NUL and a letter of MARKS stand for such a part
    texts = shown(shapes)           # part_*.txt: as people see it

Rules, findings, the summary and the comparison of runs all use these shapes. Vectorised (Arrow,
RE2) on names; the search for random parts (random_parts.py) works on the few distinct layouts.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tracehint.hintgen.text.random_parts import digits, masked

# Letter in a shape -> placeholder of a template. NUL never occurs in a path.
MARKS = {"u": "uuid", "d": "date", "h": "hash", "n": "n", "a": "alnum", "r": "random"}
RUN_ONLY = ("uuid", "date", "hash", "random")  # that no two runs share
RANDOM_PART = "\x00[" + "".join(mark for mark, name in MARKS.items() if name in RUN_ONLY) + "]"

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
    (r"(^|/)cc[A-Za-z0-9]{6}(\.(?:s|o|res|le|ld|cdtor))", "\\1cc\x00r\\2"),  # compiler drivers
)  # fmt: skip  # a table
# One of them is in every name that a step changes: a quick look for most runs.
_NEEDED = r"[0-9A-Fa-f]{8}-|[0-9A-Fa-f]{12}|[0-9]{4}-[0-9]{2}-|(?:^|/)cc[A-Za-z0-9]{6}\."
_MIXED = (_EDGE_L + r"(?:[A-Za-z]*\x00n)+[A-Za-z]*" + _EDGE_R, "\\1\x00a\\2")

_ZEROS = np.frombuffer(
    bytes(range(256)).translate(bytes.maketrans(b"123456789", b"0" * 9)), np.uint8
)

MAX_SHAPES = 20_000
MAX_LAYOUTS = 200_000  # distinct names, digits aside, above which no random parts are looked for


def shapes_of(paths: pa.Array, runs: pa.Array | None = None) -> pa.Array:
    """Shape of each path (binary in, binary out). `runs`: the number of the run of each path,
    where names of several are given: what is in two of them is not random."""
    encoded = _zeroed(_marked(paths.cast(pa.binary()))).dictionary_encode()
    known = encoded.dictionary
    if len(known) <= MAX_LAYOUTS:
        found = masked(known.to_pylist(), _runs_of(encoded, runs))
    else:
        found = [digits(layout) for layout in known.to_pylist()]
    out = pa.array(found, pa.binary()).take(encoded.indices)
    if pc.count_distinct(out).as_py() > MAX_SHAPES:
        # Random in some other way: every run of letters and digits becomes one placeholder.
        for _ in range(2):
            out = pc.replace_substring_regex(out, pattern=_MIXED[0], replacement=_MIXED[1])
    return out


def _marked(paths: pa.Array) -> pa.Array:
    """The paths after all steps, which only some of them need."""
    needed = pc.fill_null(pc.match_substring_regex(paths, _NEEDED), False)
    some = paths.filter(needed)
    if not len(some):
        return paths
    for pattern, repl in _STEPS:
        for _ in range(2 if pattern.startswith(_EDGE_L) else 1):
            some = pc.replace_substring_regex(some, pattern=pattern, replacement=repl)
    return some if len(some) == len(paths) else pc.replace_with_mask(paths, needed, some)


def _zeroed(paths: pa.Array) -> pa.Array:
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
    return shown(shapes_of(kept.cast(pa.binary()))).cast(pa.string())
