"""Options and steps that `record` and `profile` share."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click

from tracehint.collectors.base import Collector, Follow, RecordRequest, RecordResult
from tracehint.collectors.begin import default_bundle, recorded_already
from tracehint.collectors.ebpf.follow import check_follow
from tracehint.collectors.node_local import recorded_locally
from tracehint.collectors.registry import COLLECTORS, choose
from tracehint.collectors.run import Ended, find_command, run_child, runnable
from tracehint.commands._options import F, given_roots, with_options
from tracehint.errors import (
    EXIT_RECORDER_FAILED,
    CollectorError,
    NotBegunError,
    TracehintError,
    UsageError,
)
from tracehint.progress import is_shown as progress_wanted
from tracehint.progress import progress
from tracehint.schemas.plain import HeldFolder
from tracehint.schemas.writer import make_folder, refuse_existing

following_options = with_options(
    click.option(
        "--pid",
        type=int,
        metavar="PID",
        help="Follow a running process and its descendants instead (eBPF).",
    ),
    click.option(
        "--cgroup",
        metavar="DIR",
        help="Follow the processes of a cgroup v2 directory instead (eBPF).",
    ),
    click.option(
        "--duration",
        type=float,
        metavar="SECONDS",
        help="Stop following then. Default: when the processes have ended, or at Ctrl-C.",
    ),
)


def chosen_follow(
    pid: int | None, cgroup: str | None, duration: float | None, command: tuple[str, ...]
) -> Follow | None:
    """What to follow, or None when a command is to be run. Raises UsageError."""
    given = [name for name, value in (("--pid", pid), ("--cgroup", cgroup)) if value is not None]
    if len(given) == 2 or (given and command):
        both = "--pid and --cgroup" if len(given) == 2 else f"{given[0]} and a command"
        raise UsageError(f"{both} cannot be combined", "Leave one of them out.")
    if not given and not command:
        raise UsageError("nothing to record", "Give a command, --pid PID or --cgroup DIR.")
    if not given and duration is not None:
        raise UsageError(
            "--duration: a command is recorded until it ends",
            "To end it earlier: tracehint record -- timeout SECONDS COMMAND",
        )
    if duration is not None and not (0.001 <= duration <= 4e6 and math.isfinite(duration)):
        raise UsageError(f"--duration {duration:g}: not a time in seconds", "For example: 60")
    if not given:
        return None
    path = os.path.abspath(cgroup) if cgroup else ""  # noqa: PTH100 (links stay as given)
    if cgroup == "":
        raise UsageError("--cgroup: the name is empty", "Give a cgroup v2 directory.")
    return Follow(pid or 0, path, duration or 0.0)


def follow_collector(name: str) -> str:
    """Return the collector that can follow. Raises CollectorError for other names."""
    if name not in ("auto", "ebpf"):
        raise CollectorError(
            f"--collector {name}: can only record a command from its start",
            "Use --collector ebpf with --pid or --cgroup.",
        )
    return "ebpf"


def default_name(follow: Follow) -> tuple[str, ...]:
    """Return the words from which the bundle's name is made."""
    name = Path(follow.cgroup).name or "cgroup" if follow.cgroup else f"pid-{follow.pid}"
    return (name,)


class RecordError(TracehintError):
    """Recording could not begin; the command was not run."""

    exit_code = EXIT_RECORDER_FAILED


class RunCommand(click.Command):
    """A command that runs another one: wrong usage is 125, as `env` and `timeout` do."""

    def make_context(
        self,
        info_name: str | None,
        args: list[str],
        parent: click.Context | None = None,
        **extra: Any,
    ) -> click.Context:
        """Parse the arguments; errors in them become RecordError."""
        try:
            return super().make_context(info_name, args, parent, **extra)
        except click.UsageError as error:
            name = info_name or self.name
            raise RecordError(error.format_message(), f"See: tracehint {name} --help") from None


def recording_options(command: F, *, needs_command: bool = True) -> F:
    """Add the options of recording: `-o`, `--collector`, `--data-root` and others."""
    return with_options(
        click.option("-o", "--output", metavar="BUNDLE", help="Bundle directory to write."),
        click.option(
            "--collector",
            type=click.Choice(["auto", *COLLECTORS]),
            default="auto",
            show_default=True,
            help="How to record; `tracehint doctor` lists what can run here.",
        ),
        click.option(
            "--data-root",
            "data_roots",
            multiple=True,
            metavar="DIR",
            help="Directory of workflow data; repeatable. Default: derived from the run.",
        ),
        click.option("--host-id", default="", metavar="NAME", help="Name of this host."),
        click.option(
            "--option",
            "settings",
            multiple=True,
            metavar="KEY=VALUE",
            help="Setting of the collector (see its page); repeatable.",
        ),
        click.option("--force", is_flag=True, help="Replace the bundle that -o names."),
        click.option("--quiet", is_flag=True, help="Print errors only."),
        click.option(
            "--keep-args",
            is_flag=True,
            is_eager=True,  # before --args, which does not go with it
            help="Record passwords and keys in arguments too.",
        ),
        click.option(
            "--args",
            "no_args",
            type=click.Choice(["redacted", "none"]),
            default="redacted",
            show_default=True,
            callback=_wants_no_arguments,
            help="Arguments to store: without secrets, or none (the program alone).",
        ),
        click.argument("command", nargs=-1, required=needs_command, type=click.UNPROCESSED),
    )(command)


