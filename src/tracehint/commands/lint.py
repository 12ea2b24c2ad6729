"""`tracehint lint`: what a run leaves on the table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tracehint.commands._backend import Backend, backend_options
from tracehint.commands._last_runs import run_or_last
from tracehint.commands._memory import for_a_run
from tracehint.commands._options import gathered, nodes_option, placement_option, result_options
from tracehint.commands._output import terminal_width, wants_color, write_result
from tracehint.commands._stage_line import stages
from tracehint.commands._task_options import task_options
from tracehint.commands._workflow import with_workflow
from tracehint.errors import EXIT_FINDINGS, EXIT_OK, TracehintError, UsageError
from tracehint.hintgen.text.units import seconds
from tracehint.version import __version__

if TYPE_CHECKING:
    from tracehint.hintgen.lint.context import Context
    from tracehint.hintgen.lint.finding import Finding
    from tracehint.hintgen.lint.settings import Settings

FORMATS = ("text", "json", "sarif", "github", "junit")


@dataclass(frozen=True)
class LintRequest:
    """The run, and what the rules may know beside it."""

    bundle: str
    workflow: str | None
    nodes: int | None
    cut: dict[str, Any]
    default_placement: str
    sites: Path | None
    cluster: str | None
    block_size: str | None
    hints_in_force: str | None
    backend: str
    master: str | None


@dataclass(frozen=True)
class Choice:
    """Which findings are wanted."""

    select: tuple[str, ...]
    ignore: tuple[str, ...]
    config: str | None
    calibration: str | None
    baseline: str | None
    write_baseline: str | None
    every: bool


@click.command()
@run_or_last
@click.argument("workflow", required=False, type=click.Path())
@result_options(*FORMATS)
@click.option("--select", multiple=True, help="Only these codes or prefixes, comma-separated.")
@click.option("--ignore", multiple=True, help="Not these codes or prefixes.")
@nodes_option
@task_options
@placement_option
@click.option(
    "--sites",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Table of sites or racks: a host or pattern and its site per line.",
)
@click.option(
    "--cluster",
    metavar="FILE",
    help="Where the next run takes place, a cluster file or a ready-made one by name: savings also "
    "in seconds, simulated there.",
)
@click.option("--block-size", help="Block size of the store, e.g. 1M; default 4M.")
@click.option("--hints-in-force", type=click.Path(), help="Hints that the store already had.")
@click.option(
    "--calibration",
    type=click.Path(),
    help="Result of `tracehint calibrate`: savings also in seconds.",
)
@click.option("--baseline", type=click.Path(), help="Hide the findings listed in this file.")
@click.option("--write-baseline", type=click.Path(), help="Accept all findings: list them there.")
@click.option("--all", "every", is_flag=True, help="Show all findings of a rule, not the largest.")
@backend_options
@click.option("--config", type=click.Path(), help="Directory to look for the configuration.")
@gathered(asked=LintRequest, choice=Choice)
def command(asked: LintRequest, choice: Choice, fmt: str, output: str | None, force: bool) -> int:
    """Report what the run in BUNDLE (default: the last one here) leaves on the table.

    WORKFLOW (a Makeflow file, a directory with .snakemake, a log ...) adds the
    rules that compare what was declared with what was read and written. Exit
    code 0: nothing found, 1: findings, 2: could not do it.

    Example: tracehint lint run.trace --ignore TV --format sarif -o lint.sarif
    """
    for_a_run(sql=True)
    from tracehint.hintgen.lint import baseline as baselines
    from tracehint.hintgen.lint import skipped_rules
    from tracehint.hintgen.lint.config import choose, find_config
    from tracehint.hintgen.lint.registry import load
    from tracehint.hintgen.lint.render import Info, render

    found = find_config(Path(choice.config or ".").resolve())
    codes = choose(_split(choice.select) or found.select, _split(choice.ignore) or found.ignore)
    context = _context(asked, found.settings)
    findings, simulated = _in_seconds(_asked(context, codes), choice.calibration, context)
    if choice.write_baseline:
        write_result(baselines.dump(findings), choice.write_baseline, force=force)
    known = choice.baseline or ("" if choice.write_baseline else found.baseline)
    findings, suppressed = baselines.split(findings, baselines.accepted(known))
    info = Info(
        tool=f"tracehint {__version__}",
        subject=asked.bundle,
        workflow=asked.workflow or "",
        rules={code: load(code).RULE.name for code in codes},
        skipped=skipped_rules(context, codes),
        troubles=context.analysis.run.get("troubles", []),
        suppressed=suppressed,
        saved=context.saved,
        simulated=simulated,
        every=choice.every,
        width=terminal_width(),
        color=wants_color() and not output,
    )
    write_result(render(fmt, findings, info), output, force=force)
    return EXIT_OK if choice.write_baseline or not findings else EXIT_FINDINGS


def _in_seconds(
    findings: list[Finding], calibration: str | None, context: Context
) -> tuple[list[Finding], str]:
    """With seconds beside the bytes, where the rates or the cluster are known; and what all hints
    would do on the cluster."""
    if calibration:
        from tracehint.hintgen.calibration import read_rates
        from tracehint.hintgen.lint.seconds import with_seconds

        findings = with_seconds(findings, read_rates(Path(calibration)))
    return (findings, "") if context.cluster is None else _simulated(findings, context)


def _simulated(findings: list[Finding], context: Context) -> tuple[list[Finding], str]:
    """A run that cannot be simulated has no seconds."""
    from tracehint.hintgen.lint.simulated import with_simulated

    assert context.cluster is not None
    try:
        findings, found = with_simulated(findings, context)
    except TracehintError as error:
        click.echo(f"tracehint: no seconds: {error}", err=True)
        return findings, ""
    where = f"{context.cluster.name}, {context.cluster.count} nodes"
    if found is None:
        return findings, ""
    more = f"; {found.left_out} groups of files not simulated" if found.left_out else ""
    return findings, f"{seconds(found.default)} -> {seconds(found.hinted)} on {where}{more}"


def _asked(context: Context, codes: Sequence[str]) -> list[Finding]:
    """The findings of the rules; says on a terminal how far it is."""
    from tracehint.hintgen.lint import run_rules

    with stages() as seen:
        return run_rules(context, codes, seen.tell)


def _context(asked: LintRequest, settings: Settings) -> Context:
    """The run under the linter, with what stands beside it."""
    from tracehint.analyzer.model import Options
    from tracehint.analyzer.sites import read_sites
    from tracehint.hintgen import inputs
    from tracehint.hintgen.lint.context import Context
    from tracehint.hintgen.lint.facts import with_primary_labels

    if asked.block_size:
        settings = replace(settings, block_size=parse_size(asked.block_size))
    sites = read_sites(asked.sites) if asked.sites else ()
    options = Options(
        nodes=asked.nodes, default_placement=asked.default_placement, sites=sites, **asked.cut
    )
    joined = with_workflow(asked.bundle, asked.workflow) if asked.workflow else None
    if joined is not None and asked.backend != "local":
        raise UsageError(
            "--backend spark with a WORKFLOW", "Join it before: tracehint merge --workflow."
        )
    run = (
        Backend(asked.backend, asked.master).load(asked.bundle, options)
        if joined is None
        else inputs.load_run(asked.bundle, options, joined)
    )
    hints = None
    if asked.hints_in_force:
        from tracehint.hintgen.hints.hintfile import load

        hints = load(Path(asked.hints_in_force))
    run.analysis = with_primary_labels(run.analysis)
    context = Context.of(run, settings=settings, hints_in_force=hints, bundle_name=asked.bundle)
    if asked.cluster:
        from tracehint.analyzer.predict.cluster_file import read_cluster

        context.cluster = read_cluster(asked.cluster)
    return context


def _split(values: tuple[str, ...]) -> list[str]:
    return [part for value in values for part in value.split(",") if part.strip()]


def parse_size(text: str) -> int:
    """Bytes of `4M`, `64KiB`, `1048576`. Raises UsageError.

    >>> parse_size("4M"), parse_size("64KiB")
    (4194304, 65536)
    """
    import re

    match = re.fullmatch(r"(\d+)\s*([KMGT]?)(i?B)?", text.strip(), re.IGNORECASE)
    if not match or int(match[1]) == 0:
        raise UsageError(f"{text!r} is not a size", "Give bytes or a number with K, M, G or T.")
    return int(match[1]) << (10 * " KMGT".index(match[2].upper() or " "))
