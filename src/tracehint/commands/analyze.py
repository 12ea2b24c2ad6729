"""tracehint analyze: the graph and the patterns of a bundle, as text, JSON or Parquet."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tracehint.commands._analysis_options import THRESHOLDS, analysis_options, options_from
from tracehint.commands._backend import backend_options
from tracehint.commands._folded_help import FoldedCommand
from tracehint.commands._memory import for_a_run
from tracehint.commands._options import gathered
from tracehint.commands._output import refuse_existing
from tracehint.commands._stage_line import stages
from tracehint.errors import UsageError

if TYPE_CHECKING:
    from tracehint.analyzer.execution.resources import Resources, Tell
    from tracehint.analyzer.model import Analysis, Options

# Options that few people need: --help-thresholds lists them.
_RARE = ("backend", "default_placement", "master", "memory_limit", "no_ranges", "sites", "threads")


@dataclass(frozen=True)
class Computing:
    """Who computes, with what."""

    backend: str
    master: str | None
    threads: int | None
    memory_limit: str | None


@click.command(cls=FoldedCommand, rare=(*THRESHOLDS, *_RARE))
@click.argument("bundle", type=click.Path())
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json", "parquet"]),
    default="text",
    show_default=True,
)
@click.option("-o", "--output", metavar="PATH", help="File, or directory for parquet.")
@click.option("--force", is_flag=True, help="Replace what is there.")
@click.option("--no-ranges", is_flag=True, help="Leave the byte ranges out of the output.")
@backend_options
@click.option(
    "--threads",
    type=click.IntRange(1),
    default=None,
    help="Threads that compute (default: the processors that this process may use).",
)
@click.option(
    "--memory-limit",
    metavar="SIZE",
    default=None,
    help="Accesses that would take more than half of it go through temporary files in TMPDIR"
    " (default: half of the machine's memory).",
)
@click.option(
    "--cluster",
    metavar="FILE",
    help="Where the next run takes place, a cluster file or a ready-made one by name: the text "
    "tells what hints save there, in seconds.",
)
@analysis_options
@gathered(computing=Computing)
def command(
    computing: Computing,
    bundle: str,
    form: str,
    output: str | None,
    force: bool,
    no_ranges: bool,
    cluster: str | None,
    **values: Any,
) -> None:
    """Print the graph and the patterns of BUNDLE.

    Text is a summary for people; json is one document with everything; parquet is one file
    per table in the directory that -o names. BUNDLE may be a URL (s3://, hdfs://, ...).

    Example: tracehint analyze run.trace --format json -o run.json
    """
    from tracehint.commands._analysis_output import FORMS

    if form == "parquet" and output is None:
        raise UsageError("--format parquet needs a directory", "Name it with -o.")
    if output not in (None, "-"):
        refuse_existing(Path(str(output)), force=force)
    for_a_run()
    options = options_from(values, ranges=not no_ranges)
    with stages() as seen:
        resources = _resources(computing, seen.tell)
        result = FORMS[form](output, options, _threads(resources), seen.tell, cluster)
        resources = resources and replace(resources, ready=result.ready)
        analysis = _analyzed(bundle, options, computing, resources)
        seen.tell("writing", 0, 0, "")
        on_screen = output in (None, "-") and sys.stdout.isatty()
        if not on_screen:
            result.write(analysis)
    if on_screen:
        result.write(analysis)


def _analyzed(
    bundle: str, options: Options, computing: Computing, resources: Resources | None
) -> Analysis:
    """By this process, or by Spark."""
    from tracehint.analyzer.analyze import analyze_at
    from tracehint.analyzer.shared.analysis import analysis_of

    if resources is not None and computing.master is None:
        return analysis_of(bundle, options, resources).analysis
    return analyze_at(bundle, options, computing.backend, computing.master, resources)


def _threads(resources: Resources | None) -> int:
    return resources.threads if resources else 1


def _resources(computing: Computing, tell: Tell) -> Resources | None:
    """What the options allow this process; None where Spark computes."""
    from tracehint.analyzer.execution.resources import Resources, cores, half_of_memory
    from tracehint.commands.lint import parse_size

    if computing.backend != "local":
        if computing.threads or computing.memory_limit:
            raise UsageError(
                "--threads and --memory-limit are for the backend local",
                "Set spark.executor.cores and spark.executor.memory.",
            )
        return None
    limit = parse_size(computing.memory_limit) if computing.memory_limit else half_of_memory()
    return Resources(computing.threads or cores(), limit, tell=tell)
