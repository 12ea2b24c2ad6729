"""`tracehint profile`: from one run of a workflow to its patterns, hints and findings."""

from __future__ import annotations

import contextlib
import shlex
import sys
from pathlib import Path
from typing import Any

import click

from tracehint.collectors.run import Ended, die_like
from tracehint.commands._recording import RunCommand, recording_options, start
from tracehint.errors import TracehintError

# engine programs -> `emit --workflow-engine`
_ENGINES = {
    "makeflow": "makeflow", "snakemake": "snakemake", "nextflow": "nextflow",
    "swift": "swift-k", "swift-t": "swift-t",
}  # fmt: skip


@click.command(cls=RunCommand, context_settings={"allow_interspersed_args": False})
@recording_options
def command(**options: Any) -> int:
    """Run COMMAND, then show how its tasks hand data to each other and what hints would help.

    Writes a trace bundle NAME.trace and the results beside it in
    NAME.tracehint/. The command's output, exit code and signals pass through;
    everything of tracehint goes to stderr. 125, 126, 127: as `record`.

    Example: tracehint profile -- makeflow montage.mf
    """
    result, bundle = start(**options, live=True)
    if bundle is not None:
        try:
            show(bundle, force=options["force"], quiet=options["quiet"])
        except TracehintError as error:
            _failed(bundle, str(error))
        except KeyboardInterrupt:
            _failed(bundle, "interrupted")
        except Exception as error:  # the command's exit code must survive a bug of ours
            _failed(bundle, f"{type(error).__name__}: {error}")
    return die_like(Ended(result.exit_status, result.signal))


def _failed(bundle: Path, why: str) -> None:
    click.echo(f"tracehint: the run is recorded, but its analysis failed: {why}", err=True)
    click.echo(f"  the recording: {click.format_filename(bundle)}", err=True)


def show(bundle: Path, *, force: bool, quiet: bool) -> None:
    """Summary to stderr, results into the directory beside the bundle."""
    from tracehint.analyzer.summary import console_for, print_summary
    from tracehint.commands._stages import Work, prepare, results_folder, write_all

    _join_engine_logs(bundle)
    work = Work(bundle, prepare(results_folder(bundle), force=force))
    try:
        analysis = work.run.analysis
    except BaseException:
        with contextlib.suppress(OSError):  # nothing will be in it
            work.folder.rmdir()
        raise
    if not quiet:
        print_summary(analysis, console_for(sys.stderr))
    made, failed = write_all(work)
    for name, why in failed.items():
        click.echo(f"tracehint: {name} was not written: {why}", err=True)
    if not quiet:
        _next(bundle, work.folder, made, work.run.analysis.run["command"])


def _join_engine_logs(bundle: Path) -> None:
    """Names, rules and attempts from the logs that the run's engines left; never a failure."""
    from tracehint.adapters.engines.discover import attach

    try:
        attach(bundle)
    except TracehintError as error:
        click.echo(f"tracehint: the engine's log was not joined: {error}", err=True)


def _next(bundle: Path, folder: Path, made: dict[str, str], ran: list[str]) -> None:
    where = shlex.quote(_short(folder))
    click.echo(f"\nWritten to {where}/ (recording: {shlex.quote(_short(bundle))})", err=True)
    for name, text in made.items():
        click.echo(f"  {name:<14}{text}", err=True)
    trace = shlex.quote(_short(bundle))
    click.echo("\nNext:", err=True)
    if "hints.sh" in made:
        click.echo(f"  sh {where}/hints.sh --dry-run DIRECTORY", err=True)
    engine = _ENGINES.get(Path(ran[0]).name) if ran else None
    if "hints.json" in made and engine is not None:
        click.echo(f"  tracehint emit {where}/hints.json {_annotations(engine, ran)}", err=True)
    click.echo(f"  tracehint lint {trace}", err=True)


def _annotations(engine: str, ran: list[str]) -> str:
    """The rest of the `emit` command for the engine that was just run."""
    given = next((a for a in reversed(ran[1:]) if Path(a).is_file()), None)
    source = f"{shlex.quote(given)} " if engine == "makeflow" and given else ""
    target = f"tagged.{engine}"
    return f"{source}--workflow-engine {engine} -o {target}"


def _short(path: Path) -> str:
    """The path as seen from here, where that is shorter."""
    try:
        return str(path.relative_to(Path.cwd()))
    except ValueError:
        return str(path)
