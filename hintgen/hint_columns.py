"""Hints of many files as columns: from rules, a run's own analysis, or task types alone."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tracehint.analyzer.arrays import Ints, group_equal_rows, ints, spread
from tracehint.analyzer.catalogue import GROUPED
from tracehint.analyzer.model import Analysis
from tracehint.hintgen.hints.mapping import Need, hints_of
from tracehint.hintgen.learn.facts import facts_of, nodes_of
from tracehint.hintgen.learn.filegroups import codes, first_of, lengths, lists, sets_in, word_sets
from tracehint.hintgen.match.ruleindex import AskedNames

Hinted = tuple[tuple[str, str, str], ...]  # attribute, value, pattern


@dataclass(frozen=True)
class HintColumns:
    """One row per (file, attribute), in the order of the files; texts are indices into `texts`.

    `file` is an index into `paths`, all files of the run.
    """

    paths: Sequence[bytes]
    file: Ints
    name: Ints
    value: Ints
    pattern: Ints
    texts: Sequence[str]

    def __len__(self) -> int:
        return len(self.file)


def columns_of(
    paths: Sequence[bytes], codes: Sequence[int] | Ints, kinds: Iterable[Hinted]
) -> HintColumns:
    """Return the hints as columns. `codes`: index of each path's kind. A later value wins."""
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
    return HintColumns(paths, file, chosen[:, 0], chosen[:, 1], chosen[:, 2], list(texts))


def _latest(kind: Hinted) -> Hinted:
    return tuple({hint[0]: hint for hint in kind}.values())


def truth_of(facts: pa.Table, paths: Sequence[bytes], nodes: int) -> HintColumns:
    """Return the placement hints of each file's primary pattern. `facts`: see learn/facts.py."""
    region = ints(pc.fill_null(facts["region_bytes"], 0))
    first, code = group_equal_rows(
        codes(facts["pattern"]),
        ints(lengths(facts["producers"])).clip(0, 1),
        ints(lengths(facts["consumers"])).clip(2),
        ints(facts["copies"]),
        np.where(region > 0, ints(facts["size_bytes"]), 0),  # only block sizes depend on it
        region,
        sets_in(facts["starts"]),
        codes(facts["grp"]),
    )
    kinds = _kinds(facts.take(first))
    return columns_of(paths, code, [_hints_of_kind(kind, nodes) for kind in kinds])


def _kinds(facts: pa.Table) -> Iterator[tuple[Any, ...]]:
    """Yield the facts that determine the hints of each file."""
    columns = (
        facts["pattern"].to_pylist(),
        lengths(facts["producers"]),
        lengths(facts["consumers"]),
        facts["copies"].to_pylist(),
        facts["size_bytes"].to_pylist(),
        facts["region_bytes"].to_pylist(),
        map(tuple, lists(facts["starts"])),
        facts["grp"].to_pylist(),
    )
    for pattern, made, read, copies, size, region, starts, group in zip(*columns, strict=True):
        known = size if region else 0, region or 0, starts, group
        yield pattern, not made, max(2, read), copies, *known


def _hints_of_kind(kind: tuple[Any, ...], nodes: int) -> Hinted:
    pattern, is_input, readers, copies, size, region, starts, group = kind
    if not pattern:
        return ()
    need = Need(is_input, readers, copies, nodes, size, region, starts, f"g{group}")
    return tuple((hint.name, hint.value, pattern) for hint in hints_of(pattern, need))


def has_declared_graph(analysis: Analysis) -> bool:
    """Whether an engine's graph declares the tasks of the run."""
    sources = set(analysis.tasks["source"].unique().to_pylist())
    return bool(sources & {"declared", "both"})


@dataclass(frozen=True)
class PreparedRun:
    """A run prepared for repeated learning and scoring."""

    facts: pa.Table
    paths: AskedNames
    nodes: int
    declared: bool
    true: HintColumns
    size: Ints  # bytes of each file


def prepare(analysis: Analysis, facts: pa.Table | None = None) -> PreparedRun:
    """Return the facts, true hints and sizes of a run. `facts`: from `facts_of`, if available."""
    facts, nodes = facts_of(analysis) if facts is None else facts, nodes_of(analysis)
    return prepare_run(facts, nodes, declared=has_declared_graph(analysis))


def prepare_run(facts: pa.Table, nodes: int, *, declared: bool) -> PreparedRun:
    """Return the prepared run from its facts alone."""
    paths, size = AskedNames(facts["path"].to_pylist()), ints(facts["size_bytes"])
    return PreparedRun(facts, paths, nodes, declared, truth_of(facts, paths, nodes), size)


TYPES = ("producer_types", "consumer_types")  # columns of facts


def baseline(learned: pa.Table, run: PreparedRun) -> HintColumns:
    """Return hints by the most common pattern of (producing, consuming types), without names."""
    votes: dict[Any, Counter[str]] = defaultdict(Counter)
    first, code = group_equal_rows(*_types(learned), codes(learned["pattern"]))
    seen = zip(_texts(learned, first), learned["pattern"].take(first).to_pylist(), strict=True)
    for (types, pattern), count in zip(seen, np.bincount(code).tolist(), strict=True):
        votes[types][pattern] += count
    best = {types: _commonest(found) for types, found in votes.items()}
    facts = run.facts
    first, pair = group_equal_rows(*_types(facts))
    patterns = [best.get(types, "") for types in _texts(facts, first)]
    first, code = group_equal_rows(
        pair, ints(lengths(facts["consumers"])), _group_task(facts, patterns, pair)
    )
    kinds = _needs(facts.take(first), [patterns[k] for k in pair[first].tolist()])
    hinted = (
        tuple(
            (hint.name, hint.value, pattern)
            for hint in hints_of(pattern, Need(readers=readers, nodes=run.nodes, group=group))
        )
        for pattern, readers, group in kinds
    )
    return columns_of(run.paths, code, hinted)


def _commonest(found: Counter[str]) -> str:
    return min(found, key=lambda name: (-found[name], name))


def _types(facts: pa.Table) -> tuple[Ints, Ints]:
    """Return the producing and consuming types of each file as numbers."""
    made, read = (word_sets(facts[name])[1] for name in TYPES)
    return made, read


def _texts(facts: pa.Table, rows: Ints) -> list[tuple[tuple[str, ...], tuple[str, ...]]]:
    """Return (producing types, consuming types) of some of the files."""
    made, read = (map(tuple, lists(facts[name].take(rows))) for name in TYPES)
    return list(zip(made, read, strict=True))


def _group_task(facts: pa.Table, patterns_of: Sequence[str], pair: Ints) -> Ints:
    """Return the task of each file's group; -1: none; 0 for patterns without groups."""
    grouped, spread = (
        np.array([pattern in some for pattern in patterns_of], bool)[pair]
        for some in (GROUPED, ("distribute",))
    )
    made, read = first_of(facts["producers"]), first_of(facts["consumers"])
    return np.where(grouped, np.where(spread, made, read), 0)


def _needs(facts: pa.Table, patterns: Sequence[str]) -> Iterator[tuple[str, int, str]]:
    """Yield (pattern, readers, group) of files with these patterns."""
    ends = lists(facts["producers"]), lists(facts["consumers"])
    for pattern, made, read in zip(patterns, *ends, strict=True):
        end = made if pattern == "distribute" else read
        group = str(end[0] if end else "none") if pattern in GROUPED else ""
        yield pattern, max(2, len(read)), group
