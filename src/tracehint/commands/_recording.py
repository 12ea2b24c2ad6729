"""Options and steps that `record` and `profile` share."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tracehint.collectors.base import Collector, Follow, RecordRequest, RecordResult
from tracehint.collectors.ebpf.follow import check_follow
from tracehint.collectors.registry import COLLECTORS, choose
from tracehint.collectors.run import Ended, find_command, run_child, runnable
from tracehint.collectors.session import default_bundle, recorded_already
from tracehint.commands._following import default_name, follow_collector
from tracehint.commands._located import note_locations, project_locator
from tracehint.commands._options import F, with_options
from tracehint.commands._progress import progress
from tracehint.commands._progress import wanted as progress_wanted
from tracehint.commands._roots import given_roots
from tracehint.commands._warming import warmed
from tracehint.errors import EXIT_RECORDER_FAILED, NotBegunError, TracehintError, UsageError
from tracehint.schemas.writing import make_folder, refuse_existing

if TYPE_CHECKING:
    pass


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
    """`-o`, `--collector`, `--data-root` and the others, in one place."""
    return with_options(
        click.option("-o", "--output", metavar="BUNDLE", help="Bundle directory to write."),
        click.option(
            "--collector",
            type=click.Choice(["auto", *COLLECTORS]),
            default="auto",
            show_default=True,
            help="How to record; `tracehint doctor` tells what can run here.",
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
            "--keep-args", is_flag=True, help="Record passwords and keys in arguments too."
        ),
        click.argument("command", nargs=-1, required=needs_command, type=click.UNPROCESSED),
    )(command)


def run_plain(command: tuple[str, ...], more: Mapping[str, str] | None = None) -> Ended:
    """Run the command without recording it; `more`: environment besides ours."""
    return run_child(runnable(command), {**os.environ, **(more or {})})


@dataclass(frozen=True, kw_only=True)
class Recording:
    """What is to be recorded: the values of `recording_options`, and what a command adds.

    live: tell on a terminal how far it has come, and load meanwhile what an analysis needs.
    follow: what runs already, in place of `command`. locate: ask the store of tracehint.toml where
    the files lie, else the caller asks one.
    """

    output: str | None
    collector: str
    data_roots: tuple[str, ...]
    host_id: str
    settings: tuple[str, ...]
    force: bool
    quiet: bool
    keep_args: bool
    command: tuple[str, ...]
    live: bool = False
    follow: Follow | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    locate: bool = True


def start(wanted: Recording) -> tuple[RecordResult, Path | None]:
    """Record what is wanted. The bundle is None inside a run that is recorded already.

    Raises TracehintError with exit code 125, 126 or 127 when the command was not run.
    """
    if wanted.follow is None and recorded_already():
        if not wanted.quiet:
            click.echo(
                "tracehint: this process is recorded already; running the command as it is",
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
    """Choose a collector and record; a bundle that nobody named is added to `made`."""
    collector, follow = wanted.collector, wanted.follow
    if follow is not None:
        collector = follow_collector(collector)
        check_follow(follow)
    chosen, why = choose(collector)
    if not wanted.quiet:
        click.echo(f"tracehint: {why}", err=True)
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
        force=wanted.force,
        quiet=wanted.quiet,
        host=wanted.host_id,
        options=chosen_settings(wanted.settings),
        follow=follow,
        environment=wanted.environment,
    )
    shown = wanted.live and progress_wanted(quiet=wanted.quiet)
    beside = warmed() if wanted.live else contextlib.nullcontext()
    with progress(bundle, shown=shown), beside:
        return _record(chosen, request, again=collector == "auto"), bundle


def _record(chosen: Collector, request: RecordRequest, *, again: bool) -> RecordResult:
    """Record; `again`: with the next collector where this one could not begin."""
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


def _bundle_path(output: str | None, *, force: bool) -> Path | None:
    """The absolute bundle path; refused before anything runs when it cannot be used."""
    if output is None:
        return None
    if not output:
        raise UsageError("-o: the name is empty", "Give a directory name.")
    path = Path(os.path.abspath(output))  # noqa: PTH100 (symbolic links stay as given)
    refuse_existing(path, force=force)
    make_folder(path)
    return path
