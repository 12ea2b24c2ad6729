"""Rows of several partitions as one, without both in memory."""

from __future__ import annotations

from dataclasses import fields
from typing import TypeVar

import numpy as np

from tracehint.analyzer.arrays import together
from tracehint.analyzer.patterns.rows import Ints, Rows

AnyRows = TypeVar("AnyRows", bound=Rows)


def united(parts: list[AnyRows], place: Ints | None = None) -> AnyRows:
    """All rows, in order, or each at its place; the columns of the parts go as those of the whole
    come."""
    columns = {}
    for field in fields(parts[0]):
        whole = together([getattr(part, field.name) for part in parts])
        for part in parts:
            delattr(part, field.name)
        if place is not None and whole.strides[0]:
            placed = np.empty_like(whole)
            placed[place] = whole
            whole = placed
        columns[field.name] = whole
    return type(parts[0])(**columns)
