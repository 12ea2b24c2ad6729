"""Columns of lists in Python, by way of their elements: many times faster than row by row."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc


def lengths(column: pa.ChunkedArray) -> list[int]:
    """Elements of each list; none where it is null."""
    found: list[int] = pc.fill_null(pc.list_value_length(column), 0).to_pylist()
    return found


def lists(column: pa.ChunkedArray) -> list[list[Any]]:
    """The lists; an empty one for a null."""
    flat = pc.list_flatten(column).to_pylist()
    ends = np.cumsum([0, *lengths(column)]).tolist()
    return [flat[start:end] for start, end in pairwise(ends)]
