"""The jobs of a recorded run, indexed by their commands to find them in submitted jobs.

A command is identified by its words without shell quotes and operators, anywhere in a job's text: a
Makeflow rule's command, a job script, the words of `sbatch --wrap`. A command of several jobs
identifies none of them. Snakemake's own commands contain names that change from run to run, so
`--target-jobs` with its argument counts as a command too.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from tracehint.adapters.place.dispatch import PlacedTask, planned_by_task

if TYPE_CHECKING:
    from tracehint.analyzer.model import Analysis
    from tracehint.hintgen.hints.model import Plan
    from tracehint.schemas.store import Bundle

Words = tuple[bytes, ...]
_WORD = re.compile(rb"[^\s'\"\\();&|<>`=]+")
_MIN_WORDS = 2  # minimum number of words of a command
_MAX_COMMAND = 1 << 16  # of a command line
_KEYS = (b"--target-jobs",)


def words_of(text: bytes) -> Words:
    """Return the words of a text, without shell quotes and operators."""
    return tuple(_WORD.findall(text))


@dataclass(frozen=True)
class KnownJobs:
    """Jobs by their commands: first words -> all words -> job."""

    commands: Mapping[Words, Mapping[Words, PlacedTask]]

    def __len__(self) -> int:
        return sum(map(len, self.commands.values()))

    def find(self, text: bytes) -> PlacedTask | None:
        """Return the job whose command the text contains; None if there is none or several."""
        words = words_of(text)
        best: list[PlacedTask] = []
        longest = 0
        for at in range(len(words)):
            for command, job in self.commands.get(words[at : at + _MIN_WORDS], {}).items():
                if len(command) < longest or words[at : at + len(command)] != command:
                    continue
                if len(command) > longest:
                    best, longest = [], len(command)
                if not any(job is other for other in best):
                    best.append(job)
        return best[0] if len(best) == 1 else None


def known_jobs(bundle: Bundle, analysis: Analysis, plan: Plan | None) -> KnownJobs:
    """Return the jobs whose programs were recorded; none for a run without jobs."""
    columns = ["proc", "parent", "prev", "argv"]
    rows = {row["proc"]: row for row in bundle.tables["processes"].select(columns).to_pylist()}
    root_of = _roots(rows)
    own = min(rows, default=None)
    planned = planned_by_task(analysis, plan)
    assert analysis.proc_task is not None
    tasks: defaultdict[int, set[int]] = defaultdict(set)
    for row in analysis.proc_task.select(["proc", "task"]).to_pylist():
        if row["proc"] in root_of and row["task"] in planned:
            tasks[root_of[row["proc"]]].add(row["task"])
    jobs = {
        root: _join_tasks([planned[task] for task in sorted(found)])
        for root, found in tasks.items()
        if root != own
    }
    seen: dict[Words, PlacedTask | None] = {}
    for proc, row in rows.items():
        job = jobs.get(root_of[proc])
        for command in _commands(row["argv"] or ()) if job is not None else ():
            seen[command] = job if seen.get(command, job) is job else None
    commands: defaultdict[Words, dict[Words, PlacedTask]] = defaultdict(dict)
    for command, job in seen.items():
        if job is not None:
            commands[command[:_MIN_WORDS]][command] = job
    return KnownJobs(dict(commands))


def _commands(argv: Iterable[bytes]) -> Iterator[Words]:
    argv = list(argv)
    words = words_of(b" ".join(argv)[:_MAX_COMMAND])
    if len(words) >= _MIN_WORDS:
        yield words
    for key, value in pairwise(argv):
        if key in _KEYS and (named := words_of(key + b" " + value))[1:]:
            yield named


def _roots(rows: Mapping[int, Any]) -> dict[int, int]:
    """Return the first process of each process's recording."""
    found: dict[int, int] = {}
    for proc in rows:
        way, at = [], proc
        while at not in found:
            way.append(at)
            row = rows[at]
            above = row["parent"] if row["parent"] is not None else row["prev"]
            if above not in rows or above in way:
                found[at] = at
                break
            at = above
        found |= dict.fromkeys(way, found[at])
    return found


def _join_tasks(tasks: list[PlacedTask]) -> PlacedTask:
    """Merge all tasks of a job; the part is that of the task that reads most."""
    parts = [task for task in tasks if task.part is not None]
    largest = max(parts, key=lambda task: sum(task.inputs.values()), default=None)
    made = tuple(dict.fromkeys(number for task in tasks for number in task.outputs))
    inputs: dict[int, int] = {}
    for task in tasks:
        for number, size in task.inputs.items():
            if number not in made:
                inputs[number] = inputs.get(number, 0) + size
    return PlacedTask(largest.part if largest is not None else None, inputs, made)
