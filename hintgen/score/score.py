"""How well rules learned on some runs fit another: `hints B --score OTHER`.

The unit is (file, attribute, value). The truth is what OTHER's own analysis
gives; the rules may use what is known before a run: paths, and the declared
graph (tasks, types, who reads what) where OTHER has one. A rule that fires on
a file without that hint is a false hit (hintgen/score/tally.py).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tracehint.analyzer.arrays import Ints, ints
from tracehint.analyzer.catalogue import GROUPED
from tracehint.analyzer.model import Analysis
from tracehint.hintgen.hints.mapping import Need, hints_of
from tracehint.hintgen.hints.model import HintFile
from tracehint.hintgen.hints.pathtext import to_text
from tracehint.hintgen.learn.columns import (
    alike,
    codes,
    first_of,
    lengths,
    lists,
    sets_in,
    word_sets,
)
from tracehint.hintgen.learn.facts import facts_of, nodes_of
from tracehint.hintgen.match.match import Declared, Matcher
from tracehint.hintgen.score.observed import truth_of
from tracehint.hintgen.score.said import Said, said_of
from tracehint.hintgen.score.tally import compare, why_wrong

T = TypeVar("T")
_TYPES = ("producer_types", "consumer_types")
# what the rules may know of the other run -> in words
KNOWS = {
    "path": "each path for itself",
    "names": "the paths of all files together",
    "graph": "paths, and the declared tasks with their types and files",
}


def declared_of(facts: pa.Table) -> Declared:
    """What the engine's graph of a run declares: tasks and types, no I/O."""
    (makers, made), (readers, read) = (word_sets(facts[name]) for name in _TYPES)
    producers, consumers = facts["producers"], facts["consumers"]
    return Declared(
        producer_types=_each([some[0] if some else None for some in makers], made),
        consumer_types=_each(readers, read),
        producers=lists(pc.cast(producers, pa.list_(pa.string()))),
        consumers=lists(pc.cast(consumers, pa.list_(pa.string()))),
        alike=_pair_counts(producers, consumers),
    )


def _each(values: Sequence[T], code: Ints) -> list[T]:
    return [values[k] for k in code.tolist()]


def _pair_counts(producers: pa.ChunkedArray, consumers: pa.ChunkedArray) -> list[int]:
    """For each file: how many have the same producers and consumers, itself included."""
    _, pair = alike(sets_in(producers), sets_in(consumers))
    found: list[int] = np.bincount(pair)[pair].tolist()
    return found


def has_declared_graph(analysis: Analysis) -> bool:
    """True when an engine's graph names the tasks of the run."""
    sources = set(analysis.tasks["source"].unique().to_pylist())
    return bool(sources & {"declared", "both"})


def predicted(
    matcher: Matcher, facts: pa.Table, *, graph: bool, nodes: int, names: bool = False
) -> Said:
    """What the rules say about the paths of a run. `names`: all of them are known to each rule."""
    paths = facts["path"].to_pylist()
    known = declared_of(facts) if graph else Declared()
    codes, found = matcher.outcomes(paths, known, nodes, frozenset(paths) if names else ())
    hinted = (
        tuple((h.name, h.value, one.pattern) for h in one.hints if h.level == "placement")
        for one in found
    )
    return said_of(paths, codes, hinted)


def baseline(learned: pa.Table, facts: pa.Table, nodes: int) -> Said:
    """A lookup of (producing types, consuming types) -> the commonest pattern; no names."""
    votes: dict[Any, Counter[str]] = defaultdict(Counter)
    first, code = alike(*_types(learned), codes(learned["pattern"]))
    seen = zip(_texts(learned, first), learned["pattern"].take(first).to_pylist(), strict=True)
    for (types, pattern), count in zip(seen, np.bincount(code).tolist(), strict=True):
        votes[types][pattern] += count
    best = {types: _commonest(found) for types, found in votes.items()}
    first, pair = alike(*_types(facts))
    said = [best.get(types, "") for types in _texts(facts, first)]
    first, code = alike(pair, ints(lengths(facts["consumers"])), _group_task(facts, said, pair))
    kinds = _needs(facts.take(first), [said[k] for k in pair[first].tolist()])
    hinted = (
        tuple(
            (hint.name, hint.value, pattern)
            for hint in hints_of(pattern, Need(readers=readers, nodes=nodes, group=group))
        )
        for pattern, readers, group in kinds
    )
    return said_of(facts["path"].to_pylist(), code, hinted)


def _commonest(found: Counter[str]) -> str:
    return min(found, key=lambda name: (-found[name], name))


def _types(facts: pa.Table) -> tuple[Ints, Ints]:
    """Producing and consuming types of each file, as numbers."""
    made, read = (word_sets(facts[name])[1] for name in _TYPES)
    return made, read


