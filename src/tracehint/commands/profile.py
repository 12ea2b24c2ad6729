"""`tracehint profile`: from one run of a workflow to its patterns, hints and findings."""

from __future__ import annotations

import contextlib
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tracehint.app.workflow_graph import join_engine_logs
from tracehint.collectors.run import Ended, die_like
from tracehint.commands._options import cluster_option, nodes_option, task_options
from tracehint.commands._recording import Recording, RunCommand, recording_options, start
from tracehint.errors import TracehintError
from tracehint.schemas.arrow import skip_pandas

if TYPE_CHECKING:
    from tracehint.analyzer.model import Analysis
    from tracehint.app.profile import Work


@click.command(cls=RunCommand, context_settings={"allow_interspersed_args": False})
@nodes_option
@cluster_option
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

        read_cluster(cluster)  # checked before the command runs
    result, bundle = start(Recording(**options, live=True))
    if bundle is not None:
        try:
            wanted = {"force": options["force"], "quiet": options["quiet"]}
            show(bundle, **wanted, cut=cut, nodes=nodes, cluster=cluster)
        except TracehintError as error:
            _report_failure(bundle, str(error))
        except KeyboardInterrupt:
            _report_failure(bundle, "interrupted")
        except Exception as error:  # a bug of tracehint must not change the exit code
            _report_failure(bundle, f"{type(error).__name__}: {error}")
    return die_like(Ended(result.exit_status, result.signal))


def _report_failure(bundle: Path, why: str) -> None:
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
    """Print the first screen to stderr; write the results beside the bundle."""
    from tracehint.app.profile import Work, prepare, results_folder, shorten, write_all

    skip_pandas()
    join_engine_logs(bundle)
    wanted = results_folder(bundle)
    work = Work(bundle, prepare(bundle, force=force), cut, nodes, cluster)
    if work.folder != wanted and not quiet:
        click.echo(
            f"tracehint: {shorten(wanted)} exists: results are written to {shorten(work.folder)} "
            "(--force replaces it)",
            err=True,
        )
    try:
        analysis = work.begin()
    except BaseException:
        with contextlib.suppress(OSError):  # it stays empty
            work.folder.rmdir()
        raise
    if not quiet:
        _print_screen(work)
        _report_idle_run(analysis)
    made, failed = write_all(work)
    for name, why in failed.items():
        click.echo(f"tracehint: {name} was not written: {why}", err=True)
    if not quiet:
        _report_files(work, made)


def _print_screen(work: Work) -> None:
    """Print the result, what to do, and the next commands."""
    from tracehint.hintgen.lint.edits import engine_of, nodes_of
    from tracehint.hintgen.report.actions import actions
    from tracehint.hintgen.report.screen import print_screen
    from tracehint.hintgen.summary.console import console_for

    analysis, simulation = work.run.analysis, work.lint.simulation
    findings = work.wait_for_idle().findings
    base = None if simulation.reason else simulation.baseline
    engine, staging = engine_of(analysis), simulation.where.staging
    todo = actions(findings, base, engine, staging=staging, nodes=nodes_of(analysis))
    print_screen(analysis, simulation, todo, _propose_commands(work), console_for(sys.stderr))


def _propose_commands(work: Work) -> list[str]:
    """Return the next commands; a run with hints is proposed if it gains something."""
    from tracehint.app.output import format_for_reuse
    from tracehint.app.profile import shorten

    where, trace = shlex.quote(shorten(work.folder)), shlex.quote(shorten(work.bundle))
    steps = [f"tracehint report {trace} --open"]
    simulation, ran = work.lint.simulation, work.run.analysis.run["command"]
    if simulation.reason or not simulation.all.pays(simulation.baseline):
        return steps
    if not simulation.where.takes_hints:  # only placement helps there
        steps += work.lint.hints_command.split(" && ")
    elif work.hints.rules or work.hints.plan:
        steps.append(f"tracehint run --hints {where}/hints.json -- {format_for_reuse(ran)}")
        if engine := _emitter(ran):
            steps.append(f"tracehint emit {where}/hints.json {_annotations(engine, ran)}")
    return steps


def _emitter(ran: list[str]) -> str:
    """Return the command's engine if hints can be written into its workflow, else empty."""
    from tracehint.adapters.engines.registry import EMITTERS, engine_of_program

    engine = engine_of_program(Path(ran[0]).name) if ran else ""
    return engine if engine in EMITTERS else ""


def _report_idle_run(analysis: Analysis) -> None:
    """Report a run in which no task read or wrote a file, with a possible reason."""
    from tracehint.adapters.engines.registry import ENGINES, engine_of_program
    from tracehint.hintgen.summary.tallies import moves_data

    ran = analysis.run["command"]
    if not ran or moves_data(analysis):
        return
    engine = engine_of_program(Path(ran[0]).name)
    again = ENGINES[engine].again if engine else ""
    click.echo(
        "\nNo task read or wrote a file, so there is nothing to learn from this run."
        + (f"\n  If everything was up to date: {again}" if again else ""),
        err=True,
    )


def _report_files(work: Work, made: dict[str, str]) -> None:
    from tracehint.app.profile import shorten
    from tracehint.schemas.wording import plural

    where, trace = shlex.quote(shorten(work.folder)), shlex.quote(shorten(work.bundle))
    click.echo(f"\nWritten to {where}/: {', '.join(made)} (recording: {trace})", err=True)
    click.echo(f"Task types, patterns, groups of files: tracehint analyze {trace}", err=True)
    found = plural(len(work.findings), "finding")
    click.echo(f"{found}: tracehint lint {trace}", err=True)


def _annotations(engine: str, ran: list[str]) -> str:
    """Return the remaining arguments of `emit` for the engine that was just run."""
    from tracehint.adapters.engines.registry import EMITTERS

    source = EMITTERS[engine].find_workflow(ran[1:])
    where = f"{shlex.quote(source)} " if source else ""
    output = f"tagged.{engine}"
    if Path(source).name == output:  # the tagged workflow was run
        output = f"tagged-again.{engine}"
    return f"{where}--workflow-engine {engine} -o {output}"
