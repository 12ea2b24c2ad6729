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
from tracehint.analyzer.tasks.marks import GivenNames
from tracehint.analyzer.tasks.plain import plain_descriptions
from tracehint.analyzer.tasks.tree import Ints, Tree, jump
from tracehint.analyzer.tasks.units import JOB

if TYPE_CHECKING:
    import pyarrow as pa

_MAX_PARTS = 16  # commands that a subshell's or pipeline's text is made of


def descriptions(
    processes: pa.Table,
    tree: Tree,
    classes: Classes,
    grouping: Grouping,
    names: GivenNames | None,
    jobs: tuple[Ints, list[str]] | None,
    keys: Keys,
    first: Ints,
) -> dict[str, pa.Array]:
    """Columns name, type and command, one row per task."""
    import pyarrow as pa

    units = grouping.units
    has_argv = ~classes.kind_is("fork") | (tree.next < 0)
    speaks = jump(tree.next, has_argv)[first]
    unit = np.maximum(keys.unit, 0)
    is_engine = keys.engine & (keys.unit >= 0)
    speaks = np.where(is_engine, units.engine_epoch[unit], speaks)
    composed = _composed(processes, tree, classes, grouping, keys)
    composed = {task: text for task, text in composed.items() if keys.unit[task] >= 0}
    workers = is_engine & classes.kind_is("fork")[speaks]
    special = workers | (keys.name >= 0) | (keys.job >= 0)
    special[list(composed)] = True

    argv = processes.column("argv").combine_chunks().take(pa.array(speaks))
    columns, easy = plain_descriptions(argv)
    at = np.flatnonzero(special | ~easy)
    words = zip(at.tolist(), argv.take(pa.array(at)).to_pylist(), strict=True)
    result = {task: describe(own) for task, own in words}
    for task, text in composed.items():
        command = printable(text)
        result[task] = Description(shorten(command), type_of_text(text) or "shell", command)
    for task in np.flatnonzero(workers).tolist():
        result[task] = Description("worker", "worker", "")
    _name(result, names, jobs, keys)
    return _with(columns, at, [result[task] for task in at.tolist()])


def _name(
    result: dict[int, Description],
    names: GivenNames | None,
    jobs: tuple[Ints, list[str]] | None,
    keys: Keys,
) -> None:
    """The names that tasks were given, by the user or by a batch system."""
    if names is not None:
        for task in np.flatnonzero(keys.name >= 0).tolist():
            name = printable(names.texts[keys.name[task]])
            result[task] = Description(name, type_of_name(name), result[task].command)
    if jobs is not None:
        for task in np.flatnonzero(keys.job >= 0).tolist():
            name = printable(jobs[1][keys.job[task]])
            result[task] = Description(name, result[task].type, result[task].command)


def _with(columns: dict[str, pa.Array], at: Ints, texts: list[Description]) -> dict[str, pa.Array]:
    """The columns with other rows at these places (sorted)."""
    import pyarrow as pa
    import pyarrow.compute as pc

    mask = np.zeros(len(columns["name"]), bool)
    mask[at] = True
    return {
        name: pc.replace_with_mask(
            column, pa.array(mask), pa.array([getattr(t, name) for t in texts], pa.string())
        )
        for name, column in columns.items()
    }


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
