"""`tracehint status`: the runs of the workflow here, and what the next one will have."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tracehint.commands._options import format_option
from tracehint.errors import EXIT_OK
from tracehint.schemas.wording import plural

if TYPE_CHECKING:
    from tracehint.adapters.project.state import KnownRun, ProjectState

_SHOWN = 20  # runs


@click.command()
@click.argument(
    "directory", type=click.Path(exists=True, file_okay=False, path_type=Path), default="."
)
@click.option(
    "--forget", "remove", is_flag=True, help="Remove the recordings and the workflow's state."
)
@format_option
def command(directory: Path, remove: bool, fmt: str) -> int:
    """Show the recorded runs and hints of the workflow in DIRECTORY (here).

    Example: tracehint status
    """
    from tracehint.adapters.project.config import find_config
    from tracehint.adapters.project.state import forget, read_state

    if remove:
        gone = forget(directory)
        click.echo("forgotten" if gone else "nothing to forget", err=True)
        return EXIT_OK
    state, config = read_state(directory), find_config(directory)
    if fmt == "json":
        data = {
            "schema": "tracehint.status/1",
            "project": config.texts() if config else None,
            "runs": [
                {
                    **asdict(run),
                    "recording": str(state.bundle(run)) if _is_kept(state, run) else None,
                }
                for run in state.runs
            ],
        }
        click.echo(json.dumps(data, indent=1))
        return EXIT_OK
    for key, value in (config.texts() if config else {}).items():
        click.echo(f"{key}: {' '.join(value) if isinstance(value, tuple) else value}")
    click.echo(_text(state), nl=False)
    return EXIT_OK


def _is_kept(state: ProjectState, run: object) -> bool:
    from tracehint.adapters.project.state import KnownRun

    return isinstance(run, KnownRun) and state.bundle(run).is_dir()


def _text(state: ProjectState) -> str:
    from tracehint.hintgen.text.escape import terminal

    if not state.runs and not state.cut_off():
        return "no runs yet; `tracehint run -- COMMAND` records the first one\n"
    lines = [_line(state, run) for run in state.runs[-_SHOWN:]]
    if len(state.runs) > _SHOWN:
        lines.insert(0, f"({plural(len(state.runs) - _SHOWN, 'older run')}: --format json)")
    cut_off = "running, or interrupted: "
    lines += [cut_off + terminal(str(place)) for place in state.cut_off()]
    last = state.runs[-1] if state.runs else None
    usable = state.learnable(last.command) if last else []
    if last and usable:
        lines.append(
            f"the next run of {terminal(last.program)} {_describe_next(state, last, len(usable))}"
        )
    if last and last.left_out:
        lines.append("rules without effect, left out: " + ", ".join(map(terminal, last.left_out)))
    return "\n".join(lines) + "\n"


def _describe_next(state: ProjectState, last: KnownRun, usable: int) -> str:
    """Return what the next run will be like; `usable`: recordings of the last one's program."""
    if not last.recorded:
        how = "with the same hints" if last.hinted else "without learned hints"
        return f"is like the last one: not recorded, {how}"
    if last.unrecognised:
        return "is recorded again: most tasks of the last run are not in the recorded run"
    if (slower := state.slower(last.command)) is not None:
        usual = f"{slower.usual:.1f} s without"
        return f"starts without learned hints: {slower.seconds:.1f} s with them, {usual}"
    return f"has hints from {plural(usable, 'run')}"


def _line(state: ProjectState, run: KnownRun) -> str:
    """Return number, seconds, outcome of the hints, command and path of the recording."""
    from tracehint.adapters.project.state import UNKNOWN_STATUS
    from tracehint.hintgen.text.escape import shorten, terminal

    hints = (
        f"{run.in_force:,} of {plural(run.wanted, 'hint')} in force" if run.hinted else "no hints"
    )
    if run.hinted and not run.wanted:
        hints = "no matching file" if run.recorded else "the same hints"
    hints = "no task ran" if run.idle else hints
    words = shorten(terminal(" ".join(run.command)), 50)
    status = "unknown" if run.status == UNKNOWN_STATUS else run.status
    end = f", exit status {status}" if run.status else ""
    kept = f"  {state.bundle(run)}" if state.bundle(run).is_dir() else ""
    return f"{run.number:>4}  {run.seconds:9.2f} s  {hints}{end}  {words}{kept}"
