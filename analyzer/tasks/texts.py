"""Names, types and command texts of all tasks of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tracehint.analyzer.tasks.classify import Classes
from tracehint.analyzer.tasks.describe import (
    Description,
    describe,
    printable,
    shorten,
    type_of_name,
    type_of_text,
)
from tracehint.analyzer.tasks.grouping import Grouping, Keys
from tracehint.analyzer.tasks.marks import Names
from tracehint.analyzer.tasks.tree import Ints, Tree, jump
from tracehint.analyzer.tasks.units import JOB

if TYPE_CHECKING:
    import pyarrow as pa

_MAX_PARTS = 16  # commands that a subshell's or pipeline's text is made of


def descriptions(
    processes: pa.Table, tree: Tree, classes: Classes, grouping: Grouping, names: Names | None,
    jobs: tuple[Ints, list[str]] | None, keys: Keys, first: Ints,
) -> list[Description]:  # fmt: skip
    import pyarrow as pa

    units = grouping.units
    has_argv = ~classes.kind_is("fork") | (tree.next < 0)
    speaks = jump(tree.next, has_argv)[first]
    unit = np.maximum(keys.unit, 0)
    is_engine = keys.engine & (keys.unit >= 0)
    speaks = np.where(is_engine, units.engine_epoch[unit], speaks)
    argv = processes.column("argv").combine_chunks().take(pa.array(speaks)).to_pylist()
    result = [describe(words) for words in argv]
    for task, text in _composed(processes, tree, classes, grouping, keys).items():
        if keys.unit[task] >= 0:
            command = printable(text)
            result[task] = Description(shorten(command), type_of_text(text) or "shell", command)
    for task in np.flatnonzero(is_engine & classes.kind_is("fork")[speaks]).tolist():
        result[task] = Description("worker", "worker", "")
    if names is not None:
        for task in np.flatnonzero(keys.name >= 0).tolist():
            name = printable(names.texts[keys.name[task]])
            result[task] = Description(name, type_of_name(name), result[task].command)
    if jobs is not None:
        for task in np.flatnonzero(keys.job >= 0).tolist():
            name = printable(jobs[1][keys.job[task]])
            result[task] = Description(name, result[task].type, result[task].command)
    return result


def _composed(
    processes: pa.Table, tree: Tree, classes: Classes, grouping: Grouping, keys: Keys
) -> dict[int, str]:
    """Texts of tasks that several processes make up: pipelines and subshells."""
    import pyarrow as pa

    units = grouping.units
    heads = units.head
    joined = np.flatnonzero((grouping.of[heads] != np.arange(len(heads))) & (units.role == JOB))
    joined = joined[units.driver[joined] == units.driver[grouping.of[heads[joined]]]]
    wanted = np.unique(np.concatenate((grouping.of[heads[joined]], np.flatnonzero(units.subshell))))
    wanted = wanted[units.role[wanted] == JOB]
    members = np.unique(np.concatenate((joined, wanted))) if len(wanted) else wanted
    inside = np.flatnonzero(np.isin(grouping.unit_of, members))
    # what the shell itself started: programs whose process was forked from one without a program
    origin = tree.up[inside]
    own = ~classes.kind_is("fork")[inside]
    own &= (origin < 0) | classes.kind_is("fork")[np.maximum(origin, 0)]
    inside = inside[own]
    inside = inside[np.lexsort((inside, tree.start[inside]))]
    argv = processes.column("argv").combine_chunks().take(pa.array(inside, pa.int64())).to_pylist()
    parts: dict[int, dict[int, list[str]]] = {}
    for epoch, words in zip(inside.tolist(), argv, strict=True):
        unit = int(grouping.unit_of[epoch])
        commands = parts.setdefault(int(keys.of[epoch]), {}).setdefault(unit, [])
        if len(commands) < _MAX_PARTS:
            commands.append(describe(words).command)
    return {
        task: " | ".join(
            f"( {'; '.join(c)} )" if len(c) > 1 or units.subshell[u] else c[0]
            for u, c in sorted(by_unit.items(), key=lambda item: tree.start[heads[item[0]]])
        )
        for task, by_unit in parts.items()
    }