def _wants_no_arguments(context: click.Context, _: click.Parameter, value: str) -> bool:
    if value == "none" and context.params.get("keep_args"):
        raise UsageError("--args none and --keep-args cannot be combined", "Leave one of them out.")
    return value == "none"


def run_plain(command: tuple[str, ...], more: Mapping[str, str] | None = None) -> Ended:
    """Run the command without recording it; `more`: additional environment variables."""
    return run_child(runnable(command), {**os.environ, **(more or {})})


_NO_ARGS = (
    "--args none: only programs are stored. Tasks of shells and interpreters have their types "
    "(bash, python), not those of scripts; jobs that an engine names by arguments are not "
    "recognised; hints by type are coarser."
)


@dataclass(frozen=True, kw_only=True)
class Recording:
    """What is to be recorded: the values of `recording_options`, and what a command adds.

    live: show the progress on a terminal.
    follow: running processes to record instead of `command`. locate: query the store of
    tracehint.toml for file locations; else the caller does.
    """

    output: str | HeldFolder | None
    collector: str
    data_roots: tuple[str, ...]
    host_id: str
    settings: tuple[str, ...]
    force: bool
    quiet: bool
    keep_args: bool
    no_args: bool
    command: tuple[str, ...]
    live: bool = False
    follow: Follow | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    locate: bool = True


def start(wanted: Recording) -> tuple[RecordResult, Path | None]:
    """Record what is wanted. The bundle is None inside a run that is recorded already.

    Raises TracehintError with exit code 125, 126 or 127 when the command was not run.
    """
    from tracehint.app.locations import note_locations, project_locator

    if wanted.follow is None and recorded_already():
        if not wanted.quiet:
            click.echo(
                "tracehint: this process is already recorded; running the command unchanged",
                err=True,
            )
        ended = run_plain(wanted.command, wanted.environment)
        return RecordResult(ended.status, ended.signal), None
    if wanted.follow is None:
        find_command(wanted.command[0])
    made: list[Path] = []
    try:
        store = project_locator() if wanted.locate else None
        result, bundle = _start(wanted, made)
    except TracehintError as error:
        for folder in made:
            if folder.is_dir() and not any(folder.iterdir()):
                folder.rmdir()
        if error.exit_code in (126, 127):
            raise
        raise RecordError(error.what, error.remedy) from None
    note_locations(bundle, store, wanted.data_roots, wanted.host_id, quiet=wanted.quiet)
    return result, bundle


def _start(wanted: Recording, made: list[Path]) -> tuple[RecordResult, Path]:
    """Choose a collector and record; a bundle without a given name is added to `made`."""
    collector, follow = wanted.collector, wanted.follow
    if follow is not None:
        collector = follow_collector(collector)
        check_follow(follow)
    chosen, why = choose(collector)
    if not wanted.quiet:
        click.echo(f"tracehint: {why}", err=True)
    if wanted.no_args and not wanted.quiet:
        click.echo(f"tracehint: {_NO_ARGS}", err=True)
    bundle = _bundle_path(wanted.output, force=wanted.force)
    if bundle is None:
        name = wanted.command if follow is None else default_name(follow)
        bundle = default_bundle(name, wanted.host_id)
        made.append(bundle)
    request = RecordRequest(
        command=wanted.command,
        output=bundle,
        data_roots=given_roots(wanted.data_roots),
        keep_args=wanted.keep_args,
        no_args=wanted.no_args,
        force=wanted.force,
        quiet=wanted.quiet,
        host=wanted.host_id,
        options=chosen_settings(wanted.settings),
        follow=follow,
        environment=wanted.environment,
    )
    shown = wanted.live and progress_wanted(quiet=wanted.quiet)
    with recorded_locally(request, chosen.name) as local, progress(local.output, shown=shown):
        result = _record(chosen, local, again=collector == "auto")
    return result, (result.bundle if local is request else None) or bundle


def _record(chosen: Collector, request: RecordRequest, *, again: bool) -> RecordResult:
    """Record; `again`: use the next collector if this one cannot start."""
    try:
        return chosen.record(request)
    except NotBegunError as error:
        if not again:
            raise
        other, why = choose("auto", {chosen.name: error.what})
    click.echo(f"tracehint: {why}", err=True)
    request.output.mkdir(mode=0o700, parents=True, exist_ok=True)
    return other.record(request)


def chosen_settings(given: tuple[str, ...]) -> dict[str, str]:
    """`--option KEY=VALUE` as a table. Raises UsageError."""
    wrong = next((text for text in given if "=" not in text[1:]), None)
    if wrong is not None:
        raise UsageError(f"--option {wrong}: not KEY=VALUE", "For example: --option linger=5000")
    return dict(text.split("=", 1) for text in given)


def _bundle_path(output: str | HeldFolder | None, *, force: bool) -> Path | None:
    """The absolute bundle path; refused before anything runs when it cannot be used."""
    if output is None or isinstance(output, HeldFolder):
        return output
    if not output:
        raise UsageError("-o: the name is empty", "Give a directory name.")
    path = Path(os.path.abspath(output))  # noqa: PTH100 (symbolic links stay as given)
    refuse_existing(path, force=force)
    make_folder(path)
    return path
