"""GNU parallel: a shell per job, started by its full path; its probes start `sh`, hostname ..."""

from __future__ import annotations

from tracehint.analyzer.tasks.model import RUNNER, Command, Engine


def _matches(command: Command) -> bool:
    return command.program in ("parallel", "sem")


def _is_job(command: Command) -> bool:
    return command.kind == "inline" and "/" in command.words[0]


ENGINE = Engine(name="parallel", rank=RUNNER, matches=_matches, is_job=_is_job)
