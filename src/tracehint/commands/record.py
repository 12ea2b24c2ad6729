"""`tracehint record`: run a command and write a trace bundle."""

from __future__ import annotations

import contextlib
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NoReturn

import click

from tracehint.collectors.base import Follow, RecordRequest
from tracehint.collectors.begin import default_bundle, recorded_already
from tracehint.collectors.ebpf.node import Place, node_place, serve, stop, wait_for_recorder
from tracehint.collectors.run import CommandError, Ended, become, die_like, find_command, runnable
from tracehint.commands._options import given_roots, with_options
from tracehint.commands._recording import (
    RecordError,
    Recording,
    RunCommand,
    chosen_follow,
    chosen_settings,
    following_options,
    recording_options,
    start,
)
from tracehint.errors import TracehintError, UsageError
from tracehint.schemas.losses import words

IDLE_SECONDS = 30.0  # before a recorder that a task started ends


@dataclass(frozen=True)
class NodeOptions:
    """`--node` and what belongs to it."""

    node: bool
    start: bool
    stop: bool
    wait: float | None
    idle: float | None


def chosen_node(options: NodeOptions, command: tuple[str, ...], others: dict[str, Any]) -> bool:
    """Whether `--node` was given. Raises UsageError for conflicting options."""
    given = [
        f"--{name}"
        for name, value in (
            ("start", options.start),
            ("stop", options.stop),
            ("wait", options.wait is not None),
            ("idle", options.idle is not None),
        )
        if value
    ]
    if not options.node:
        if given:
            raise UsageError(f"{given[0]}: needs --node", "Add --node.")
        return False
    wrong = next((name for name, value in others.items() if value), None)
    if wrong is not None:
        raise UsageError(f"--node and {wrong} cannot be combined", "Leave one of them out.")
    if options.start + options.stop + bool(command) > 1:
        raise UsageError("--start, --stop and a command cannot be combined", "Give only one.")
    if options.wait is not None and not command:
        raise UsageError("--wait: needs a command", "Give a command.")
    return True


def run_node(
    options: NodeOptions,
    command: tuple[str, ...],
    *,
    host_id: str,
    quiet: bool,
    settings: dict[str, str],
    keep_args: bool,
    no_args: bool,
    data_roots: tuple[str, ...],
) -> int:
    """Do what `--node` asks for; does not return when a command was given."""
    if command and recorded_already():
        _exec_command(command)
    place = _place(host_id, command)

    def record(follow: Follow) -> int:
        from tracehint.collectors.ebpf.collector import EbpfCollector
        from tracehint.collectors.ebpf.segments import as_recorder

        with as_recorder(place):
            bundle = default_bundle(("node",), host_id)
            request = RecordRequest(
                command=(),
                output=bundle,
                data_roots=given_roots(data_roots),
                keep_args=keep_args,
                no_args=no_args,
                quiet=True,
                host=host_id,
                options=settings,
                follow=follow,
            )
            return EbpfCollector().record(request).exit_status

    if options.stop:
        if not stop(place) and not quiet:
            click.echo("tracehint: no recorder was running on this node", err=True)
        return 0
    if command:
        _join(place, options, command, record, quiet=quiet)
    return _serve(place, options, record)


def _serve(place: Place, options: NodeOptions, record: Callable[[Follow], int]) -> int:
    """Act as this node's recorder, or start it. Raises UsageError if one runs already."""
    code = serve(place, options.idle or 0.0, record, detach=options.start)
    if code is None and not options.start:
        raise UsageError(
            "this node's recorder is running already", "End it: tracehint record --node --stop"
        )
    if options.start:
        click.echo(shlex.join(place.prefix()))
    return code or 0


def _place(host_id: str, command: tuple[str, ...]) -> Place:
    try:
        return node_place(host_id)
    except (TracehintError, OSError) as error:
        if not command:
            raise
        _warn(error)
        _exec_command(command)


def _warn(error: object) -> None:
    """Print one line; the task also runs with standard error closed."""
    with contextlib.suppress(OSError):
        click.echo(f"tracehint: not recorded: {error}", err=True)


def _join(
    place: Place,
    options: NodeOptions,
    command: tuple[str, ...],
    record: Callable[[Follow], int],
    *,
    quiet: bool,
) -> NoReturn:
    """Ensure that a recorder runs, and exec the program that joins it and runs the command."""
    find_command(command[0])
    try:
        if options.wait is not None:
            wait_for_recorder(place, options.wait)
        else:
            idle = IDLE_SECONDS if options.idle is None else options.idle
            serve(place, idle, record, detach=True)
    except (TracehintError, OSError) as error:  # the task runs anyway and is counted as missed
        if not quiet:
            _warn(error)
    _exec_command(command, place.prefix())


def _exec_command(command: tuple[str, ...], prefix: Sequence[str] = ()) -> NoReturn:
    """Exec the command, behind `prefix` if that program exists."""
    argv = runnable(command)
    if prefix:
        try:
            become([*prefix, *argv])
        except CommandError as error:
            _warn(error.what)
    become(argv)


_SECONDS = click.FloatRange(min=0)
node_options = with_options(
    click.option(
        "--node",
        is_flag=True,
        help="One recorder for all tasks on this node: join it, start it if there is "
        "none (eBPF). Without COMMAND: run it in the foreground.",
    ),
    click.option("--start", is_flag=True, help="With --node: start it in the background."),
    click.option("--stop", is_flag=True, help="With --node: end it."),
    click.option(
        "--wait",
        type=_SECONDS,
        metavar="SECONDS",
        help="With --node: start none, wait this long for one.",
    ),
    click.option(
        "--idle",
        type=_SECONDS,
        metavar="SECONDS",
        help="With --node: end it when nothing was followed for this long. Default: 30 for "
        "one that a task starts, else never.",
    ),
)


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
            return run_node(
                node,
                options["command"],
                host_id=options["host_id"],
                quiet=options["quiet"],
                settings=chosen_settings(options["settings"]),
                keep_args=options["keep_args"],
                no_args=options["no_args"],
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
        click.echo(f"  next: tracehint analyze {_quote_path(str(bundle))}", err=True)
    return die_like(Ended(result.exit_status, result.signal))


def _other_ways(
    pid: int | None, cgroup: str | None, duration: float | None, options: dict[str, Any]
) -> dict[str, Any]:
    """Return the options that conflict with `--node`, by name."""
    return {
        "--pid": pid,
        "--cgroup": cgroup,
        "--duration": duration,
        "-o": options["output"],
        "--force": options["force"],
        "--collector": options["collector"] not in ("auto", "ebpf"),
    }


def _quote_path(path: str) -> str:
    import shlex

    return shlex.quote(path)
