"""cwltool and toil's runner: each tool is a child; node (expressions) and version checks not."""

from __future__ import annotations

from tracehint.analyzer.tasks.model import WORKFLOW, Command, Engine

_NAMES = frozenset({"cwltool", "cwl-runner", "toil-cwl-runner"})
_HELPERS = frozenset({"node", "nodejs", "git", "uname", "ldconfig", "lscpu", "udocker"})
_VERSION_WORDS = frozenset({"--version", "version", "info"})


def _matches(command: Command) -> bool:
    return command.program in _NAMES


def _is_job(command: Command) -> bool:
    asks_version = len(command.words) > 1 and command.words[1] in _VERSION_WORDS
    return command.program not in _HELPERS and not asks_version


ENGINE = Engine(name="cwltool", rank=WORKFLOW, matches=_matches, is_job=_is_job)
