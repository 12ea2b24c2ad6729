"""Nextflow with local jobs: `bash -ue .command.run` in a work directory of its own is one task,
with its staging; git, ps and the like are helpers.
"""

from __future__ import annotations

from tracehint.analyzer.tasks.model import WORKFLOW, Command, Engine


def _matches(command: Command) -> bool:
    return command.program == "nextflow"


def _is_job(command: Command) -> bool:
    return any(word.endswith(".command.run") for word in command.words)


ENGINE = Engine(name="nextflow", rank=WORKFLOW, matches=_matches, is_job=_is_job)
