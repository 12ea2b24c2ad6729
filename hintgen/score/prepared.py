"""What a run gives that a score asks for, found out once."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from tracehint.analyzer.arrays import Ints, ints
from tracehint.analyzer.model import Analysis
from tracehint.hintgen.learn.facts import facts_of, nodes_of
from tracehint.hintgen.match.skeleton import AskedNames
from tracehint.hintgen.score.observed import truth_of
from tracehint.hintgen.score.said import Said


def has_declared_graph(analysis: Analysis) -> bool:
    """True when an engine's graph names the tasks of the run."""
    sources = set(analysis.tasks["source"].unique().to_pylist())
    return bool(sources & {"declared", "both"})


@dataclass(frozen=True)
class PreparedRun:
    """A run, ready to be learned from or scored on many times."""

    facts: pa.Table
    paths: AskedNames
    nodes: int
    declared: bool
    true: Said
    size: Ints  # bytes of each file


def prepare(analysis: Analysis, facts: pa.Table | None = None) -> PreparedRun:
    """Facts, truth and sizes of a run. `facts`: those of `facts_of`, where they are there."""
    facts, nodes = facts_of(analysis) if facts is None else facts, nodes_of(analysis)
    return prepared(facts, nodes, declared=has_declared_graph(analysis))


def prepared(facts: pa.Table, nodes: int, *, declared: bool) -> PreparedRun:
    """The same from the facts alone."""
    paths, size = AskedNames(facts["path"].to_pylist()), ints(facts["size_bytes"])
    return PreparedRun(facts, paths, nodes, declared, truth_of(facts, paths, nodes), size)
