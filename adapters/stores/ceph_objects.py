"""Which objects a file of CephFS consists of.

The rule is Ceph's documented striping: units of `unit` bytes go round over `count` objects until
each holds `size` bytes; then come the next `count` objects.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Striping:
    """A layout, in bytes and objects."""

    unit: int
    count: int
    size: int


def objects(striping: Striping, length: int) -> Sequence[int]:
    """Numbers of the objects that hold the first `length` bytes of a file; holes are counted."""
    if length <= 0 or striping.unit <= 0 or striping.count <= 0:
        return range(0)
    units = -(-length // striping.unit)
    per_object = max(1, striping.size // striping.unit)
    full, rest = divmod(units, per_object * striping.count)
    last = min(rest, striping.count)  # objects of the last round that got a unit
    return range(full * striping.count + last)
