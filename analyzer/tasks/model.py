"""What the cutting of tasks hands on, and what one engine file must say."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

PROC_TASK = pa.schema([("proc", pa.int64()), ("task", pa.int64())])
DECLARED_TASK = pa.schema([("declared", pa.string()), ("task", pa.int64())])


@dataclass(frozen=True)
class Segmentation:
    """The tasks of a run and what belongs to each.

    `tasks` has the schema `analyzer.model.TASKS`, ordered by start; `proc_task` has one row per
    process epoch of the bundle; `declared_task` says which task stands for which row of
    `declared_tasks` (by its `task` text), for the declared inputs and outputs. `notes`: what
    could be cut otherwise, and how to ask for it. `makers`: see makers.py.
    """

    tasks: pa.Table
    proc_task: pa.Table
    declared_task: pa.Table = field(default_factory=DECLARED_TASK.empty_table)
    notes: tuple[str, ...] = ()
    makers: tuple[dict[str, Any], ...] = ()


@dataclass(frozen=True)
class Command:
    """The start of one program, as far as engines look at it: words are bounded and decoded.

    `program` is what really runs, without directories and version: for `python3 -m snakemake`
    and for `perl /usr/bin/parallel` it is the module or script. `kind` is one of KINDS.
    """

    kind: str
    program: str
    words: tuple[str, ...]
    job_of: str = ""  # engine that this command does one job of, where the words alone say so


# fork: no exec yet, so still a copy of its parent; wrapper: starts another program for the same
# purpose (env, nice, timeout); script and inline: a shell; launcher: starts the ranks of one job;
# submitter: hands a job to a batch system; program: everything else.
KINDS = ("fork", "program", "wrapper", "script", "inline", "launcher", "submitter")

# An engine inside a task of another one is cut further only when its rank is higher, or when it is
# the same engine again (make in make). A Makeflow rule that uses xargs stays one task.
SHELL, RUNNER, BUILDER, WORKFLOW = range(4)


def any_exec(command: Command) -> bool:
    """Every child that started a program is a job."""
    return command.kind != "submitter"


@dataclass(frozen=True)
class Engine:
    """How one engine's processes are told from its jobs.

    name: also the engine's name in `declared_tasks.engine`.
    rank: SHELL, RUNNER, BUILDER or WORKFLOW.
    matches: whether a command starts this engine.
    is_job: whether a child that started this command is a job; other children are helpers and
        belong to the engine.
    copies_are_jobs: a child that never starts a program is a job (a subshell), not a worker of
        the engine whose children are looked at in turn.
    pipes: children that are joined by a pipe are one job.
    pool: its workers run the tasks of a driver elsewhere in the tree; the shells that lead to it
        are plumbing.
    captures: a child that writes nothing but a pipe to its parent is a helper (make's `$(shell)`).
    """

    name: str
    rank: int
    matches: Callable[[Command], bool]
    is_job: Callable[[Command], bool] = any_exec
    copies_are_jobs: bool = False
    pipes: bool = False
    captures: bool = False
    pool: bool = False
