"""Masks of names: the parts of a name that differ from file to file and from run to run.

    shapes = shapes_of(paths)       # part_\0n.txt: NUL and a letter of MARKS replace such a part
    texts = show_shapes(shapes)     # part_*.txt: for people

Rules, findings, the summary and the comparison of runs all use these shapes. Vectorised (Arrow,
RE2) on names; the search for random parts (mask_layouts) works on the few distinct layouts.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

Runs = frozenset[int]
Key = tuple[bytes, bytes, bytes, int]  # shape of the parent; text before, after; length

_TAIL = rb"((?:\.[A-Za-z][A-Za-z0-9]{0,4}){0,2})"
_TEMPORARY = rb"(?:.*[._-])?[A-Za-z_]*(?:tmp|Tmp|nxf)[._-]?"  # prefixes of temporary names
_POSITIONS: tuple[tuple[re.Pattern[bytes], bool], ...] = (  # position of a part; known prefix
    (re.compile(rb"(" + _TEMPORARY + rb")([A-Za-z0-9_]{6,12})" + _TAIL), True),
    (re.compile(rb"()([A-Za-z0-9_]{6,12})" + _TAIL), False),
    (re.compile(rb"(.*[.-])([A-Za-z0-9]{6,12})" + _TAIL), False),
)
_CLASSES = re.compile(rb"0+|[a-z]+|[A-Z]+")
_COUNTERS = re.compile(rb"(?:_?[A-Za-z]_?0+)+_?")  # s1r2c3: not random, however many changes
_NO_WORD = re.compile(rb"[b-df-hj-np-tv-xz]{4}", re.IGNORECASE)  # four consonants in a row
# Three in a row, or no vowel: enough for a directory among random ones.
_HARD_WORD = re.compile(rb"[b-df-hj-np-tv-xz]{3}|_[a-z]*_|^[^aeiou]*$", re.IGNORECASE)
_DIGITS = re.compile(rb"0+")
MIN_RANDOM = 3  # random files needed in one place; two directories suffice
# Number of random parts in one place, and their share, from which parts of letters alone count as
# random too. Lower for directories: among random ones, a user's name of equal length is rarer.
MIN_FILES, MIN_SHARE = 4, 0.8
MIN_FOLDERS, MIN_FOLDER_SHARE = 3, 0.6


@dataclass
class _Place:
    """Candidate parts at one position of the names in one place, with the runs of each."""

    known: bool  # the prefix is one of temporary names
    folder: bool
    parts: dict[bytes, Runs] = field(default_factory=dict)

    def add(self, part: bytes, runs: Runs) -> None:
        self.parts[part] = self.parts.get(part, frozenset()) | runs


def digits(layout: bytes) -> bytes:
    """Return the shape of a layout without random parts."""
    return _DIGITS.sub(b"\x00n", layout)


def mask_layouts(layouts: Sequence[bytes | None], runs: Sequence[Runs]) -> list[bytes | None]:
    """Return the shape of each layout; `runs`: the runs that each occurs in."""
    names = [[] if layout is None else layout.split(b"/") for layout in layouts]
    shapes = [b""] * len(layouts)
    for level in range(max(map(len, names), default=0)):
        here = [i for i, parts in enumerate(names) if level < len(parts)]
        places = _collect_places(here, level, names, shapes, runs)
        random = {key: found for key, place in places.items() if (found := _select_random(place))}
        for i in here:
            name = _mask(names[i][level], shapes[i], random)
            shapes[i] += (b"/" if level else b"") + name
    return [
        None if layout is None else shape for layout, shape in zip(layouts, shapes, strict=True)
    ]


def _list_candidates(name: bytes, parent: bytes) -> Iterator[tuple[Key, bytes, bool]]:
    """Yield the candidates for a random part of a name: place, part, known prefix."""
    for pattern, known in _POSITIONS:
        found = pattern.fullmatch(name)
        if found:
            before, part, behind = found.groups()
            yield (parent, digits(before), digits(behind), len(part)), part, known


def _collect_places(
    here: list[int], level: int, names: list[list[bytes]], shapes: list[bytes], runs: Sequence[Runs]
) -> dict[Key, _Place]:
    """Collect the candidates for random parts on this directory level."""
    seen: dict[tuple[bytes, bytes, bool], Runs] = defaultdict(frozenset)
    for i in here:
        seen[shapes[i], names[i][level], level + 1 < len(names[i])] |= runs[i]
    places: dict[Key, _Place] = {}
    for (parent, name, folder), where in seen.items():
        for key, part, known in _list_candidates(name, parent):
            place = places.setdefault(key, _Place(known, folder))
            place.folder |= folder
            place.add(part, where)
    return places


def _mask(name: bytes, parent: bytes, random: dict[Key, frozenset[bytes]]) -> bytes:
    for key, part, _ in _list_candidates(name, parent):
        if part in random.get(key, ()):
            return key[1] + b"\x00r" + key[2]
    return digits(name)


def _select_random(place: _Place) -> frozenset[bytes]:
    """Return the parts of a place that are random."""
    every = frozenset().union(*place.parts.values())
    several = len(every) > 1
    parts = [p for p, runs in place.parts.items() if len(runs) == 1 or not several]
    mixed = {p for p in parts if _is_mixed(p, place.known)}
    drawn = [p for p in parts if p in mixed or (place.folder and _HARD_WORD.search(p))]
    decided = any(_is_conclusive(part, place) for part in mixed)
    if not mixed or not (decided or _are_diverse(drawn, place, several)):
        return frozenset()
    many, sure = (MIN_FOLDERS, MIN_FOLDER_SHARE) if place.folder else (MIN_FILES, MIN_SHARE)
    every_part = several or (len(drawn) >= many and len(drawn) >= sure * len(parts))
    return frozenset(p for p in parts if every_part or p in mixed or _NO_WORD.search(p))


def _is_mixed(part: bytes, known: bool) -> bool:
    """Whether a part mixes cases, or lower case and digits, unlike accession numbers. After a
    `known` prefix lower case is not needed: one in 230 names of mktemp has none."""
    runs = _CLASSES.findall(part)
    kinds = {run[:1].isdigit() + 2 * run[:1].islower() for run in runs}
    often = known and len(runs) > 2 and _COUNTERS.fullmatch(part) is None
    return len(kinds) > 1 and (2 in kinds or often)


def _changes(part: bytes) -> int:
    return len(_CLASSES.findall(part))


def _score_unlikeness(part: bytes) -> int:
    """Score how unlike a word a part is: its changes of class, or a value for consonant runs."""
    return max(_changes(part), 4 if _NO_WORD.search(part) else 3 if _HARD_WORD.search(part) else 0)


def _pattern(part: bytes) -> bytes:
    return re.sub(rb"[A-Z]", b"A", re.sub(rb"[a-z]", b"a", part))


def _letters(part: bytes) -> bytes:
    return re.sub(rb"[0_]", b"", part)


def _are_diverse(mixed: list[bytes], place: _Place, several: bool) -> bool:
    """Whether the parts differ in structure and letters, and change class often."""
    count = len(mixed)
    if count < (2 if place.folder or place.known or several else MIN_RANDOM):
        return False
    ways, letters = len({*map(_pattern, mixed)}), len({*map(_letters, mixed)})
    changes = sum(map(_score_unlikeness, mixed)) / count
    enough = ways >= max(2, min(0.6 * count, 8)) and letters >= 0.75 * count
    return enough and changes >= (2 if several or place.known else 3)


def _is_conclusive(part: bytes, place: _Place) -> bool:
    """Whether a single part is enough evidence of random names."""
    changes = _changes(part)
    if place.known:
        return changes >= 3
    fits = len(part) in ((8,) if part.islower() else (6, 10))  # tempfile's; mktemp's, mkdtemp's
    by_hand = _COUNTERS.fullmatch(part) is not None
    return fits and not by_hand and changes >= 4 and changes >= 0.6 * len(part)


# Letter in a shape -> placeholder of a template. NUL never occurs in a path.
MARKS = {"u": "uuid", "d": "date", "h": "hash", "n": "n", "a": "alnum", "r": "random"}
RUN_ONLY = ("uuid", "date", "hash", "random")  # values that differ between runs
RANDOM_PART = "\x00[" + "".join(mark for mark, name in MARKS.items() if name in RUN_ONLY) + "]"

_EDGE_L, _EDGE_R = r"(^|[^0-9A-Za-z])", r"([^0-9A-Za-z]|$)"
_DATED = r"[0-9]{4}-[0-9]{2}-"
# Steps, in order: what all names changed by the step contain, its pattern, its replacement.
_STEPS: tuple[tuple[str, str, str], ...] = (
    (r"[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-",
     _EDGE_L + r"[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12}"
     + _EDGE_R, "\\1\x00u\\2"),
    # A work directory as of Nextflow: two hex digits, then the rest of the hash.
    (r"[0-9a-f]{12}", r"(^|/)[0-9a-f]{2}/[0-9a-f]{12,64}(/|$)", "\\1\x00h/\x00h\\2"),
    (r"[0-9A-Fa-f]{12}",
     _EDGE_L + r"(?:[0-9a-f]{12,128}|[0-9A-F]{12,128})" + _EDGE_R, "\\1\x00h\\2"),
    (_DATED,
     _EDGE_L + r"(?:19|20)[0-9]{2}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12][0-9]|3[01])" + _EDGE_R,
     "\\1\x00d\\2"),
    (r"(?:^|/)cc[A-Za-z0-9]{6}\.",  # compiler drivers
     r"(^|/)cc[A-Za-z0-9]{6}(\.(?:s|o|res|le|ld|cdtor))", "\\1cc\x00r\\2"),
)  # fmt: skip  # a table
_NEEDED = "|".join(needed for needed, _, _ in _STEPS)  # quick test: most runs have no such names
_MIXED = (_EDGE_L + r"(?:[A-Za-z]*\x00n)+[A-Za-z]*" + _EDGE_R, "\\1\x00a\\2")

_ZEROS = np.frombuffer(
    bytes(range(256)).translate(bytes.maketrans(b"123456789", b"0" * 9)), np.uint8
)

MAX_SHAPES = 20_000
MAX_LAYOUTS = 200_000  # distinct layouts above which random parts are not searched


@dataclass(frozen=True)
class Layouts:
    """Names by their layout: with every digit as 0, and the placeholders of _STEPS.

    `code`: of each name, the index into `known` and `shapes`, which are binary.
    """

    code: pa.Array
    known: pa.Array
    shapes: pa.Array


def shapes_of(paths: pa.Array, runs: pa.Array | None = None) -> pa.Array:
    """Return the shape of each path (binary in, binary out). `runs`: the run number of each path,
    if there are several runs: a part that occurs in two runs is not random."""
    layouts = layouts_of(paths, runs)
    return layouts.shapes.take(layouts.code)


def layouts_of(paths: pa.Array, runs: pa.Array | None = None) -> Layouts:
    """Return the shapes by layout: many names have few layouts. A null is a layout, too."""
    encoded = _encode_layouts(paths.cast(pa.binary()))
    known = encoded.dictionary.to_pylist()
    if len(known) <= MAX_LAYOUTS:
        found = mask_layouts(known, _runs_of(encoded, runs))
    else:
        found = [None if layout is None else digits(layout) for layout in known]
    shapes = pa.array(found, pa.binary())
    if pc.count_distinct(shapes).as_py() > MAX_SHAPES:
        # Not recognised as random: every run of letters and digits becomes one placeholder.
        for _ in range(2):
            shapes = pc.replace_substring_regex(shapes, pattern=_MIXED[0], replacement=_MIXED[1])
    return Layouts(encoded.indices, encoded.dictionary, shapes)


def _encode_layouts(paths: pa.Array) -> pa.DictionaryArray:
    """Encode the layouts. Only the step of dates distinguishes digits: without dates, the steps
    run on names with zeros for digits, of which there are few."""
    zeros = zero_digits(paths).dictionary_encode("encode")
    if pc.any(pc.match_substring_regex(zeros.dictionary, _DATED)).as_py():
        return zero_digits(_mark_paths(paths)).dictionary_encode("encode")
    few = zero_digits(_mark_paths(zeros.dictionary)).dictionary_encode("encode")
    return pa.DictionaryArray.from_arrays(few.indices.take(zeros.indices), few.dictionary)


def _mark_paths(paths: pa.Array) -> pa.Array:
    """Apply all steps to the paths."""

    def steps(some: pa.Array) -> pa.Array:
        for needed, pattern, repl in _STEPS:
            some = _change_chosen(
                pc.match_substring_regex(some, needed), some, partial(_step, pattern, repl)
            )
        return some

    return _change_chosen(pc.match_substring_regex(paths, _NEEDED), paths, steps)


def _step(pattern: str, repl: str, names: pa.Array) -> pa.Array:
    """Apply a step, to changed names twice: neighbouring parts may share a separator."""
    out = pc.replace_substring_regex(names, pattern=pattern, replacement=repl)
    if not pattern.startswith(_EDGE_L):
        return out
    again = partial(pc.replace_substring_regex, pattern=pattern, replacement=repl)
    return _change_chosen(pc.not_equal(out, names), out, again)


def _change_chosen(
    chosen: pa.Array, names: pa.Array, change: Callable[[pa.Array], pa.Array]
) -> pa.Array:
    """Apply `change` to the chosen names."""
    chosen = pc.fill_null(chosen, False)
    some = names.filter(chosen)
    if not len(some):
        return names
    return (
        change(some)
        if len(some) == len(names)
        else pc.replace_with_mask(names, chosen, change(some))
    )


def zero_digits(paths: pa.Array) -> pa.Array:
    """Replace every digit of binary values by 0, byte by byte: lengths do not change."""
    validity, ends, text = paths.buffers()
    if text is None:
        return paths
    zeros = pa.py_buffer(_ZEROS[np.frombuffer(text, np.uint8)])
    return pa.Array.from_buffers(
        paths.type, len(paths), [validity, ends, zeros], paths.null_count, paths.offset
    )


def _runs_of(encoded: pa.DictionaryArray, runs: pa.Array | None) -> list[frozenset[int]]:
    """Return the runs that each layout occurs in."""
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


def show_shapes(shapes: pa.Array) -> pa.Array:
    """Replace each placeholder in shapes by a star."""
    return pc.replace_substring_regex(shapes, pattern="(?:\x00[a-z])+", replacement="*")


def masks_of(texts: pa.Array) -> pa.Array:
    """Return the masks of texts, with `*` for variable parts; nulls stay."""
    kept = texts.combine_chunks() if isinstance(texts, pa.ChunkedArray) else texts
    layouts = layouts_of(kept)
    return show_shapes(layouts.shapes).cast(pa.string()).take(layouts.code)
