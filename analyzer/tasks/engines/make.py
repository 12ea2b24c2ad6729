"""GNU make (also BSD make, ninja): each child is a line of a recipe; make in make is cut again.

Which lines belong to one target is not visible in the process tree: each line is a task unless a
declared graph (`make --debug=j`, `make -np`) joins them. `$(shell ...)` belongs to make.
"""

from __future__ import annotations

from tracehint.analyzer.tasks.model import BUILDER, Command, Engine

NAMES = frozenset({"make", "gmake", "bmake", "ninja", "remake"})


def _matches(command: Command) -> bool:
    return command.program in NAMES


ENGINE = Engine(name="make", rank=BUILDER, matches=_matches, captures=True)