def _texts(facts: pa.Table, rows: Ints) -> list[tuple[tuple[str, ...], tuple[str, ...]]]:
    """(producing types, consuming types) of some of the files."""
    made, read = (map(tuple, lists(facts[name].take(rows))) for name in _TYPES)
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


@dataclass(frozen=True)
class PreparedRun:
    """A run, ready to be learned from or scored on many times."""

    facts: pa.Table
    nodes: int
    declared: bool
    true: Said
    size: Ints  # bytes of each file


def prepare(analysis: Analysis, facts: pa.Table | None = None) -> PreparedRun:
    """Facts, truth and sizes of a run. `facts`: those of `facts_of`, where they are there."""
    facts, nodes = facts_of(analysis) if facts is None else facts, nodes_of(analysis)
    size = ints(facts["size_bytes"])
    return PreparedRun(facts, nodes, has_declared_graph(analysis), truth_of(facts, nodes), size)


def score(
    hints: HintFile,
    learned_from: Sequence[Analysis],
    other: Analysis,
    *,
    given: str = "auto",
    facts: Sequence[pa.Table] | None = None,
) -> dict[str, Any]:
    """JSON of `hints B --score OTHER` (schemas/score.schema.json).

    `given`: graph, names, path, or auto (graph if OTHER declares one, else path).
    `facts`: those of the runs that were learned from, where they are there already.
    """
    facts = [facts_of(analysis) for analysis in learned_from] if facts is None else facts
    again = next((f for a, f in zip(learned_from, facts, strict=True) if a is other), None)
    return score_prepared(hints, pa.concat_tables(facts), prepare(other, again), given=given)


def score_prepared(
    hints: HintFile, learned: pa.Table, other: PreparedRun, *, given: str = "auto"
) -> dict[str, Any]:
    """`score`, from facts of the runs learned from."""
    facts, nodes, true, size = other.facts, other.nodes, other.true, other.size
    if given == "auto":
        given = "graph" if other.declared else "path"
    matcher = Matcher(hints)
    results = {
        kind: compare(
            predicted(matcher, facts, graph=kind == "graph", nodes=nodes, names=kind == "names"),
            true,
            size,
        )
        for kind in dict.fromkeys(("path", "names", given))
    }
    main = results[given]
    plain = compare(baseline(learned, facts, nodes), true, size)
    return {
        "schema": "tracehint.score/1",
        **main.total.as_json(),
        "per_pattern": {
            name: main.per_pattern[name].as_json() for name in sorted(main.per_pattern)
        },
        "given": given,
        "knows": KNOWS[given],
        "by_path_alone": results["path"].total.as_json(),
        "by_names": results["names"].total.as_json(),
        "baseline": plain.total.as_json(),
        "rules": len(hints.rules),
        "nodes": nodes,
        "units": len(true),
        "losses": dict(sorted(main.losses.items())),
        "wrong": [_wrong(*entry) for entry in main.wrong],
    }


def _wrong(path: bytes, name: str, value: str, wanted: str) -> dict[str, Any]:
    return {
        "path": to_text(path),
        "hint": name,
        "said": value,
        "true": wanted,
        "why": why_wrong(name, value, wanted),
    }


def score_text(data: dict[str, Any]) -> str:
    """The score as a table for people."""
    rows = [("all", data), *data["per_pattern"].items()]
    lines = [f"{'pattern':<16}{'precision':>10}{'recall':>10}{'hits':>8}{'false':>8}{'missed':>8}"]
    for name, row in rows:
        lines.append(
            f"{name:<16}{row['precision']:>10.4f}{row['recall']:>10.4f}"
            f"{row['hits']:>8}{row['false_hits']:>8}{row['missed']:>8}"
        )
    size, plain, alone = data["by_bytes"], data["baseline"], data["by_path_alone"]
    names = data["by_names"]
    lines += [
        f"{'by bytes':<16}{size['precision']:>10.4f}{size['recall']:>10.4f}",
        f"{'by path alone':<16}{alone['precision']:>10.4f}{alone['recall']:>10.4f}",
        f"{'by all names':<16}{names['precision']:>10.4f}{names['recall']:>10.4f}",
        f"{'types only':<16}{plain['precision']:>10.4f}{plain['recall']:>10.4f}   (baseline: "
        "producing and consuming type, no names)",
        f"rules knew: {data['knows']}",
    ]
    lines += [f"{count:>8} wrong: {why}" for why, count in data["losses"].items()]
    for row in data["wrong"][:10]:
        lines.append(
            f"  {row['path']} {row['hint']}: said {row['said'] or 'nothing'}, "
            f"true {row['true'] or 'nothing'}"
        )
    return "\n".join(lines) + "\n"
