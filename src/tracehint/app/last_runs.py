"""The default of commands that get no run: the last recorded runs in the directory."""

from __future__ import annotations

from pathlib import Path

import click

from tracehint.errors import InputError
from tracehint.schemas.wording import plural

_WORDS = {1: "one", 2: "two"}


def last_runs(wanted: int, directory: Path) -> list[str]:
    """Return the recordings of the last one or two runs of the workflow there, oldest first.

    They come from `tracehint run`, `profile` or `record`; the chosen ones are printed. Raises
    InputError if fewer runs succeeded.
    """
    from tracehint.adapters.project.state import read_state

    state = read_state(directory)
    recorded = state.recordings()
    last = recorded[-1] if recorded else None
    if (last is None or last.place is None) and state.runs:
        last = state.runs[-1]  # the last `tracehint run`, even if it failed
    runs = [run for run in recorded if last is not None and run.key == last.key]
    if len(runs) < wanted:
        of = f" of {runs[0].program}" if runs else ""
        number, what = _WORDS[wanted], "successful recorded run"
        raise InputError(
            f"{state.folder.parent}: found "
            f"{plural(len(runs), what) if runs else f'no {what}s'}{of}; {number} needed",
            f"`tracehint profile -- COMMAND` or `tracehint run -- COMMAND` creates one; or name "
            f"{number}.",
        )
    found = [str(state.bundle(run)) for run in runs[-wanted:]]
    what = "the last run" if wanted == 1 else "the last runs"
    click.echo(f"tracehint: {' and '.join(found)}: {what} of {runs[-1].program}", err=True)
    return found


def _given_or_last(ctx: click.Context, _: click.Parameter, value: str | None) -> str | None:
    if value is not None or ctx.resilient_parsing:
        return value
    return last_runs(1, Path())[0]


def _some_or_last(
    ctx: click.Context, _: click.Parameter, value: tuple[str, ...]
) -> tuple[str, ...]:
    if value or ctx.resilient_parsing:
        return value
    return tuple(last_runs(1, Path()))


# Arguments for one run or several; default: the project's last run.
run_or_last = click.argument("bundle", required=False, type=click.Path(), callback=_given_or_last)
runs_or_last = click.argument(
    "sources", nargs=-1, type=click.Path(), metavar="[BUNDLE]...", callback=_some_or_last
)
