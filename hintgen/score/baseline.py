"""What a lookup by task types alone would hint, without any name: what rules must beat."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from tracehint.analyzer.arrays import Ints, alike, ints
from tracehint.analyzer.catalogue import GROUPED
from tracehint.hintgen.hints.mapping import Need, hints_of
from tracehint.hintgen.learn.columns import codes, first_of, lengths, lists, word_sets
from tracehint.hintgen.score.prepared import PreparedRun
from tracehint.hintgen.score.said import Said, said_of

TYPES = ("producer_types", "consumer_types")  # columns of facts


def baseline(learned: pa.Table, run: PreparedRun) -> Said:
    """A lookup of (producing types, consuming types) -> the commonest pattern; no names."""
    votes: dict[Any, Counter[str]] = defaultdict(Counter)
    first, code = alike(*_types(learned), codes(learned["pattern"]))
    seen = zip(_texts(learned, first), learned["pattern"].take(first).to_pylist(), strict=True)
    for (types, pattern), count in zip(seen, np.bincount(code).tolist(), strict=True):
        votes[types][pattern] += count
    best = {types: _commonest(found) for types, found in votes.items()}
    facts = run.facts
    first, pair = alike(*_types(facts))
    said = [best.get(types, "") for types in _texts(facts, first)]
    first, code = alike(pair, ints(lengths(facts["consumers"])), _group_task(facts, said, pair))
    kinds = _needs(facts.take(first), [said[k] for k in pair[first].tolist()])
    hinted = (
        tuple(
            (hint.name, hint.value, pattern)
            for hint in hints_of(pattern, Need(readers=readers, nodes=run.nodes, group=group))
        )
        for pattern, readers, group in kinds
    )
    return said_of(run.paths, code, hinted)


def _commonest(found: Counter[str]) -> str:
    return min(found, key=lambda name: (-found[name], name))


def _types(facts: pa.Table) -> tuple[Ints, Ints]:
    """Producing and consuming types of each file, as numbers."""
    made, read = (word_sets(facts[name])[1] for name in TYPES)
    return made, read


def _texts(facts: pa.Table, rows: Ints) -> list[tuple[tuple[str, ...], tuple[str, ...]]]:
    """(producing types, consuming types) of some of the files."""
    made, read = (map(tuple, lists(facts[name].take(rows))) for name in TYPES)
    return list(zip(made, read, strict=True))


def _group_task(facts: pa.Table, said: Sequence[str], pair: Ints) -> Ints:
    """Number of the task whose group each file is in, -1: none; 0 where patterns have no groups."""
    grouped, spread = (
        np.array([pattern in some for pattern in said], bool)[pair]
        for some in (GROUPED, ("distribute",))
    )
    made, read = first_of(facts["producers"]), first_of(facts["consumers"])
    return np.where(grouped, np.where(spread, made, read), 0)


def _needs(facts: pa.Table, said: Sequence[str]) -> Iterator[tuple[str, int, str]]:
    """(pattern, readers, group) of files of which `said` has the pattern."""
    ends = lists(facts["producers"]), lists(facts["consumers"])
    for pattern, made, read in zip(said, *ends, strict=True):
        end = made if pattern == "distribute" else read
        group = str(end[0] if end else "none") if pattern in GROUPED else ""
        yield pattern, max(2, len(read)), group
