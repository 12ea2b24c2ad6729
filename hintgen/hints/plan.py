"""A plan for one run whose graph is known: which tasks belong together, and their files with them.

A part is what one node shall hold and do. It is a number from 0 to `parts` - 1, not a machine:
whoever runs the plan gives each part a node (several parts one node, where there are fewer). On
the store a part is a group, `DP=collocation|NAME` with the NAME of `group`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

GROUP = "part-"
STEAL = ("any", "unplanned")  # all tasks, or only those without a part


@dataclass(frozen=True)
class TaskPart:
    """A task by the workflow's own name, and its part."""

    name: str
    part: int


@dataclass(frozen=True)
class FilePart:
    """A file that needs something: its path below the data root as text
    (hintgen/hints/pathtext.py), its part (None: it belongs to no single one) and its hints."""

    path: str
    part: int | None
    hints: dict[str, str]


@dataclass(frozen=True)
class Plan:
    """What was decided for a run on a cluster, and the seconds that were predicted for it.

    `default_seconds`: what the store does by itself; `..._bytes`: over the network, None: not
    known. `parts` is 0 where no task is bound. What
    is not among `tasks` and `files` runs and lies anywhere (a task best where its input lies).
    `steal`: whether a node that idles takes tasks of other parts: STEAL.
    """

    cluster: str
    strategy: str
    default_seconds: float
    planned_seconds: float
    parts: int = 0
    steal: str = "any"
    tasks: tuple[TaskPart, ...] = field(default=())
    files: tuple[FilePart, ...] = field(default=())
    default_bytes: float | None = None
    planned_bytes: float | None = None


def group(part: int) -> str:
    """The name of a part's group on the store."""
    return f"{GROUP}{part}"


def part_of(group: str) -> int | None:
    """The part whose group this is; None: of none."""
    number = group.removeprefix(GROUP)
    known = number != group and number.isascii() and number.isdecimal() and len(number) < 10
    return int(number) if known else None
