"""How well rules learned on some runs fit another: `hints B --score OTHER`.

The unit is (file, attribute, value). The truth is what OTHER's own analysis
gives; the rules may use what is known before a run: paths, and the declared
graph (tasks, types, who reads what) where OTHER has one. A rule that fires on
a file without that hint is a false hit (hintgen/score/tally.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from tracehint.analyzer.model import Analysis
from tracehint.hintgen.declared import declared_of
from tracehint.hintgen.hints.model import HintFile
from tracehint.hintgen.hints.pathtext import to_text
from tracehint.hintgen.learn.facts import facts_of
from tracehint.hintgen.match.match import Declared, Matcher
from tracehint.hintgen.score.baseline import baseline
from tracehint.hintgen.score.prepared import PreparedRun, prepare
from tracehint.hintgen.score.said import Said, said_of
from tracehint.hintgen.score.tally import compare, why_wrong

# what the rules may know of the other run -> in words
KNOWS = {
    "path": "each path for itself",
    "names": "the paths of all files together",
    "graph": "paths, and the declared tasks with their types and files",
}


def predicted(
    matcher: Matcher, run: PreparedRun, *, graph: bool, nodes: int, names: bool = False
) -> Said:
    """What the rules say about the paths of a run. `names`: all of them are known to each rule."""
    known = declared_of(run.facts) if graph else Declared()
    every = frozenset(run.paths) if names else ()
    codes, found = matcher.outcomes(run.paths, known, nodes, every)
    hinted = (
        tuple((h.name, h.value, one.pattern) for h in one.hints if h.level == "placement")
        for one in found
    )
    return said_of(run.paths, codes, hinted)


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
    nodes, true, size = other.nodes, other.true, other.size
    if given == "auto":
        given = "graph" if other.declared else "path"
    matcher = Matcher(hints)
    results = {
        kind: compare(
            predicted(matcher, other, graph=kind == "graph", nodes=nodes, names=kind == "names"),
            true,
            size,
        )
        for kind in dict.fromkeys(("path", "names", given))
    }
    main = results[given]
    plain = compare(baseline(learned, other), true, size)
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
