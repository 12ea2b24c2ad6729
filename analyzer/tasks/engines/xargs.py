"""xargs: every child is a job."""

from __future__ import annotations

from tracehint.analyzer.tasks.model import RUNNER, Command, Engine


def _matches(command: Command) -> bool:
    return command.program == "xargs"


ENGINE = Engine(name="xargs", rank=RUNNER, matches=_matches)
