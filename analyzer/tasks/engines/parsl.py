"""Parsl's worker pool (and Work Queue, TaskVine workers): every program that a worker starts is a
task. Python apps run inside the worker: only TRACEHINT_TASK and marks can tell those apart.
"""

from __future__ import annotations

from tracehint.analyzer.tasks.model import WORKFLOW, Command, Engine

_NAMES = frozenset(
    {"process_worker_pool.py", "process_worker_pool", "work_queue_worker", "vine_worker"}
)
_HELPERS = frozenset({"uname", "lscpu", "ldconfig", "hostname"})


def _matches(command: Command) -> bool:
    return command.program in _NAMES


def _is_job(command: Command) -> bool:
    return command.program not in _HELPERS


ENGINE = Engine(name="parsl", rank=WORKFLOW, matches=_matches, is_job=_is_job, pool=True)
