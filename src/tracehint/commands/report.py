"""`tracehint report`: one self-contained HTML page about a run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tracehint.app.last_runs import run_or_last
from tracehint.app.output import refuse_existing, write_result
from tracehint.app.profile import results_folder
from tracehint.app.user_cluster import where_of
from tracehint.commands._options import load, nodes_option, placement_option, task_options
from tracehint.progress import prepare_for_analysis, stage

if TYPE_CHECKING:
    from tracehint.analyzer.model import Options
    from tracehint.hintgen.hints.model import HintFile
    from tracehint.hintgen.inputs import Input
    from tracehint.hintgen.lint.context import Context
    from tracehint.hintgen.lint.finding import Finding

LARGE = 300_000  # tasks; larger runs save memory at the cost of time


@click.command()
@run_or_last
@click.option("-o", "--output", help="File; default: the bundle's name with .html. `-`: stdout.")
@nodes_option
@task_options
@placement_option
@click.option(
    "--cluster",
    metavar="FILE",
    type=click.UNPROCESSED,
    help='A cluster file or the name of a built-in model: adds the panel "What if" and the '
    "decision.",
)
@click.option("--hints/--no-hints", default=True, help="Derive hint rules for the page.")
@click.option(
    "--before",
    type=click.Path(),
    metavar="RUN",
    help='An earlier run of the same work: adds the panel "Compare" (as `compare RUN BUNDLE`).',
)
@click.option("--data", is_flag=True, help="Write the data of the page as JSON instead.")
@click.option("--open", "opened", is_flag=True, help="Open it in the browser.")
@click.option("--force", is_flag=True, help="Replace the output file.")
def command(
    bundle: str,
    output: str | None,
    nodes: int | None,
    cut: dict[str, Any],
    default_placement: str,
    cluster: str | None,
    hints: bool,
    before: str | None,
    data: bool,
    opened: bool,
    force: bool,
) -> None:
    """Write an HTML page about BUNDLE (default: the last run here), one file for disk or mail.

    Example: tracehint report run.trace -o run.html

    Example: tracehint report run.trace --cluster mine.toml
    """
    kept = results_folder(Path(bundle)) / "report.html"
    if opened and kept.is_file() and not (data or output or cluster or before or nodes):
        _open(kept)
        return
    prepare_for_analysis(keep=False)
    target = str(Path(bundle).name.removesuffix(".trace") or "run")
    target = output or target + (".json" if data else ".html")
    if target != "-":
        refuse_existing(Path(target), force=force)
    from tracehint.analyzer.model import Options
    from tracehint.hintgen.lint.context import Context
    from tracehint.hintgen.report.page import report_html

    run = load(bundle, Options(nodes=nodes, default_placement=default_placement, **cut))
    wanted = hints or cluster is not None
    first = _learn_large_run(run) if wanted else None
    where = where_of(cluster, nodes, run.analysis, bundle)
    context = Context.of(run, bundle_name=run.name, where=where)
    findings, rules = _find_findings(context, first, rules=wanted)
    prediction, why = _on_cluster(run, rules, cluster, nodes)
    compared = _compare_runs(before, run, Path(bundle), Options(nodes=nodes, **cut))
    with stage("pictures"):
        text = report_html(
            run,
            rules if hints else None,
            findings,
            context,
            prediction=prediction,
            decision=why,
            comparison=compared,
            as_data=data,
        )
    write_result(text, target, force=force)
    if target != "-":
        click.echo(f"tracehint: wrote {target}", err=True)
        if opened:
            _open(Path(target))


def _open(page: Path) -> None:
    """Open the page in the user's browser; without one, print its address."""
    import webbrowser

    address = page.resolve().as_uri()
    if not webbrowser.open(address):
        click.echo(f"tracehint: found no browser; open {address}", err=True)


def _learn_large_run(run: Input) -> HintFile | None:
    """Learn the hint rules of a large run before anything else is in memory: beside the lint rules
    they would take a gigabyte more. Drops the labels of edges. None: the run is small."""
    from tracehint.analyzer.memory import give_back
    from tracehint.hintgen.learn.rules import learn
    from tracehint.hintgen.lint.facts import without_edge_labels

    if run.analysis.tasks.num_rows <= LARGE:
        return None
    run.analysis = without_edge_labels(run.analysis)
    give_back()
    with stage("learning rules"):
        found = learn([run.analysis])
    give_back()
    return found


def _find_findings(
    context: Context, first: HintFile | None, *, rules: bool
) -> tuple[list[Finding], HintFile | None]:
    """Return the findings and, if wanted, the hint rules: those learned `first`, else learned in a
    thread while SQL queries run."""
    from tracehint.analyzer.execution.resources import (
        Resources,
        cores,
        half_of_memory,
        start_beside,
    )
    from tracehint.hintgen.learn.rules import learn
    from tracehint.hintgen.lint import run_rules
    from tracehint.hintgen.summary.rule_gains import with_gains

    learned = None
    if rules and first is None:
        resources = Resources(cores(), half_of_memory())
        learned = start_beside(lambda: learn([context.analysis], users=context.users), resources)
    with stage("findings and rules") as seen:
        findings = run_rules(context, tell=seen.tell)
        context.release()
        seen.tell("learning rules", 0, 0, "")
        found = learned() if learned is not None else first
        if found is not None:
            seen.tell("simulating rules", 0, 0, "")
            found = with_gains(found, context.simulation)
        context.release_users()
        return findings, found


def _on_cluster(
    run: Input, rules: HintFile | None, cluster: str | None, nodes: int | None
) -> tuple[dict[str, Any] | None, str]:
    """Return the predictions for the cluster and the decision; nothing without a cluster."""
    if cluster is None or rules is None:
        return None, ""
    from tracehint.app.planning import try_decide
    from tracehint.app.prediction import sweep

    why = try_decide(run.analysis, rules, cluster, nodes)[1]
    return sweep(run.analysis, cluster), why


def _compare_runs(
    before: str | None, run: Input, path: Path, options: Options
) -> dict[str, Any] | None:
    """Return the report of `compare` on the earlier run and this one; None without one."""
    if before is None:
        return None
    from tracehint.commands.compare import hints_of
    from tracehint.hintgen.compare.proof import for_page, proof_of

    first = load(before, options)
    return for_page(proof_of(first, run, hints_of(path)))
