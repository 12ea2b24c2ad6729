"""`tracehint lint`: what a run leaves on the table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tracehint.app.last_runs import run_or_last
from tracehint.app.output import terminal_width, wants_color, write_result
from tracehint.app.user_cluster import where_of
from tracehint.app.workflow_graph import with_workflow
from tracehint.commands._options import (
    Backend,
    backend_options,
    cluster_option,
    gather_options,
    nodes_option,
    option,
    placement_option,
    result_options,
    task_options,
)
from tracehint.errors import EXIT_FINDINGS, EXIT_OK, UsageError
from tracehint.progress import prepare_for_analysis, stages
from tracehint.version import __version__

if TYPE_CHECKING:
    from tracehint.hintgen.lint.config import Settings
    from tracehint.hintgen.lint.context import Context
    from tracehint.hintgen.lint.finding import Finding

FORMATS = ("text", "json", "sarif", "github", "junit")


@dataclass(frozen=True, kw_only=True)
class LintRequest:
    """The run, and further inputs of the rules."""

    bundle: str
    workflow: str | None
    nodes: int | None
    cut: dict[str, Any]
    default_placement: str
    sites: Path | None = option(
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="Table of sites or racks: a host or pattern and its site per line.",
    )
    cluster: str | None
    block_size: str | None = option(help="Block size of the store, e.g. 1M; default 4M.")
    hints_in_force: str | None = option(type=click.Path(), help="Hints already set in the store.")
    backend: str
    master: str | None


@dataclass(frozen=True, kw_only=True)
class Choice:
    """Which findings are wanted."""

    select: tuple[str, ...] = option(
        multiple=True, help="Only these codes or prefixes, comma-separated."
    )
    ignore: tuple[str, ...] = option(multiple=True, help="Not these codes or prefixes.")
    config: str | None = option(type=click.Path(), help="Directory to look for the configuration.")
    baseline: str | None = option(type=click.Path(), help="Hide the findings listed in this file.")
    write_baseline: str | None = option(
        type=click.Path(), help="Accept all findings: list them there."
    )
    every: bool = option(
        "--all", is_flag=True, help="Show all findings of a rule, not the largest."
    )


@click.command()
@run_or_last
@click.argument("workflow", required=False, type=click.Path())
@result_options(*FORMATS)
@nodes_option
@task_options
@placement_option
@cluster_option
@backend_options
@gather_options(asked=LintRequest, choice=Choice)
def command(asked: LintRequest, choice: Choice, fmt: str, output: str | None, force: bool) -> int:
    """Report what the run in BUNDLE (default: the last one here) leaves on the table.

    WORKFLOW (a Makeflow file, a directory with .snakemake, a log ...) adds the
    rules that compare what was declared with what was read and written. Exit
    code 0: nothing found, 1: findings, 2: could not do it.

    Example: tracehint lint run.trace --ignore TV --format sarif -o lint.sarif
    """
    prepare_for_analysis(sql=True)
    from tracehint.hintgen.lint import baseline as baselines
    from tracehint.hintgen.lint import skipped_rules
    from tracehint.hintgen.lint.config import choose, find_config
    from tracehint.hintgen.lint.formats import Info, render
    from tracehint.hintgen.lint.registry import load

    found = find_config(Path(choice.config or ".").resolve())
    for line in found.ignored:
        click.echo(f"tracehint: {line}", err=True)
    codes = choose(_split(choice.select) or found.select, _split(choice.ignore) or found.ignore)
    context = _context(asked, found.settings)
    findings = _find_findings(context, codes)
    if choice.write_baseline:
        write_result(baselines.dump(findings), choice.write_baseline, force=force)
    known = choice.baseline or ("" if choice.write_baseline else found.baseline)
    findings, suppressed = baselines.split(findings, baselines.read_baseline(known))
    info = Info(
        tool=f"tracehint {__version__}",
        subject=asked.bundle,
        workflow=asked.workflow or "",
        rules={code: load(code).name for code in codes},
        skipped=skipped_rules(context, codes),
        troubles=context.analysis.run.get("troubles", []),
        suppressed=suppressed,
        simulation=context.simulation,
        every=choice.every,
        width=terminal_width(),
        color=wants_color() and not output,
    )
    write_result(render(fmt, findings, info), output, force=force)
    return EXIT_OK if choice.write_baseline or not findings else EXIT_FINDINGS


def _find_findings(context: Context, codes: Sequence[str]) -> list[Finding]:
    """The findings of the rules; shows its progress on a terminal."""
    from tracehint.hintgen.lint import run_rules

    with stages() as seen:
        return run_rules(context, codes, seen.tell)


def _context(asked: LintRequest, settings: Settings) -> Context:
    """Load the run as the context of the lint rules."""
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
    context.where = where_of(asked.cluster, asked.nodes, run.analysis, asked.bundle)
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
