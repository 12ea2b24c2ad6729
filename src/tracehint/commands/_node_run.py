"""`record --node`: all tasks of a user on a node share one recorder and one bundle."""

from __future__ import annotations

import contextlib
import shlex
from collections.abc import Callable, Sequence
from typing import NoReturn

import click

from tracehint.collectors.base import Follow, RecordRequest
from tracehint.collectors.ebpf.node import serve, stop, wait_for_recorder
from tracehint.collectors.ebpf.node_place import Place, node_place
from tracehint.collectors.run import CommandError, become, find_command, runnable
from tracehint.collectors.session import default_bundle, recorded_already
from tracehint.commands._node import NodeOptions
from tracehint.commands._roots import given_roots
from tracehint.errors import TracehintError, UsageError

IDLE_SECONDS = 30.0  # of a recorder that a task started


def run_node(
    options: NodeOptions,
    command: tuple[str, ...],
    *,
    host_id: str,
    quiet: bool,
    settings: dict[str, str],
    keep_args: bool,
    data_roots: tuple[str, ...],
) -> int:
    """Do what `--node` asks for; does not return when a command was given."""
    if command and recorded_already():
        _become(command)
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
    """Be this node's recorder, or start it. Raises UsageError where one runs already."""
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
        _become(command)


def _warn(error: object) -> None:
    """One line; the task runs also where nobody reads it."""
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
    """Make sure that there is a recorder, and become the program that joins it and the command."""
    find_command(command[0])
    try:
        if options.wait is not None:
            wait_for_recorder(place, options.wait)
        else:
            idle = IDLE_SECONDS if options.idle is None else options.idle
            serve(place, idle, record, detach=True)
    except (TracehintError, OSError) as error:  # the task runs all the same, counted as missed
        if not quiet:
            _warn(error)
    _become(command, place.prefix())


def _become(command: tuple[str, ...], prefix: Sequence[str] = ()) -> NoReturn:
    """The command, behind `prefix` where that program is there."""
    argv = runnable(command)
    if prefix:
        try:
            become([*prefix, *argv])
        except CommandError as error:
            _warn(error.what)
    become(argv)
