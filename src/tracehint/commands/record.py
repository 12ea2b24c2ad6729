"""`tracehint record`: run a command and write a trace bundle."""

from __future__ import annotations

from functools import partial
from typing import Any

import click

from tracehint.collectors.run import Ended, die_like
from tracehint.commands._following import chosen_follow, following_options
from tracehint.commands._recording import RecordError, RunCommand, recording_options, start
from tracehint.errors import UsageError


@click.command(cls=RunCommand, context_settings={"allow_interspersed_args": False})
@following_options
@partial(recording_options, needs_command=False)
def command(pid: int | None, cgroup: str | None, duration: float | None, **options: Any) -> int:
    """Run COMMAND and write what it read and wrote to a trace bundle.

    The command's output, exit code and signals pass through. 125: tracehint
    could not record and did not run the command; 126: the command is not
    executable; 127: it was not found.

    With --pid or --cgroup nothing is run: what runs already is followed from
    now on. Only root may follow processes of other users.

    Example: tracehint record -o run.trace -- make -j4
    """
    try:
        follow = chosen_follow(pid, cgroup, duration, options["command"])
    except UsageError as error:
        raise RecordError(error.what, error.remedy) from None
    result, bundle = start(**options, follow=follow)
    if bundle is not None and not options["quiet"]:
        click.echo(f"tracehint: wrote {click.format_filename(bundle)}", err=True)
        if result.lost_events:
            click.echo(f"tracehint: {result.lost_events} events were lost", err=True)
        click.echo(f"  next: tracehint analyze {_quoted(str(bundle))}", err=True)
    return die_like(Ended(result.exit_status, result.signal))


def _quoted(path: str) -> str:
    import shlex

    return shlex.quote(path)
