"""Evidence of labels as JSON text: the full text for files, a short one for their edges."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tracehint.analyzer.arrays import ints, order_by, starts_of
from tracehint.analyzer.execution.resources import Resources, compute_all
from tracehint.analyzer.memory import give_back
from tracehint.analyzer.output.json_text import Leaf, Tree, Words, decimals, flags, maybe, objects
from tracehint.analyzer.patterns import groups
from tracehint.analyzer.patterns.choice import Chosen
from tracehint.analyzer.patterns.confidence import Factors
from tracehint.analyzer.patterns.cost import PLACEMENTS, REPLICAS
from tracehint.analyzer.patterns.groups import Around, SharedFiles
from tracehint.analyzer.patterns.rows import (
    PATTERNS,
    UNKNOWN,
    Facts,
    Floats,
    Ints,
    Labels,
    Shapes,
    Single,
    code,
)

if TYPE_CHECKING:
    import pyarrow as pa

    from tracehint.analyzer.patterns.coverage import SharedBytes
    from tracehint.analyzer.patterns.prepare import Segments


@dataclass
class Sources:
    """Data from which evidence is built."""

    facts: Facts
    around: Around
    in_cycles: SharedFiles
    single: Single
    read_shapes: Shapes
    written_shapes: Shapes
    shared: SharedBytes
    shared_ranges: Segments


class FactsOf:
    """Facts of selected files; columns are selected on access, as each pattern uses only a few."""

    def __init__(self, facts: Facts, files: Ints) -> None:
        self._facts, self._files = facts, files

    def __getattr__(self, name: str) -> Any:
        return getattr(self._facts, name)[self._files]


def _peek_evidence(x: FactsOf) -> dict[str, Any]:
    return {"peeks": x.peeks, "peeks_decide": flags((x.peeks > 0) & x.decides)}


def _numbers(x: FactsOf) -> dict[str, Any]:
    return {"n": x.n, "m": decimals(x.m, 4)}


def _read_evidence(x: FactsOf) -> dict[str, Any]:
    cover = {"min": x.cover_min, "mean": x.cover_mean, "max": x.cover_max}
    return {
        **_numbers(x),
        "header_bytes": x.header,
        **_peek_evidence(x),
        "cover": {name: decimals(values, 4) for name, values in cover.items()},
        "concurrent_readers": x.together,
    }


def _rows_of(file: Ints, wanted: Ints, count: int) -> Ints:
    """Return the row index of each wanted file; UNKNOWN if it has no row."""
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
    return _read_evidence(x), _numbers(x)


def _scatter(labels: Labels, s: Sources) -> tuple[Tree, Tree]:
    x = FactsOf(s.facts, labels.file)
    shape = _shape(s.read_shapes, labels.file, len(s.facts))
    order = order_by(x.n, x.reader_set)
    first = starts_of(x.n[order], x.reader_set[order])
    sizes = np.diff(np.append(first, len(order)))
    files = np.empty(len(order), np.int64)
    files[order] = np.repeat(sizes, sizes)
    full = {
        **_read_evidence(x),
        **shape,
        "gaps": x.gaps,
        "gap_bytes": x.gap_bytes,
        "all_to_all": flags(files > 1),
        "all_to_all_files": files,
    }
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
    full = {
        **_read_evidence(x),
        "own_regions": x.own_read,
        **found,
        "shared_ranges": Words(row, texts),
    }
    return full, {**_numbers(x), "shared_bytes": found["shared_bytes"]}


def _range_texts(s: Sources) -> dict[int, str]:
    """Return the shared ranges of each file as JSON text (few files, few ranges)."""
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
        "writers": x.np,
        "overlap": decimals(x.overlap, 4),
        **_shape(s.written_shapes, labels.file, len(s.facts)),
        "mode": Words(mode, ('"concurrent"', '"appended in turn"', '"in turn"')),
        "concurrent_writers": x.writing,
        "n": x.n,
    }
    return full, {"writers": x.np, "overlap": full["overlap"]}


def _pipeline(labels: Labels, s: Sources) -> tuple[Tree, Tree]:
    x = FactsOf(s.facts, labels.file)
    piped = np.zeros(len(s.facts), bool)
    piped[labels.file] = True
    rows = s.single.take(s.single.alone & piped[s.single.file])
    position, length = groups.number_chains(rows)
    row = _rows_of(rows.file, labels.file, len(s.facts))
    chain = {
        name: maybe(values[row] if len(values) else row, row >= 0)
        for name, values in (("position", position), ("length", length))
    }
    return {"bytes": x.u, **chain, **_peek_evidence(x)}, chain


def _stage_in(labels: Labels, s: Sources) -> tuple[Tree, Tree]:
    x = FactsOf(s.facts, labels.file)
    return {"bytes": x.u, "cover": decimals(x.cover_mean, 4), **_peek_evidence(x)}, {}


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

# pattern -> function that returns (full tree, short tree)
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


@dataclass
class EvidenceTexts:
    """Distinct texts, and per label the indices of its full and its short text."""

    full: Ints
    short: Ints
    texts: pa.Array


@dataclass(frozen=True)
class Extra:
    """Optional parts of the costs: sites, and rates of links (Options.link_rates)."""

    sites: bool
    link_rates: tuple[float, float] | None


def write(
    labels: Labels,
    factors: Factors,
    chosen: Chosen,
    sources: Sources,
    extra: Extra,
    resources: Resources,
) -> EvidenceTexts:
    """Write the texts of all labels; most labels of a large run share a few distinct texts."""
    import pyarrow as pa

    give_back()
    full, short = np.zeros(len(labels), np.int64), np.zeros(len(labels), np.int64)
    names = placements(chosen)
    rows = [np.flatnonzero(labels.pattern == number) for number in range(len(PATTERNS))]

    def texts_of(number: int) -> list[tuple[Ints, pa.Array]]:
        """Return (text index per label, distinct texts) for the full and the short evidence."""
        at = rows[number]
        tree, brief = SHAPES[PATTERNS[number]](labels.take(at), sources)
        costs = _cost(chosen.take(at), names, extra)
        tree = {**tree, "factors": _factors(factors.take(at)), "cost": costs}
        return [objects(which) if which else (ints([]), None) for which in (tree, brief)]

    some = [number for number in range(len(PATTERNS)) if len(rows[number])]
    known, count = [pa.array(["{}"], pa.large_string())], 1
    for number, both in zip(some, compute_all(texts_of, some, resources, "evidence"), strict=True):
        for (codes, texts), place in zip(both, (full, short), strict=True):
            if texts is not None:
                place[rows[number]] = codes + count
                known.append(texts)
                count += len(texts)
    return EvidenceTexts(full, short, pa.concat_arrays(known).cast(pa.string()))


def placements(chosen: Chosen) -> dict[int, str]:
    """Return number -> name of all placements that occur; the default is always included."""
    every = (chosen.placement, chosen.runner_up, chosen.asked)
    most = max(int(c.max(initial=0)) for c in every)
    used = np.flatnonzero(sum(np.bincount(c, minlength=most + 1) for c in every)).tolist()
    return {k: PLACEMENTS[k] if k < REPLICAS else f"replicas={k - REPLICAS}" for k in [0, *used]}


def words(codes: Ints, names: dict[int, str]) -> tuple[Ints, list[str]]:
    """Renumber placements without gaps; return the new numbers and the list of names."""
    numbers = np.array(sorted(names))
    return np.searchsorted(numbers, codes), [names[k] for k in numbers.tolist()]


def _factors(f: Factors) -> Tree:
    named = {
        "exact": f.exact,
        "kept": f.kept,
        "threshold": f.near,
        "peeks": f.peeks,
        "order": f.ordered,
        "collector": f.seen,
    }
    return {name: decimals(values, 4) for name, values in named.items()}


def _cost(c: Chosen, names: dict[int, str], extra: Extra) -> Tree:
    asked, known = words(c.asked, names)
    found: dict[str, Leaf | Tree] = {
        "default_network": c.net0,
        "default_wait": c.wait0,
        "placement": Words(asked, [f'"{name}"' for name in known]),
        "network": c.net,
        "wait": c.wait,
        "copies": c.copies,
    }
    if extra.sites:
        found |= {"default_between_sites": c.across0, "between_sites": c.across}
    if extra.link_rates:
        low, high = saved_seconds(c.saves_wait, c.saves, extra.link_rates)
        found |= {"saves_seconds_low": decimals(low, 6), "saves_seconds_high": decimals(high, 6)}
    return found


def saved_seconds(
    wait: Ints | int, net: Ints | int, rates: tuple[float, float]
) -> tuple[Floats, Floats]:
    """Return lower and upper bound of the seconds saved; `wait`, `net` in bytes, rates in bytes/s.

    Lower bound: the saved waiting bytes at the faster rate. Upper bound: saved waiting and network
    bytes, one after the other, at the slower rate. Negative savings count as 0, because additional
    copies are made while no reader waits.
    """
    low = np.maximum(0, wait) / rates[1]
    return low, np.maximum(low, (np.maximum(0, wait) + np.maximum(0, net)) / rates[0])


def group_evidence(around: Around, labels: Labels, chosen: Chosen) -> pa.Array:
    """Return the evidence text of each group: its numbers and the total savings of its files."""
    import pyarrow as pa

    inside = labels.group >= 0
    saves = {"saves_bytes": chosen.saves, "saves_wait_bytes": chosen.saves_wait}
    sums = {name: np.zeros(len(around), np.int64) for name in saves}
    for name, values in saves.items():
        np.add.at(sums[name], labels.group[inside], values[inside])
    parts = [pa.array([], pa.large_string())]
    for pattern, shape in GROUPS.items():
        at = np.flatnonzero(around.pattern == code(pattern))
        if len(at):
            codes, texts = objects(
                {**shape(around.take(at))[0], **{k: v[at] for k, v in sums.items()}}
            )
            parts.append(texts.take(pa.array(codes)))
    return pa.concat_arrays(parts).cast(pa.string())  # in the order of `Around`: reduces first
