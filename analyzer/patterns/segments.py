"""Segments of files that the same number of ranges cover."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tracehint.analyzer.arrays import Bools, Ints, order_by, starts_of
from tracehint.analyzer.patterns.rows import Rows


@dataclass
class Segments(Rows):
    """Segments of files, sorted, from the first to the last byte of each file; `deep` ranges
    and of these `wide` marked ones cover them, 0 is a gap."""

    file: Ints
    start: Ints
    stop: Ints
    deep: Ints
    wide: Ints


def segments(file: Ints, start: Ints, end: Ints, marked: Bools | None = None) -> Segments:
    """Cut files where a range begins or ends."""
    files, place = np.concatenate([file, file]), np.concatenate([start, end])
    order = order_by(files, place)
    files, place = files[order], place[order]
    step = np.where(order < len(file), 1, -1)
    first = starts_of(files, place)
    if not len(first):
        return Segments.empty()
    deep = np.cumsum(np.add.reduceat(step, first))  # adds up to 0 in each file
    wide = deep
    if marked is not None:
        wide = np.cumsum(np.add.reduceat(step * marked[order % len(file)], first))
    files, place = files[first], place[first]
    at = np.flatnonzero(files[1:] == files[:-1])
    return Segments(files[at], place[at], place[at + 1], deep[at], wide[at])
