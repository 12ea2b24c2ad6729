"""Where no run is named: the last recorded ones of the workflow here, as `tracehint run` keeps
them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from tracehint.errors import InputError

_WORDS = {1: ("one", "is"), 2: ("two", "are")}


def last_runs(wanted: int, directory: Path) -> list[str]:
    """The recordings of the last one or two runs of the workflow there, oldest first; says which.

    Raises InputError where fewer ended well.
    """
    from tracehint.adapters.project.state import read_state

    state = read_state(directory)
    command: Sequence[str] = state.runs[-1].command if state.runs else ()
    runs = state.usable(tuple(command)) if command else []
    if len(runs) < wanted:
        of = f" of {runs[0].program}" if runs else ""
        number, are = _WORDS[wanted]
        raise InputError(
            f"{state.folder}: {len(runs) or 'no'} recorded run{of} that ended well; "
            f"{number} {are} wanted",
            "`tracehint run -- COMMAND` makes them, `tracehint status` lists them; "
            f"or name {number}.",
        )
    found = [str(state.bundle(run)) for run in runs[-wanted:]]
    what = "the last run" if wanted == 1 else "the last runs"
    click.echo(f"tracehint: {' and '.join(found)}: {what} of {runs[-1].program}", err=True)
    return found


def _given_or_last(ctx: click.Context, _: click.Parameter, value: str | None) -> str | None:
    if value is not None or ctx.resilient_parsing:
        return value
    return last_runs(1, Path())[0]


# A run, or none: then the last one of the project.
run_or_last = click.argument("bundle", required=False, type=click.Path(), callback=_given_or_last)
