"""Jobs of batch systems: the processes of a run in each job, and their Slurm allocations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tracehint.analyzer.arrays import column, positions
from tracehint.analyzer.tasks.marks import environment
from tracehint.analyzer.tasks.tree import Bools, Ints, Tree, build_tree, jump

if TYPE_CHECKING:
    import pyarrow as pa

    from tracehint.analyzer.model import Segmentation


@dataclass(frozen=True)
class BatchSystem:
    """`parts`: the variables that identify a job, the job id first, and the format of each in a
    task's name; if `outer` is set, it is shown instead of the first."""

    parts: tuple[tuple[str, str], ...]
    outer: str = ""
    process: str = ""  # the variable of `parts` that numbers the processes of a step


# The first system with variables in the run is used. Names are those of the systems' own tools.
BATCH_SYSTEMS: tuple[BatchSystem, ...] = (
    BatchSystem(
        (
            ("SLURM_JOB_ID", "{}"),
            ("SLURM_ARRAY_TASK_ID", "_{}"),
            ("SLURM_STEP_ID", ".{}"),
            ("SLURM_PROCID", " task {}"),
        ),
        outer="SLURM_ARRAY_JOB_ID",
        process="SLURM_PROCID",
    ),
    BatchSystem((("PBS_JOBID", "{}"), ("PBS_ARRAY_INDEX", ""))),  # 12[3].host: the id has both
    BatchSystem((("LSB_JOBID", "{}"), ("LSB_JOBINDEX", "[{}]"))),
)
# The processes of an MPI program are ranks of one task.
MPI_RANKS = ("OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK")
_NO_INDEX = b"0"  # index of a job that is no array, and of the only process of a step


def batch_jobs(processes: pa.Table, tree: Tree, better: Bools) -> tuple[Ints, list[str]] | None:
    """Return the batch job (per host) of each epoch, -1 for none, and the names of the jobs.

    `better`: per epoch, whether a known engine divides its recording into tasks.
    None if the whole run is in one job: then the job does not distinguish tasks.
    """
    roots = np.flatnonzero(tree.up < 0)
    host = processes.column("host").combine_chunks().dictionary_encode().indices
    for system in BATCH_SYSTEMS:
        columns = [_of_roots(processes, tree, roots, variable) for variable, _ in system.parts]
        if not (columns[0][0] >= 0).any():
            continue
        if system.process:
            _leave_out_ranks(processes, tree, roots, columns)
        keys = np.stack([*(c[0] for c in columns), host.to_numpy(zero_copy_only=False)[roots]])
        distinct, first, back = np.unique(keys, axis=1, return_index=True, return_inverse=True)
        if distinct.shape[1] < 2:
            return None
        shown = [(c, text) for c, (_, text) in zip(columns, system.parts, strict=True)]
        if system.outer:
            shown[0] = (_prefer(_of_roots(processes, tree, roots, system.outer), columns[0]), "{}")
        job = np.full(len(tree.proc), -1, np.int64)
        inside = (columns[0][0] >= 0) & ~better[roots]
        job[roots] = np.where(inside, back.reshape(-1), -1)
        return job[jump(tree.up)], [_name(shown, int(root)) for root in first]
    return None


Column = tuple[Ints, list[bytes]]


def _of_roots(processes: pa.Table, tree: Tree, roots: Ints, variable: str) -> Column:
    """Return per root the code of a variable's value in it or in a program that it execs later."""
    value, texts = environment(processes, variable)
    found: Ints = value[jump(tree.next, value >= 0)][roots]
    return found, texts


def _leave_out_ranks(processes: pa.Table, tree: Tree, roots: Ints, columns: list[Column]) -> None:
    """Keep the number of a process (the last column) only where it distinguishes tasks."""
    number, texts = columns[-1]
    number[columns[-2][0] < 0] = -1  # the job script has one too, but is no process of a step
    for variable in MPI_RANKS:
        number[_of_roots(processes, tree, roots, variable)[0] >= 0] = -1
    _, step = np.unique(np.stack([c[0] for c in columns[:-1]]), axis=1, return_inverse=True)
    step = step.reshape(-1)
    several = np.zeros(len(roots), bool)
    other = np.array([text != _NO_INDEX for text in texts] + [False])
    several[step[other[number]]] = True
    number[~several[step]] = -1


def _prefer(first: Column, second: Column) -> Column:
    """Return the first column, with the second where the first is not set."""
    (a, texts), (b, more) = first, second
    return np.where(a >= 0, a, np.where(b >= 0, b + len(texts), -1)), [*texts, *more]


def _name(shown: list[tuple[Column, str]], root: int) -> str:
    parts = []
    for i, ((value, texts), form) in enumerate(shown):
        text = texts[value[root]] if value[root] >= 0 else b""
        if text and not (form == "[{}]" and text == _NO_INDEX and i):
            parts.append(form.format(text.decode("utf-8", "backslashreplace")))
    return "job " + "".join(parts)


_STEP = ("SLURM_JOB_ID", "SLURM_STEP_ID")
_DIGITS, _MAX_MIB = 9, 1 << 40


def requested_of_slurm(processes: pa.Table, segmented: Segmentation) -> dict[str, dict[str, int]]:
    """Return per task type the most cores and bytes of memory that Slurm gave a task on its node.
    Tasks of one step share its allocation; tasks started by an engine inside a job have none."""
    import pyarrow.compute as pc

    cores = _numbers(processes, "SLURM_CPUS_ON_NODE")
    if not cores.any():
        return {}
    memory = cores * _numbers(processes, "SLURM_MEM_PER_CPU")
    memory = np.minimum(np.maximum(memory, _numbers(processes, "SLURM_MEM_PER_NODE")), _MAX_MIB)
    rows = positions(column(segmented.proc_task, "proc"), column(processes, "proc"))
    task = column(segmented.proc_task, "task")[rows]
    host = processes.column("host").combine_chunks().dictionary_encode().indices
    of = [*(environment(processes, name)[0] for name in _STEP), host.to_numpy()]
    # the first process of each task that Slurm's daemon started
    tree = build_tree(processes)
    first = np.flatnonzero((tree.parent[tree.head] < 0) & (cores > 0))
    tasks, at = np.unique(task[first], return_index=True)
    first = first[at]
    keys = np.stack([key[first] for key in of])
    _, step, sharing = np.unique(keys, axis=1, return_inverse=True, return_counts=True)
    share = sharing[step.reshape(-1)]
    own = segmented.tasks.take(positions(column(segmented.tasks, "task"), tasks))
    table = own.select(["type", "engine"])
    table = table.append_column("cores", [np.maximum(1, cores[first] // share)])
    table = table.append_column("memory_bytes", [(memory[first] << 20) // share])
    most = table.filter(pc.invert(table.column("engine"))).group_by("type")
    found = most.aggregate([("cores", "max"), ("memory_bytes", "max")]).to_pylist()
    return {
        row["type"]: {"cores": row["cores_max"]}
        | ({"memory_bytes": row["memory_bytes_max"]} if row["memory_bytes_max"] else {})
        for row in found
        if row["type"] is not None
    }


def _numbers(processes: pa.Table, variable: str) -> Ints:
    """Return the value of a variable in each epoch; 0 if not set."""
    of, texts = environment(processes, variable)
    known = [int(text) if text.isdigit() and len(text) <= _DIGITS else 0 for text in texts]
    return np.array([*known, 0], np.int64)[of]
