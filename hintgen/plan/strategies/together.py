"""Local-first as a person would refine it: what a task reads together lies together, and inputs
that many tasks read have copies."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tracehint.analyzer.arrays import Bools, Ints
from tracehint.analyzer.predict.model import law
from tracehint.hintgen.plan.graph import Graph
from tracehint.hintgen.plan.model import Draft, Problem
from tracehint.hintgen.plan.parts import blank, finished, with_placement

NAME = "local-together"
WIDELY = 5  # readers of an input from which it gets copies
COPIES = (2, 4)


def make(problem: Problem) -> list[Draft]:
    """Drafts with all such files together, those of several readers, or none; without and with
    copies of the inputs, where these can be told anything."""
    graph = problem.graph
    reader = _last_reader(graph)
    written = graph.writer >= 0
    joined = written & (reader >= 0) & (_written_inputs(graph, written)[reader] >= 2)
    wide = (graph.writer < 0) & (graph.readers >= WIDELY) & problem.staged
    found = []
    for together in (joined, joined & (graph.readers > 1), np.zeros(graph.files, bool)):
        draft = _draft(problem, written, together, reader)
        found += [draft] if together.any() else []
        for count in COPIES if wide.any() else ():
            copies = np.where(wide, min(count, problem.cluster.count), 0).astype(np.int32)
            found.append(with_placement(draft, copies=copies))
    return found


def _last_reader(graph: Graph) -> Ints:
    """The last task that reads each file; -1: none does."""
    found = np.full(graph.files, -1, np.int64)
    np.maximum.at(found, graph.reads.file, graph.reads.task)
    return found


def _written_inputs(graph: Graph, written: Bools) -> Ints:
    """How many written files each task reads."""
    pairs = np.unique(np.stack([graph.reads.task, graph.reads.file]), axis=1)
    return np.bincount(pairs[0][written[pairs[1]]], minlength=graph.tasks)


def _draft(problem: Problem, written: Bools, together: Bools, reader: Ints) -> Draft:
    found = blank(problem, NAME, "most-input-bytes")
    assert found.law is not None and found.target is not None
    groups, number = np.unique(reader[together], return_inverse=True)
    found.law[written] = law("local")
    found.law[together] = law("group")
    found.target[together] = number
    return Draft(NAME, finished(problem, replace(found, groups=len(groups))))
