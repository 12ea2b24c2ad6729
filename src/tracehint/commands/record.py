"""`tracehint record`: run a command and write a trace bundle."""

from __future__ import annotations

from functools import partial
from typing import Any

import click

from tracehint.collectors.run import Ended, die_like
from tracehint.commands._following import chosen_follow, following_options
from tracehint.commands._node import NodeOptions, chosen_node, node_options
from tracehint.commands._recording import (
    RecordError,
    Recording,
    RunCommand,
    chosen_settings,
    recording_options,
    start,
)
from tracehint.errors import UsageError
from tracehint.schemas.losses import words


@click.command(cls=RunCommand, context_settings={"allow_interspersed_args": False})
@following_options
@node_options
@partial(recording_options, needs_command=False)
def command(pid: int | None, cgroup: str | None, duration: float | None, **options: Any) -> int:
    """Run COMMAND and write what it read and wrote to a trace bundle.

    The command's output, exit code and signals pass through. 125: tracehint
    could not record and did not run the command; 126: the command is not
    executable; 127: it was not found.

    With --pid or --cgroup nothing is run: what runs already is followed from
    now on. Only root may follow processes of other users.

    With --node, all tasks of a user on a node share one recorder, which writes
    one bundle to TRACEHINT_BUNDLE_DIR when it ends.

    Example: tracehint record -o run.trace -- make -j4
    """
    node = NodeOptions(*(options.pop(name) for name in ("node", "start", "stop", "wait", "idle")))
    try:
        if chosen_node(node, options["command"], _other_ways(pid, cgroup, duration, options)):
            from tracehint.commands._node_run import run_node

            return run_node(
                node,
                options["command"],
                host_id=options["host_id"],
                quiet=options["quiet"],
                settings=chosen_settings(options["settings"]),
                keep_args=options["keep_args"],
                data_roots=options["data_roots"],
            )
        follow = chosen_follow(pid, cgroup, duration, options["command"])
    except UsageError as error:
        raise RecordError(error.what, error.remedy) from None
    result, bundle = start(Recording(**options, follow=follow))
    if bundle is not None and not options["quiet"]:
        click.echo(f"tracehint: wrote {click.format_filename(bundle)}", err=True)
        for text in words(result.losses):
            click.echo(f"tracehint: {text}", err=True)
        click.echo(f"  next: tracehint analyze {_quoted(str(bundle))}", err=True)
    return die_like(Ended(result.exit_status, result.signal))


def _other_ways(
    pid: int | None, cgroup: str | None, duration: float | None, options: dict[str, Any]
) -> dict[str, Any]:
    """What does not go together with `--node`, by the option's name."""
    return {
        "--pid": pid,
        "--cgroup": cgroup,
        "--duration": duration,
        "-o": options["output"],
        "--force": options["force"],
        "--collector": options["collector"] not in ("auto", "ebpf"),
    }


def _quoted(path: str) -> str:
    import shlex

    return shlex.quote(path)
