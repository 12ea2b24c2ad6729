"""The hints that a run's own analysis gives: what rules are scored against."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from tracehint.hintgen.hints.mapping import Need, hints_of
from tracehint.hintgen.learn.columns import lengths, lists
from tracehint.hintgen.score.said import Hinted, Said, said_of


def truth_of(facts: pa.Table, nodes: int) -> Said:
    """The placement hints of every file's primary pattern; `facts` as of learn/facts.py."""
    kinds: dict[tuple[Any, ...], int] = {}
    columns = (
        facts["pattern"].to_pylist(),
        lengths(facts["producers"]),
        lengths(facts["consumers"]),
        facts["size_bytes"].to_pylist(),
        facts["region_bytes"].to_pylist(),
        map(tuple, lists(facts["starts"])),
        facts["grp"].to_pylist(),
    )
    codes = []
    for pattern, made, read, size, region, starts, group in zip(*columns, strict=True):
        # only blocks follow from the size
        key = (pattern, not made, max(2, read), size if region else 0, region or 0, starts, group)
        codes.append(kinds.setdefault(key, len(kinds)))
    return said_of(facts["path"].to_pylist(), codes, [_hinted(key, nodes) for key in kinds])


def _hinted(kind: tuple[Any, ...], nodes: int) -> Hinted:
    pattern, is_input, readers, size, region, starts, group = kind
    if not pattern:
        return ()
    need = Need(is_input, readers, nodes, size, region, starts, f"g{group}")
    return tuple((hint.name, hint.value, pattern) for hint in hints_of(pattern, need))
