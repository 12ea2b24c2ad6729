"""A placement for the predictor from a hint file: what a store that honours the hints would do."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from tracehint.analyzer.predict.model import Placement, Workload, law
from tracehint.analyzer.predict.placement import staged
from tracehint.hintgen.match.match import Matcher

if TYPE_CHECKING:
    from tracehint.analyzer.model import Analysis
    from tracehint.analyzer.predict.cluster import Cluster
    from tracehint.analyzer.predict.placement import Strategy
    from tracehint.hintgen.hints.model import HintFile

_COUNT = re.compile(r"[0-9]{1,18}")
MAX_COPIES = 64


def hinted(hints: HintFile, analysis: Analysis, name: str) -> Strategy:
    """The strategy that sets these hints on the files of a run, and starts each task where most of
    its input lies; `name` is how the output calls it."""

    def strategy(work: Workload, cluster: Cluster) -> Placement:
        values = hints_by_file(hints, analysis, work, cluster.count)
        found = placement_of(values, work, name)
        hit = sum(1 for value in values if value)
        found.notes.append(f"{hit} of {work.files} files get a hint")
        if (found.copies is not None) and (found.copies[work.produced == 0] > 1).any():
            found.notes.append("copies of inputs are made before the run: not in its time")
        return staged(found, work, cluster)

    return strategy


def hints_by_file(
    hints: HintFile, analysis: Analysis, work: Workload, nodes: int, *, graph: bool = True
) -> list[dict[str, str]]:
    """Hints (name -> value) by file of the workload; a path has one set of hints.

    `graph`: the rules may know the declared graph, where there is one; else names alone.
    """
    from tracehint.hintgen.learn.facts import facts_of
    from tracehint.hintgen.score.score import declared_of, has_declared_graph

    facts = facts_of(analysis)
    paths = facts["path"].to_pylist()
    known = declared_of(facts) if graph and has_declared_graph(analysis) else None
    found = Matcher(hints).match(paths, known, nodes, frozenset(paths))
    by_path = dict(zip(paths, (match.values for match in found), strict=True))
    path_of = dict(
        zip(
            analysis.files.column("file").to_pylist(),
            analysis.files.column("path").to_pylist(),
            strict=True,
        )
    )
    return [by_path.get(path_of.get(file), {}) for file in work.file_id.tolist()]


def placement_of(values: Sequence[dict[str, str]], work: Workload, name: str) -> Placement:
    """What a store makes of hints by file, each task started where most of its input lies."""
    count = len(values)
    kinds, target = np.full(count, -1, np.int32), np.full(count, -1, np.int32)
    copies, chunk = np.zeros(count, np.int32), np.zeros(count, np.int64)
    groups: dict[str, int] = {}
    for at, hints in enumerate(values):
        word, _, rest = hints.get("DP", "").partition("|")
        copies[at] = min(MAX_COPIES, _count(hints.get("Replication", "")))
        chunk[at] = _count(hints.get("BlockSize", ""))
        if word == "local" and work.produced[at]:
            kinds[at] = law("local")
        elif word == "collocation":
            kinds[at], target[at] = law("group"), groups.setdefault(rest, len(groups))
        elif word in ("scatter", "distribute"):
            kinds[at] = law("rotate")
            chunk[at] *= _count(rest) if word == "scatter" else 1
    return Placement(
        name, kinds, copies, target, chunk, groups=len(groups), scheduler="most-input-bytes"
    )


def _count(text: str) -> int:
    return int(text) if _COUNT.fullmatch(text) else 0
