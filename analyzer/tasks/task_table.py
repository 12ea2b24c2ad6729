"""Table of the tasks of a run: names, types, commands, times, exit status and attempts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tracehint.analyzer.arrays import column, distinct, finder, order_by
from tracehint.analyzer.model import PROC_TASK, TASKS, Segmentation
from tracehint.analyzer.tasks.classify import Classes
from tracehint.analyzer.tasks.describe import (
    Description,
    describe,
    plain_descriptions,
    printable,
    shorten,
    type_of_name,
    type_of_text,
)
from tracehint.analyzer.tasks.marks import GivenNames
from tracehint.analyzer.tasks.tree import JOB, NEVER, Bools, Grouping, Ints, Keys, Tree, jump

if TYPE_CHECKING:
    import pyarrow as pa

    from tracehint.schemas.store import Bundle


_MAX_PARTS = 16  # maximum number of commands in the text of a subshell or pipeline
_MAX_STATUS = 2**31 - 1  # maximum of the column


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
    """Return the columns name, type and command, one row per task."""
    import pyarrow as pa

    units = grouping.units
    has_argv = ~classes.kind_is("fork") | (tree.next < 0)
    described = jump(tree.next, has_argv)[first]
    unit = np.maximum(keys.unit, 0)
    is_engine = keys.engine & (keys.unit >= 0)
    described = np.where(is_engine, units.engine_epoch[unit], described)
    composed = _compose_commands(processes, tree, classes, grouping, keys)
    composed = {task: text for task, text in composed.items() if keys.unit[task] >= 0}
    workers = is_engine & classes.kind_is("fork")[described]
    special = workers | (keys.name >= 0) | (keys.job >= 0)
    special[list(composed)] = True

    argv = processes.column("argv").combine_chunks().take(pa.array(described))
    columns, easy = plain_descriptions(argv)
    at = np.flatnonzero(special | ~easy)
    words = zip(at.tolist(), argv.take(pa.array(at)).to_pylist(), strict=True)
    result = {task: describe(own) for task, own in words}
    for task, text in composed.items():
        command = printable(text)
        result[task] = Description(shorten(command), type_of_text(text) or "shell", command)
    for task in np.flatnonzero(workers).tolist():
        result[task] = Description("worker", "worker", "")
    _apply_names(result, names, jobs, keys)
    return _fill(columns, at, [result[task] for task in at.tolist()])


def _apply_names(
    result: dict[int, Description],
    names: GivenNames | None,
    jobs: tuple[Ints, list[str]] | None,
    keys: Keys,
) -> None:
    """Apply the names that the user or a batch system gave to tasks, in place."""
    if names is not None:
        for task in np.flatnonzero(keys.name >= 0).tolist():
            name = printable(names.texts[keys.name[task]])
            result[task] = Description(name, type_of_name(name), result[task].command)
    if jobs is not None:
        for task in np.flatnonzero(keys.job >= 0).tolist():
            name = printable(jobs[1][keys.job[task]])
            result[task] = Description(name, result[task].type, result[task].command)


def _fill(columns: dict[str, pa.Array], at: Ints, texts: list[Description]) -> dict[str, pa.Array]:
    """Return the columns with other texts in these rows (sorted)."""
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


def _compose_commands(
    processes: pa.Table, tree: Tree, classes: Classes, grouping: Grouping, keys: Keys
) -> dict[int, str]:
    """Return the texts of tasks that consist of several processes: pipelines and subshells."""
    import pyarrow as pa

    units = grouping.units
    heads = units.head
    joined = np.flatnonzero((grouping.of[heads] != np.arange(len(heads))) & (units.role == JOB))
    joined = joined[units.driver[joined] == units.driver[grouping.of[heads[joined]]]]
    wanted = np.unique(np.concatenate((grouping.of[heads[joined]], np.flatnonzero(units.subshell))))
    wanted = wanted[units.role[wanted] == JOB]
    members = np.unique(np.concatenate((joined, wanted))) if len(wanted) else wanted
    inside = np.flatnonzero(np.isin(grouping.unit_of, members))
    # programs that the shell itself started: execed by a forked copy whose parent is another forked
    # copy or outside the unit (unlike those that xargs started)
    copy, mine = classes.kind_is("fork"), grouping.unit_of[inside]
    origin = tree.up[inside]
    own = ~copy[inside] & ((origin < 0) | copy[np.maximum(origin, 0)])
    before = np.where(origin >= 0, tree.up[origin], -1)
    own &= (before < 0) | copy[before] | (grouping.unit_of[before] != mine)
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


def assemble(
    bundle: Bundle,
    tree: Tree,
    classes: Classes,
    grouping: Grouping,
    names: GivenNames | None,
    jobs: tuple[Ints, list[str]] | None,
) -> Segmentation:
    """Return the tasks, ordered by their start, and the task of each epoch."""
    import pyarrow as pa

    processes = bundle.tables["processes"]
    keys = _keys(grouping, names, jobs)
    n = len(keys.unit)
    start = np.full(n, NEVER)
    np.minimum.at(start, keys.of, tree.start)
    order = order_by(start)
    rank = np.empty(n, np.int64)
    rank[order] = np.arange(n)
    task_of = rank[keys.of]
    keys = Keys(task_of, keys.unit[order], keys.name[order], keys.job[order], keys.engine[order])
    table = _task_table(bundle, processes, tree, classes, grouping, names, jobs, keys)
    proc_task = pa.table({"proc": tree.proc, "task": task_of}, schema=PROC_TASK)
    return Segmentation(table, proc_task)


def _keys(
    grouping: Grouping, names: GivenNames | None, jobs: tuple[Ints, list[str]] | None
) -> Keys:
    """Return the task keys: given names override batch jobs, and these the process tree."""
    n_units = len(grouping.units)
    engine = grouping.engine.copy()
    key = grouping.of.copy()
    n_names = len(names.texts) if names else 0
    if jobs is not None:
        key = np.where(jobs[0] >= 0, n_units + n_names + jobs[0], key)
    if names is not None:
        key = np.where(names.of >= 0, n_units + names.of, key)
        _absorb_leftovers(key, grouping, names, n_units, engine)
    distinct, of = np.unique(key, return_inverse=True)
    is_unit, is_name = distinct < n_units, distinct < n_units + n_names
    none = np.full(len(distinct), -1)
    return Keys(
        of.reshape(-1),
        np.where(is_unit, distinct, none),
        np.where(is_name & ~is_unit, distinct - n_units, none),
        np.where(is_name, none, distinct - n_units - n_names),
        np.where(is_unit, np.append(engine, False)[np.where(is_unit, distinct, -1)], False),
    )


def _absorb_leftovers(
    key: Ints, grouping: Grouping, names: GivenNames, n_units: int, engine: Bools
) -> None:
    """Add the shell or wrapper around one named command to its task, in place; a process that runs
    several named tasks is a worker, an engine process."""
    named = np.flatnonzero(names.of >= 0)
    pairs = np.unique(np.stack((grouping.of[named], names.of[named])), axis=1)
    unit, first, count = np.unique(pairs[0], return_index=True, return_counts=True)
    name_of = np.full(n_units, -1, np.int64)
    sole = unit[count == 1]
    name_of[sole] = pairs[1][first[count == 1]]
    name_of[engine[: len(name_of)]] = -1
    left = (key == grouping.of) & (name_of[grouping.of] >= 0)
    key[left] = n_units + name_of[grouping.of[left]]
    engine[unit[count > 1]] = True


def _task_table(
    bundle: Bundle,
    processes: pa.Table,
    tree: Tree,
    classes: Classes,
    grouping: Grouping,
    names: GivenNames | None,
    jobs: tuple[Ints, list[str]] | None,
    keys: Keys,
) -> pa.Table:
    import pyarrow as pa

    n = len(keys.unit)
    first, last = _representatives(tree, grouping, names, keys)
    start = np.full(n, NEVER)
    np.minimum.at(start, keys.of, tree.start)
    end = _ends(bundle, tree, keys.of, tree.end[jump(tree.next)[last]])
    pairs = distinct(keys.of * len(tree.proc) + tree.head)
    count = np.bincount(pairs // max(1, len(tree.proc)), minlength=n)
    texts = descriptions(processes, tree, classes, grouping, names, jobs, keys, first)
    status, status_known = exit_status(processes, jump(tree.next)[last])
    origin = bundle.manifest.started_ns or (int(start.min()) if n else 0)
    columns = {
        "task": np.arange(n),
        **texts,
        **_hosts(bundle, processes.column("host").combine_chunks().take(pa.array(first))),
        "start_s": (start - origin) / 1e9,
        "end_s": pa.array((end - origin) / 1e9, mask=end == NEVER),
        "exit_status": pa.array(status, pa.int32(), mask=~status_known),
        "attempt": _attempts(
            processes, grouping, names, keys, first, start, end, texts["command"], status > 0
        ),
        "processes": count,
        "engine": keys.engine,
        "source": pa.repeat(pa.scalar("observed"), n),
        **{k: pa.nulls(n, TASKS.field(k).type) for k in ("group", "rank", "cpu_s", "io_wait_s")},
    }
    return pa.table(columns, schema=TASKS)


def _ends(bundle: Bundle, tree: Tree, of: Ints, main: Ints) -> Ints:
    """Return the end of each task; `main` is the end of the process with its exit status. A process
    that outlives it (a wrapper's background loop) counts until its last access."""
    left = np.flatnonzero(tree.end == NEVER)
    ends = tree.end.copy()
    ends[left] = 0
    if len(left):
        opens = bundle.tables["opens"]
        at = finder(tree.proc[left])(column(opens, "proc"))
        np.maximum.at(ends, left[at[at >= 0]], column(opens, "last_ns", 0)[at >= 0])
    end = np.zeros(len(main), np.int64)
    np.maximum.at(end, of, ends)
    return np.where(main == NEVER, NEVER, end)


def _hosts(bundle: Bundle, hosts: pa.Array) -> dict[str, pa.Array]:
    """Return the columns host and site of tasks on these hosts."""
    import pyarrow as pa

    coded: Any = hosts.dictionary_encode()
    sites = {h.name: h.site for h in bundle.manifest.hosts}
    of_host = pa.array([sites.get(h, "") for h in coded.dictionary.to_pylist()], pa.string())
    return {"host": hosts.cast(pa.string()), "site": of_host.take(coded.indices)}


def _representatives(
    tree: Tree, grouping: Grouping, names: GivenNames | None, keys: Keys
) -> tuple[Ints, Ints]:
    """Return per task its first epoch, and the epoch of the process with its exit status."""
    heads = grouping.units.head
    first = np.where(keys.unit >= 0, heads[np.maximum(keys.unit, 0)], -1)
    if names is not None:
        first = np.where(keys.name >= 0, names.top[np.maximum(keys.name, 0)], first)
    # a batch job: its first process
    order = order_by(keys.of, tree.start, tree.proc)
    begin = np.searchsorted(keys.of[order], np.arange(len(keys.unit)))
    first = np.where(first >= 0, first, order[begin])
    last = first.copy()
    # a pipeline has the status of its last command, the one started last
    unit_task = np.full(len(heads), -1, np.int64)
    unit_task[grouping.unit_of] = keys.of
    member = np.flatnonzero((unit_task >= 0) & (grouping.units.role == JOB))
    member = member[keys.unit[unit_task[member]] >= 0]
    member = member[grouping.of[heads[member]] != member]  # joined to another unit
    member = member[
        grouping.units.driver[member] == grouping.units.driver[grouping.of[heads[member]]]
    ]
    member = member[np.lexsort((tree.proc[heads[member]], tree.start[heads[member]]))]
    last[unit_task[member]] = heads[member]
    swap = tree.start[last] < tree.start[first]
    last[swap] = first[swap]
    return first, last


def exit_status(processes: pa.Table, last: Ints) -> tuple[Ints, Bools]:
    """Return the status (or 128 + signal) by last epoch of a process, and whether it is known."""
    code = column(processes, "exit_code", -1)[last]
    signal = column(processes, "exit_signal", 0)[last]
    status = np.where(signal > 0, 128 + signal, code)
    return np.clip(status, 0, _MAX_STATUS), (signal > 0) | (code >= 0)


def _attempts(
    processes: pa.Table,
    grouping: Grouping,
    names: GivenNames | None,
    keys: Keys,
    first: Ints,
    start: Ints,
    end: Ints,
    command: pa.Array,
    failed: Bools,
) -> Ints:
    """Return 1 + the number of preceding failures of the same command in the same directory."""
    import pyarrow as pa

    n = len(keys.unit)
    commands: Any = command.dictionary_encode()
    cwd = processes.column("cwd").combine_chunks().take(pa.array(first)).dictionary_encode()
    driver = grouping.units.driver[np.maximum(keys.unit, 0)]
    kind = np.where(keys.engine | (keys.unit < 0), np.arange(n) + 1, 0)
    columns = (
        kind,
        driver,
        cwd.indices.fill_null(-1).to_numpy(zero_copy_only=False),
        commands.indices.to_numpy(zero_copy_only=False),
    )
    order = order_by(*columns[::-1], start)
    same = np.ones(n, bool)
    same[0:1] = False
    for key in columns:
        same[1:] &= key[order][1:] == key[order][:-1]
    follows = same.copy()
    follows[1:] &= failed[order][:-1] & (end[order][:-1] <= start[order][1:])
    position = np.arange(n)
    run_start = np.maximum.accumulate(np.where(follows, 0, position))
    attempt = np.ones(n, np.int64)
    attempt[order] = position - run_start + 1
    if names is not None:
        given = keys.name >= 0
        attempt[given] = np.array(names.attempt)[keys.name[given]]
    return attempt
