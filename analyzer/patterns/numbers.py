"""The numbers that decided for each pattern, as columns of JSON objects."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tracehint.analyzer.arrays import order_by, starts_of
from tracehint.analyzer.output.rendered import Tree, Words, decimals, flags, maybe
from tracehint.analyzer.patterns import chains
from tracehint.analyzer.patterns.cycles import SharedFiles
from tracehint.analyzer.patterns.groups import Around
from tracehint.analyzer.patterns.rows import UNKNOWN, Facts, Ints, Labels, Shapes, Single

if TYPE_CHECKING:
    from tracehint.analyzer.patterns.regions import SharedBytes
    from tracehint.analyzer.patterns.segments import Segments


@dataclass
class Sources:
    """All that evidence can speak of."""

    facts: Facts
    around: Around
    in_cycles: SharedFiles
    single: Single
    read_shapes: Shapes
    written_shapes: Shapes
    shared: SharedBytes
    shared_ranges: Segments


class FactsOf:
    """The facts of some files, a column when it is asked for: a pattern tells few of them."""

    def __init__(self, facts: Facts, files: Ints) -> None:
        self._facts, self._files = facts, files

    def __getattr__(self, name: str) -> Any:
        return getattr(self._facts, name)[self._files]


def _peeked(x: FactsOf) -> dict[str, Any]:
    return {"peeks": x.peeks, "peeks_decide": flags((x.peeks > 0) & x.decides)}


def _numbers(x: FactsOf) -> dict[str, Any]:
    return {"n": x.n, "m": decimals(x.m, 4)}


def _read(x: FactsOf) -> dict[str, Any]:
    cover = {"min": x.cover_min, "mean": x.cover_mean, "max": x.cover_max}
    return {
        **_numbers(x),
        "header_bytes": x.header,
        **_peeked(x),
        "cover": {name: decimals(values, 4) for name, values in cover.items()},
        "concurrent_readers": x.together,
    }


def _rows_of(file: Ints, wanted: Ints, count: int) -> Ints:
    """The row about each wanted file, UNKNOWN where there is none."""
    at = np.full(count, UNKNOWN, np.int64)
    at[file] = np.arange(len(file))
    return at[wanted]


def _shape(shapes: Shapes, file: Ints, count: int) -> dict[str, Any]:
    row = _rows_of(shapes.file, file, count)
    known = row >= 0
    found = shapes.take(row) if len(shapes) else Shapes(row, row, row, row, row, row, known, row)
    numbers = {
        name: maybe(getattr(found, name), known & (getattr(found, name) != UNKNOWN))
        for name in ("regions", "region_bytes", "region_min", "region_max", "stride", "alignment")
    }
    alignment = numbers.pop("alignment")
    regular = flags(found.regular)
    regular = Words(np.where(known, regular.codes, -1), regular.texts)
    return {**numbers, "regular": regular, "alignment": alignment}


def _broadcast(labels: Labels, s: Sources) -> tuple[Tree, Tree]:
    x = FactsOf(s.facts, labels.file)
    return _read(x), _numbers(x)


def _scatter(labels: Labels, s: Sources) -> tuple[Tree, Tree]:
    x = FactsOf(s.facts, labels.file)
    shape = _shape(s.read_shapes, labels.file, len(s.facts))
    order = order_by(x.n, x.reader_set)
    first = starts_of(x.n[order], x.reader_set[order])
    sizes = np.diff(np.append(first, len(order)))
    files = np.empty(len(order), np.int64)
    files[order] = np.repeat(sizes, sizes)
    full = {
        **_read(x), **shape, "gaps": x.gaps, "gap_bytes": x.gap_bytes,
        "all_to_all": flags(files > 1), "all_to_all_files": files,
    }  # fmt: skip  # a table
    return full, {**_numbers(x), "region_bytes": shape["region_bytes"]}


def _partly_shared(labels: Labels, s: Sources) -> tuple[Tree, Tree]:
    x = FactsOf(s.facts, labels.file)
    row = _rows_of(s.shared.file, labels.file, len(s.facts))
    known = row >= 0
    found = {
        name: maybe(values[row] if len(values) else row, known)
        for name, values in (("shared_bytes", s.shared.bytes), ("shared_total", s.shared.ranges))
    }
    lists = _range_texts(s)
    texts = [lists[file] for file in s.shared.file.tolist()]
    full = {**_read(x), **found, "shared_ranges": Words(row, texts)}
    return full, {**_numbers(x), "shared_bytes": found["shared_bytes"]}


def _range_texts(s: Sources) -> dict[int, str]:
    """The shared ranges of each file as JSON: a few of a few files."""
    rows: dict[int, list[str]] = {}
    shown = s.shared_ranges
    for file, a, b in zip(
        shown.file.tolist(), shown.start.tolist(), shown.stop.tolist(), strict=True
    ):
        rows.setdefault(file, []).append(f"[{a},{b}]")
    return {file: f"[{','.join(pairs)}]" for file, pairs in rows.items()}


def _gather(labels: Labels, s: Sources) -> tuple[Tree, Tree]:
    x = FactsOf(s.facts, labels.file)
    mode = np.where(x.writing > 1, 0, np.where(x.appended, 1, 2))
    full = {
        "writers": x.np, "overlap": decimals(x.overlap, 4),
        **_shape(s.written_shapes, labels.file, len(s.facts)),
        "mode": Words(mode, ('"concurrent"', '"appended in turn"', '"in turn"')),
        "concurrent_writers": x.writing, "n": x.n,
    }  # fmt: skip  # a table
    return full, {"writers": x.np, "overlap": full["overlap"]}


def _pipeline(labels: Labels, s: Sources) -> tuple[Tree, Tree]:
    x = FactsOf(s.facts, labels.file)
    piped = np.zeros(len(s.facts), bool)
    piped[labels.file] = True
    rows = s.single.take(s.single.alone & piped[s.single.file])
    position, length = chains.number(rows)
    row = _rows_of(rows.file, labels.file, len(s.facts))
    chain = {
        name: maybe(values[row] if len(values) else row, row >= 0)
        for name, values in (("position", position), ("length", length))
    }
    return {"bytes": x.u, **chain, **_peeked(x)}, chain


def _stage_in(labels: Labels, s: Sources) -> tuple[Tree, Tree]:
    x = FactsOf(s.facts, labels.file)
    return {"bytes": x.u, "cover": decimals(x.cover_mean, 4), **_peeked(x)}, {}


def _stage_out(labels: Labels, s: Sources) -> tuple[Tree, Tree]:
    x = FactsOf(s.facts, labels.file)
    return {"bytes": x.s, "writers": x.np}, {}


def _concurrently_shared(labels: Labels, s: Sources) -> tuple[Tree, Tree]:
    tasks = s.in_cycles.tasks[labels.file]
    reason = Words(s.in_cycles.cycle[labels.file].astype(np.int64), ('"versions"', '"cycle"'))
    tree: Tree = {"tasks": maybe(tasks, tasks >= 0), "reason": reason}
    return tree, tree


def _reduce(x: Around) -> tuple[dict[str, Any], Tree]:
    brief: dict[str, Any] = {"fan_in": x.files, "producers": x.partners}
    return {
        **brief,
        "bytes": x.bytes,
        "share": decimals(x.share, 4),
        "largest_producer_bytes": x.largest,
    }, brief


def _distribute(x: Around) -> tuple[dict[str, Any], Tree]:
    brief: dict[str, Any] = {"fan_out": x.files, "consumers": x.partners}
    return {
        **brief,
        "bytes": x.bytes,
        "balance_cov": decimals(x.spread, 4),
        "largest_consumer_bytes": x.largest,
    }, brief


GROUPS = {"reduce": _reduce, "distribute": _distribute}

# pattern -> (in full, in short)
SHAPES: dict[str, Callable[[Labels, Sources], tuple[Tree, Tree]]] = {
    "broadcast": _broadcast,
    "scatter": _scatter,
    "partly_shared": _partly_shared,
    "gather": _gather,
    "pipeline": _pipeline,
    "stage_in": _stage_in,
    "stage_out": _stage_out,
    "concurrently_shared": _concurrently_shared,
    "reduce": lambda labels, s: _reduce(s.around.take(labels.group)),
    "distribute": lambda labels, s: _distribute(s.around.take(labels.group)),
}
