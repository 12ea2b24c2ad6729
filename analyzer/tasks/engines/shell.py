"""Plain shell scripts: the commands are the tasks, pipes are joined, `( ... )` is one task.

The shell's own reads and writes (builtins, redirections that it opens) are the engine's.
"""

from __future__ import annotations

from tracehint.analyzer.tasks.model import SHELL, Command, Engine


def _matches(command: Command) -> bool:
    return command.kind in ("script", "inline", "wrapper")


ENGINE = Engine(name="shell", rank=SHELL, matches=_matches, copies_are_jobs=True, pipes=True)
