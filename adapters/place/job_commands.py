"""The jobs of a recorded run by the commands that ran in them, to find them in what is submitted.

A command is known by its words without a shell's quotes and signs, wherever they stand in the text
of a job: the rule's command of Makeflow, a job script, the words of `sbatch --wrap`. One that ran
in several jobs tells nothing. Of Snakemake, which gives its own commands names of the day, the
word behind `--target-jobs` counts as one.
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
_LEAST = 2  # words that are a command
_MOST_BYTES = 1 << 16  # of a command line
_KEYS = (b"--target-jobs",)


def words_of(text: bytes) -> Words:
    """The words of a text, without what a shell takes out."""
    return tuple(_WORD.findall(text))


@dataclass(frozen=True)
class KnownJobs:
    """Jobs by their commands: the first words of each, then all of them."""

    commands: Mapping[Words, Mapping[Words, PlacedTask]]

    def __len__(self) -> int:
        return sum(map(len, self.commands.values()))

    def find(self, text: bytes) -> PlacedTask | None:
        """The job that the text is of; None: of none, or of several."""
        words = words_of(text)
        best: list[PlacedTask] = []
        longest = 0
        for at in range(len(words)):
            for command, job in self.commands.get(words[at : at + _LEAST], {}).items():
                if len(command) < longest or words[at : at + len(command)] != command:
                    continue
                if len(command) > longest:
                    best, longest = [], len(command)
                if not any(job is other for other in best):
                    best.append(job)
        return best[0] if len(best) == 1 else None


def known_jobs(bundle: Bundle, analysis: Analysis, plan: Plan | None) -> KnownJobs:
    """Those whose programs were recorded; of a run without jobs none."""
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
            commands[command[:_LEAST]][command] = job
    return KnownJobs(dict(commands))


def _commands(argv: Iterable[bytes]) -> Iterator[Words]:
    argv = list(argv)
    words = words_of(b" ".join(argv)[:_MOST_BYTES])
    if len(words) >= _LEAST:
        yield words
    for key, value in pairwise(argv):
        if key in _KEYS and (named := words_of(key + b" " + value))[1:]:
            yield named


def _roots(rows: Mapping[int, Any]) -> dict[int, int]:
    """The process that each one comes from in its recording."""
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
    """All tasks of a job as one; the part is that of the task that reads most."""
    parts = [task for task in tasks if task.part is not None]
    largest = max(parts, key=lambda task: sum(task.inputs.values()), default=None)
    made = tuple(dict.fromkeys(number for task in tasks for number in task.outputs))
    inputs: dict[int, int] = {}
    for task in tasks:
        for number, size in task.inputs.items():
            if number not in made:
                inputs[number] = inputs.get(number, 0) + size
    return PlacedTask(largest.part if largest is not None else None, inputs, made)
