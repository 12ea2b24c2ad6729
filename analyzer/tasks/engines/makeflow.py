"""Makeflow with local jobs: every rule runs as `sh -c RULE`; other children are helpers (orted)."""

from __future__ import annotations

from tracehint.analyzer.tasks.model import WORKFLOW, Command, Engine


def _matches(command: Command) -> bool:
    return command.program == "makeflow"


def _is_job(command: Command) -> bool:
    return command.kind == "inline"


ENGINE = Engine(name="makeflow", rank=WORKFLOW, matches=_matches, is_job=_is_job)
