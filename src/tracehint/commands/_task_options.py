"""What counts as a task: the options of all commands that analyze a bundle."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import click

from tracehint.commands._options import with_options

# The names are fields of analyzer.model.Options.
_OPTIONS = with_options(
    click.option(
        "--split",
        multiple=True,
        metavar="NAME",
        help="Look inside the task NAME (a program, script or type): what it starts are tasks"
        " (repeatable).",
    ),
    click.option(
        "--whole",
        multiple=True,
        metavar="NAME",
        help="NAME is one task with everything that it starts (repeatable).",
    ),
    click.option(
        "--ranks/--no-ranks",
        default=None,
        help="Each rank of an MPI program is a task (default: where they run on several hosts).",
    ),
)


def task_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options; the command gets them as `cut`, keywords of analyzer.model.Options."""

    @wraps(function)
    def command(*, split: Any, whole: Any, ranks: bool | None, **others: Any) -> Any:
        return function(cut={"split": split, "whole": whole, "ranks": ranks}, **others)

    return _OPTIONS(command)
