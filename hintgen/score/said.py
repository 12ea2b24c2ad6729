"""Hints of many files as columns: what rules say, and what a run's own analysis says."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from tracehint.analyzer.arrays import Ints, spread

Hinted = tuple[tuple[str, str, str], ...]  # attribute, value, pattern


@dataclass(frozen=True)
class Said:
    """One row per unit (file, attribute), in the order of the files; texts as numbers into `texts`.

    `file` is a number into `paths`, all files of the run.
    """

    paths: Sequence[bytes]
    file: Ints
    name: Ints
    value: Ints
    pattern: Ints
    texts: Sequence[str]

    def __len__(self) -> int:
        return len(self.file)


def said_of(paths: Sequence[bytes], codes: Sequence[int] | Ints, kinds: Iterable[Hinted]) -> Said:
    """`codes`: which of the `kinds` each path has. A later value of an attribute wins."""
    texts: dict[str, int] = {}
    rows = [
        [tuple(texts.setdefault(text, len(texts)) for text in hint) for hint in _latest(kind)]
        for kind in kinds
    ]
    count = np.array([len(some) for some in rows], np.int64)
    first = np.cumsum(count) - count
    flat = np.array([hint for some in rows for hint in some], np.int64).reshape(-1, 3)
    kind = np.asarray(codes, np.int64)
    here = count[kind] if len(count) else np.zeros(len(kind), np.int64)
    file = np.repeat(np.arange(len(kind)), here)
    chosen = flat[spread(first[kind], here)] if len(file) else flat[:0]
    return Said(paths, file, chosen[:, 0], chosen[:, 1], chosen[:, 2], list(texts))


def _latest(kind: Hinted) -> Hinted:
    return tuple({hint[0]: hint for hint in kind}.values())
