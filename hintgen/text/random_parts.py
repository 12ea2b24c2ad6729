"""Parts of names that programs made up: mkdtemp, mktemp, work directories of engines.

A name alone hardly tells: GRCh38 and x8Gh2K look alike. What stands beside it does: names of one
place, of one length, whose letters and digits lie in ever other ways are random; accession
numbers, samples and versions have one layout. Names of several runs tell more: what two of them
have is not random. docs/rationale/random-names.md has the reasons for the thresholds.

A layout is a path with each digit as `0` and NUL + letter where something is masked already.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

Runs = frozenset[int]
Key = tuple[bytes, bytes, bytes, int]  # shape of the parent; before, behind, length of the part

_TAIL = rb"((?:\.[A-Za-z][A-Za-z0-9]{0,4}){0,2})"
_MADE = rb"(?:.*[._-])?[A-Za-z_]*(?:tmp|Tmp|nxf)[._-]?"  # before it, by makers of temporary names
_WAYS: tuple[tuple[re.Pattern[bytes], bool], ...] = (  # how a part lies in a name; known maker
    (re.compile(rb"(" + _MADE + rb")([A-Za-z0-9_]{6,12})" + _TAIL), True),
    (re.compile(rb"()([A-Za-z0-9_]{6,12})" + _TAIL), False),
    (re.compile(rb"(.*[.-])([A-Za-z0-9]{6,12})" + _TAIL), False),
)  # fmt: skip  # a table
_CLASSES = re.compile(rb"0+|[a-z]+|[A-Z]+")
_COUNTERS = re.compile(rb"(?:_?[A-Za-z]_?0+)+_?")  # s1r2c3: by hand, however often it changes
_NO_WORD = re.compile(rb"[b-df-hj-np-tv-xz]{4}", re.IGNORECASE)  # four consonants in a row
# Three in a row, or no vowel: of a directory in a place of drawn ones.
_HARD_WORD = re.compile(rb"[b-df-hj-np-tv-xz]{3}|_[a-z]*_|^[^aeiou]*$", re.IGNORECASE)
_DIGITS = re.compile(rb"0+")
FEW = 3  # files of one place that must agree; of directories two do
# Drawn parts of one place, and their share of all, from which letters alone go. A directory that
# somebody named lies beside drawn ones, with as many letters, more seldom than a file does.
MANY, SURE = 4, 0.8
MANY_FOLDERS, SURE_FOLDERS = 3, 0.6


@dataclass
class _Place:
    """Parts that lie in one way in one place, and the runs that each occurs in."""

    known: bool  # the prefix is one of a maker of temporary names
    folder: bool
    parts: dict[bytes, Runs] = field(default_factory=dict)

    def add(self, part: bytes, runs: Runs) -> None:
        self.parts[part] = self.parts.get(part, frozenset()) | runs


def digits(layout: bytes) -> bytes:
    """The shape of a layout without random parts."""
    return _DIGITS.sub(b"\x00n", layout)


def masked(layouts: Sequence[bytes | None], runs: Sequence[Runs]) -> list[bytes | None]:
    """The shape of each layout; `runs`: those that it occurs in."""
    names = [[] if layout is None else layout.split(b"/") for layout in layouts]
    shapes = [b""] * len(layouts)
    for level in range(max(map(len, names), default=0)):
        here = [i for i, parts in enumerate(names) if level < len(parts)]
        places = _places(here, level, names, shapes, runs)
        random = {key: found for key, place in places.items() if (found := _random(place))}
        for i in here:
            name = _mask(names[i][level], shapes[i], random)
            shapes[i] += (b"/" if level else b"") + name
    return [
        None if layout is None else shape for layout, shape in zip(layouts, shapes, strict=True)
    ]


def _ways(name: bytes, parent: bytes) -> Iterator[tuple[Key, bytes, bool]]:
    """Where a random part could lie in a name."""
    for pattern, known in _WAYS:
        found = pattern.fullmatch(name)
        if found:
            before, part, behind = found.groups()
            yield (parent, digits(before), digits(behind), len(part)), part, known


def _places(
    here: list[int], level: int, names: list[list[bytes]], shapes: list[bytes], runs: Sequence[Runs]
) -> dict[Key, _Place]:
    """The parts of this level that could be random."""
    seen: dict[tuple[bytes, bytes, bool], Runs] = defaultdict(frozenset)
    for i in here:
        seen[shapes[i], names[i][level], level + 1 < len(names[i])] |= runs[i]
    places: dict[Key, _Place] = {}
    for (parent, name, folder), where in seen.items():
        for key, part, known in _ways(name, parent):
            place = places.setdefault(key, _Place(known, folder))
            place.folder |= folder
            place.add(part, where)
    return places


def _mask(name: bytes, parent: bytes, random: dict[Key, frozenset[bytes]]) -> bytes:
    for key, part, _ in _ways(name, parent):
        if part in random.get(key, ()):
            return key[1] + b"\x00r" + key[2]
    return digits(name)


def _random(place: _Place) -> frozenset[bytes]:
    """The parts of a place that are random; empty: none."""
    every = frozenset().union(*place.parts.values())
    several = len(every) > 1
    parts = [p for p, runs in place.parts.items() if len(runs) == 1 or not several]
    mixed = [p for p in parts if _is_mixed(p)]
    drawn = [p for p in parts if _is_mixed(p) or (place.folder and _HARD_WORD.search(p))]
    told = any(_strong(part, place) for part in mixed)
    if not mixed or not (told or _diverse(drawn, place, several)):
        return frozenset()
    many, sure = (MANY_FOLDERS, SURE_FOLDERS) if place.folder else (MANY, SURE)
    every_part = several or (len(drawn) >= many and len(drawn) >= sure * len(parts))
    return frozenset(p for p in parts if every_part or _is_mixed(p) or _NO_WORD.search(p))


def _is_mixed(part: bytes) -> bool:
    """Letters of both cases, or small letters and digits: accession numbers have neither."""
    kinds = {run[:1].isdigit() + 2 * run[:1].islower() for run in _CLASSES.findall(part)}
    return 2 in kinds and len(kinds) > 1


def _changes(part: bytes) -> int:
    return len(_CLASSES.findall(part))


def _unlike(part: bytes) -> int:
    """How unlike a word a part is: its changes; consonants in a row count as much."""
    return max(_changes(part), 4 if _NO_WORD.search(part) else 3 if _HARD_WORD.search(part) else 0)


def _pattern(part: bytes) -> bytes:
    return re.sub(rb"[A-Z]", b"A", re.sub(rb"[a-z]", b"a", part))


def _letters(part: bytes) -> bytes:
    return re.sub(rb"[0_]", b"", part)


def _diverse(mixed: list[bytes], place: _Place, several: bool) -> bool:
    """Whether letters and digits lie in ever other ways and change often."""
    count = len(mixed)
    if count < (2 if place.folder or place.known or several else FEW):
        return False
    ways, letters = len({*map(_pattern, mixed)}), len({*map(_letters, mixed)})
    changes = sum(map(_unlike, mixed)) / count
    enough = ways >= max(2, min(0.6 * count, 8)) and letters >= 0.75 * count
    return enough and changes >= (2 if several or place.known else 3)


def _strong(part: bytes, place: _Place) -> bool:
    """Whether a part tells by itself."""
    changes = _changes(part)
    if place.known:
        return changes >= 3
    fits = len(part) in ((8,) if part.islower() else (6, 10))  # Python's; mktemp's, mkdtemp's
    by_hand = _COUNTERS.fullmatch(part) is not None
    return fits and not by_hand and changes >= 4 and changes >= 0.6 * len(part)
