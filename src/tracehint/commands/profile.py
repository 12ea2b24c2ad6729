"""`tracehint profile`: from one run of a workflow to its patterns, hints and findings."""

from __future__ import annotations

import contextlib
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tracehint.collectors.run import Ended, die_like
from tracehint.commands._engine_logs import join_engine_logs
from tracehint.commands._options import nodes_option
from tracehint.commands._recording import Recording, RunCommand, recording_options, start
from tracehint.commands._task_options import task_options
from tracehint.errors import TracehintError
from tracehint.schemas.arrow import skip_pandas

if TYPE_CHECKING:
    from tracehint.analyzer.model import Analysis
    from tracehint.commands._work import Work

# engine programs -> how all of the work is done again
_SHOWN = 100  # characters of a command that is shown to be typed again
_AGAIN = {
    "snakemake": "snakemake --forceall runs all rules again",
    "make": "make -B makes all targets again",
    "makeflow": "makeflow --clean WORKFLOW, then run it again",
    "nextflow": "leave out -resume",
    "ninja": "ninja -t clean, then run it again",
}  # fmt: skip  # a table


@click.command(cls=RunCommand, context_settings={"allow_interspersed_args": False})
@nodes_option
@click.option(
    "--cluster",
    metavar="FILE",
    help="Where the next run takes place: a cluster file, or a ready-made one by name. The hints "
    "are those that win there.",
)
@task_options
@recording_options
def command(nodes: int | None, cluster: str | None, cut: dict[str, Any], **options: Any) -> int:
    """Run COMMAND, then show how its tasks hand data to each other and what hints would help.

    Writes a trace bundle NAME.trace and the results beside it in
    NAME.tracehint/. The command's output, exit code and signals pass through;
    everything of tracehint goes to stderr. 125, 126, 127: as `record`.

    Example: tracehint profile -- makeflow montage.mf
    """
    if cluster is not None:
        from tracehint.analyzer.predict.cluster_file import read_cluster

        read_cluster(cluster)  # before the command is run for nothing
    result, bundle = start(Recording(**options, live=True))
    if bundle is not None:
        try:
            wanted = {"force": options["force"], "quiet": options["quiet"]}
            show(bundle, **wanted, cut=cut, nodes=nodes, cluster=cluster)
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


def show(
    bundle: Path,
    *,
    force: bool,
    quiet: bool,
    cut: dict[str, Any],
    nodes: int | None = None,
    cluster: str | None = None,
) -> None:
    """Decision and summary to stderr, results into the directory beside the bundle."""
    from tracehint.commands._stages import prepare, results_folder, write_all
    from tracehint.commands._work import Work, short
    from tracehint.hintgen.summary.console import console_for
    from tracehint.hintgen.summary.summary import print_summary

    skip_pandas()
    join_engine_logs(bundle)
    wanted = results_folder(bundle)
    work = Work(bundle, prepare(wanted, force=force), cut, nodes, cluster)
    if work.folder != wanted and not quiet:
        click.echo(
            f"tracehint: {short(wanted)} exists: the results go to {short(work.folder)} "
            "(--force replaces)",
            err=True,
        )
    try:
        analysis = work.begin()
    except BaseException:
        with contextlib.suppress(OSError):  # nothing will be in it
            work.folder.rmdir()
        raise
    if not quiet:
        _decision(work)
        print_summary(analysis, console_for(sys.stderr))
        _idle(analysis)
    made, failed = write_all(work)
    for name, why in failed.items():
        click.echo(f"tracehint: {name} was not written: {why}", err=True)
    if not quiet:
        _next(bundle, work.folder, made, work.run.analysis.run["command"])


def _decision(work: Work) -> None:
    """What the run would gain from what; and what to type."""
    from tracehint.commands._in_seconds import saved_by_pattern
    from tracehint.commands._work import short

    decided, said = work.decision
    if not said:
        return
    click.echo(click.wrap_text(said, 78), err=True)
    if work.cluster and (saved := saved_by_pattern(work.run.analysis, work.cluster, work.learned)):
        click.echo(click.wrap_text(saved, 78), err=True)
    if decided is not None and decided.planning.chosen != "default":
        bundle = shlex.quote(short(work.bundle))
        where = f" --cluster {shlex.quote(work.cluster)}" if work.cluster else ""
        click.echo(f"  all strategies: tracehint plan {bundle}{where}", err=True)
    click.echo("", err=True)


def _idle(analysis: Analysis) -> None:
    """A run in which no task moved a byte: why that may be, and what to type."""
    ran = analysis.run["command"]
    if analysis.edges.num_rows or not ran:
        return
    name = Path(ran[0]).name
    again = _AGAIN.get(name, "")
    click.echo(
        "\nNo task read or wrote a file, so there is nothing to learn from this run."
        + (f"\n  If everything was up to date: {again}" if again else ""),
        err=True,
    )


def _next(bundle: Path, folder: Path, made: dict[str, str], ran: list[str]) -> None:
    from tracehint.commands._work import short

    where, trace = shlex.quote(short(folder)), shlex.quote(short(bundle))
    click.echo(f"\nWritten to {where}/ (recording: {trace})", err=True)
    for name, text in made.items():
        click.echo(f"  {name:<14}{text}", err=True)
    steps = [
        (step, why)
        for needs, step, why in (
            ("report.html", f"{where}/report.html", "look at it in a browser"),
            ("lint.txt", "tracehint explain CODE",
             f"what a finding of {where}/lint.txt means"),
            ("hints.json", f"tracehint run --hints {where}/hints.json -- {_again(ran)}",
             "the next run: files get their hints as they are made"),
            ("hints.sh", f"sh {where}/hints.sh --dry-run .", "what it would set on the files here"),
        )
        if needs in made
    ]  # fmt: skip  # a table
    from tracehint.adapters.engines.emitters import EMITTERS

    program = Path(ran[0]).name if ran else ""
    engine = next((name for name, e in EMITTERS.items() if program in e.programs), None)
    if "hints.json" in made and engine is not None:
        emit = f"tracehint emit {where}/hints.json {_annotations(engine, ran)}"
        steps.append((emit, "the workflow with hints"))
    click.echo("\nNext:", err=True)
    for step, why in steps:
        click.echo(f"  {step}\n      {why}", err=True)


def _again(ran: list[str]) -> str:
    """The recorded command for a line of the terminal; COMMAND where it is none to be typed."""
    command = shlex.join(ran)
    return command if 0 < len(command) <= _SHOWN and command.isprintable() else "COMMAND"


def _annotations(engine: str, ran: list[str]) -> str:
    """The rest of the `emit` command for the engine that was just run."""
    from tracehint.adapters.engines.emitters import EMITTERS

    find = EMITTERS[engine].source
    source = find(ran[1:]) if find else ""
    where = f"{shlex.quote(source)} " if source else ""
    output = f"tagged.{engine}"
    if Path(source).name == output:  # the tagged one was run
        output = f"tagged-again.{engine}"
    return f"{where}--workflow-engine {engine} -o {output}"
