"""The columns: placements of the same workload, to be predicted and replayed."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from scripts.bench.gain.rows import WIDELY, Row

from tracehint.analyzer.model import Analysis
from tracehint.analyzer.predict.cluster import Cluster
from tracehint.analyzer.predict.model import READ, WRITE, Placement, Workload, default, law, local

HAND_COPIES = 4
BY_HAND = "hand"  # the column with placements set by hand


@dataclass(frozen=True)
class Case:
    """Input of a column: a row, its analysis, workload, cluster, and learned `rules`, per file;
    `by_name`: rules as written by `tracehint plan -o`, for runs without a graph."""

    row: Row
    analysis: Analysis
    work: Workload
    cluster: Cluster
    rules: Path
    by_name: Path = Path()


@dataclass(frozen=True)
class Column:
    """One column, with the function for its placement."""

    name: str
    title: str
    place: Callable[[Case], Placement]


def by_hand(case: Case) -> Placement:
    """Return the placement by the paper's table, as set by a user who knows the stages."""
    work, row = case.work, case.row
    kinds, target = np.full(work.files, -1, np.int32), np.full(work.files, -1, np.int32)
    copies = np.zeros(work.files, np.int32)
    task = np.repeat(np.arange(work.tasks), np.diff(work.op_begin))
    reads, writes = work.of_kind(READ), work.of_kind(WRITE)
    readers = np.bincount(work.op_file[reads], minlength=work.files)
    reader, writer = np.full(work.files, -1), np.full(work.files, -1)
    reader[work.op_file[reads]] = task[reads]
    writer[work.op_file[writes]] = task[writes]
    for file in range(work.files):
        if writer[file] < 0:
            copies[file] = HAND_COPIES if readers[file] >= WIDELY else 0
            continue
        kind = work.type_names[work.type[writer[file]]]
        hint = next((hint for pattern, hint in row.hand if re.search(pattern, kind)), "")
        if hint == "copies":
            copies[file] = HAND_COPIES
        elif hint == "group" and reader[file] >= 0:
            kinds[file], target[file] = law("group"), reader[file]
        elif hint:
            kinds[file] = law("local")
    return Placement("hand", kinds, copies, target, groups=work.tasks, scheduler="most-input-bytes")


def per_file(case: Case) -> Placement:
    """Return the placement by rules of `tracehint hints`, learned on the other instance."""
    from tracehint.hintgen.hints.hintfile import load
    from tracehint.hintgen.placed import hinted_strategy

    return hinted_strategy(load(case.rules), case.analysis, "per-file")(case.work, case.cluster)


def rules_only(case: Case) -> Placement:
    """Return the placement by rules by name alone, for a run with an unknown graph: tasks on any
    idle node, inputs where the store put them."""
    from tracehint.hintgen.hints.hintfile import load
    from tracehint.hintgen.placed import hints_by_file, placement_of

    work, hints = case.work, load(case.by_name)
    values = hints_by_file(hints, case.analysis, work, case.cluster.count, graph=False)
    made = [v if made else {} for v, made in zip(values, work.produced, strict=True)]
    return replace(placement_of(made, work, "rules"), scheduler=None)


def planned(case: Case) -> Placement:
    """Return the placement that `tracehint plan --stage-inputs` chooses: inputs are placed for this
    run, as by hand and by hints per file."""
    from tracehint.hintgen.hints.hintfile import load
    from tracehint.hintgen.plan.model import Problem
    from tracehint.hintgen.plan.planner import plan

    found = plan(Problem(case.analysis, case.work, case.cluster, load(case.rules), True))
    return replace(found.estimate(found.chosen).draft.placement, name=f"plan: {found.chosen}")


COLUMNS: dict[str, Column] = {
    column.name: column
    for column in (
        Column("default", "default", lambda c: default(c.work, c.cluster)),
        Column("local", "local-first, data-aware scheduling", lambda c: local(c.work, c.cluster)),
        Column(BY_HAND, "by hand, as in the paper", by_hand),
        Column("hints", "hints per file", per_file),
        Column("rules", "rules by name alone", rules_only),
        Column("planned", "planned", planned),
    )
}
