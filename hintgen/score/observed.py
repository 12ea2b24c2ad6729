"""The hints that a run's own analysis gives: what rules are scored against."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tracehint.analyzer.arrays import alike, ints
from tracehint.hintgen.hints.mapping import Need, hints_of
from tracehint.hintgen.learn.columns import codes, lengths, lists, sets_in
from tracehint.hintgen.score.said import Hinted, Said, said_of


def truth_of(facts: pa.Table, paths: Sequence[bytes], nodes: int) -> Said:
    """The placement hints of every file's primary pattern. `facts`: as of learn/facts.py."""
    region = ints(pc.fill_null(facts["region_bytes"], 0))
    first, code = alike(
        codes(facts["pattern"]),
        ints(lengths(facts["producers"])).clip(0, 1),
        ints(lengths(facts["consumers"])).clip(2),
        np.where(region > 0, ints(facts["size_bytes"]), 0),  # only blocks follow from the size
        region,
        sets_in(facts["starts"]),
        codes(facts["grp"]),
    )
    kinds = _kinds(facts.take(first))
    return said_of(paths, code, [_hinted(kind, nodes) for kind in kinds])


def _kinds(facts: pa.Table) -> Iterator[tuple[Any, ...]]:
    """What the hints of each file follow from."""
    columns = (
        facts["pattern"].to_pylist(),
        lengths(facts["producers"]),
        lengths(facts["consumers"]),
        facts["size_bytes"].to_pylist(),
        facts["region_bytes"].to_pylist(),
        map(tuple, lists(facts["starts"])),
        facts["grp"].to_pylist(),
    )
    for pattern, made, read, size, region, starts, group in zip(*columns, strict=True):
        yield pattern, not made, max(2, read), size if region else 0, region or 0, starts, group


def _hinted(kind: tuple[Any, ...], nodes: int) -> Hinted:
    pattern, is_input, readers, size, region, starts, group = kind
    if not pattern:
        return ()
    need = Need(is_input, readers, nodes, size, region, starts, f"g{group}")
    return tuple((hint.name, hint.value, pattern) for hint in hints_of(pattern, need))
