"""tracehint analyze: the graph and the patterns of a bundle, as text, JSON or Parquet."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import click

from tracehint.analyzer.execution.resources import silent
from tracehint.app.last_runs import run_or_last
from tracehint.app.output import cannot_write, refuse_existing, write_output
from tracehint.commands._options import (
    THRESHOLDS,
    FoldedCommand,
    analysis_options,
    backend_options,
    cluster_option,
    gather_options,
    option,
    options_from,
)
from tracehint.errors import UsageError
from tracehint.progress import prepare_for_analysis, stages

if TYPE_CHECKING:
    import pyarrow as pa

    from tracehint.analyzer.execution.resources import Resources, Tell
    from tracehint.analyzer.model import Analysis, Options


# Options that few people need: --help-thresholds lists them.
_RARE = ("backend", "default_placement", "master", "memory_limit", "no_ranges", "sites", "threads")


@dataclass(frozen=True, kw_only=True)
class Computing:
    """The backend, and its threads and memory."""

    backend: str
    master: str | None
    threads: int | None = option(
        type=click.IntRange(1),
        help="Threads that compute (default: the processors that this process may use).",
    )
    memory_limit: str | None = option(
        metavar="SIZE",
        help="Accesses that would take more than half of it go through temporary files in TMPDIR"
        " (default: half of the machine's memory).",
    )


@click.command(cls=FoldedCommand, rare=(*THRESHOLDS, *_RARE))
@run_or_last
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json", "parquet"]),
    default="text",
    show_default=True,
)
@click.option("-o", "--output", metavar="PATH", help="File, or directory for parquet.")
@click.option("--force", is_flag=True, help="Replace existing output.")
@click.option("--no-ranges", is_flag=True, help="Leave the byte ranges out of the output.")
@backend_options
@cluster_option
@analysis_options
@gather_options(computing=Computing)
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

    if form == "parquet" and output is None:
        raise UsageError("--format parquet needs a directory", "Name it with -o.")
    if output not in (None, "-"):
        refuse_existing(Path(str(output)), force=force)
    prepare_for_analysis()
    options = options_from(values, ranges=not no_ranges)
    with stages() as seen:
        resources = _resources(computing, seen.tell)
        result = FORMS[form](output, options, _threads(resources), seen.tell, cluster, bundle)
        resources = resources and replace(resources, ready=result.ready)
        analysis = _run_analysis(bundle, options, computing, resources)
        seen.tell("writing", 0, 0, "")
        on_screen = output in (None, "-") and sys.stdout.isatty()
        if not on_screen:
            result.write(analysis)
    if on_screen:
        result.write(analysis)


def _run_analysis(
    bundle: str, options: Options, computing: Computing, resources: Resources | None
) -> Analysis:
    """Analyze in this process or with Spark."""
    from tracehint.analyzer.analyze import analyze_at
    from tracehint.analyzer.cache import analysis_of

    if resources is not None and computing.master is None:
        return analysis_of(bundle, options, resources).analysis
    return analyze_at(bundle, options, computing.backend, computing.master, resources)


def _threads(resources: Resources | None) -> int:
    return resources.threads if resources else 1


def _resources(computing: Computing, tell: Tell) -> Resources | None:
    """Return the threads and memory of this process; None for Spark."""
    from tracehint.analyzer.execution.resources import Resources, cores, half_of_memory
    from tracehint.commands.lint import parse_size

    if computing.backend != "local":
        if computing.threads or computing.memory_limit:
            raise UsageError(
                "--threads and --memory-limit need the backend local",
                "Set spark.executor.cores and spark.executor.memory.",
            )
        return None
    limit = parse_size(computing.memory_limit) if computing.memory_limit else half_of_memory()
    return Resources(computing.threads or cores(), limit, tell=tell)


@dataclass
class Output:
    """The output of an analysis. Replaces existing files; raises UsageError with the remedy."""

    target: str | None
    options: Options
    threads: int = 1
    tell: Tell = silent
    cluster: str | None = None  # of the gains in the text
    source: str = ""  # the bundle

    def ready(self, name: str, table: pa.Table) -> None:
        """A table is complete, although the analysis is not."""

    def write(self, analysis: Analysis) -> None:
        """Write what is not written yet."""
        raise NotImplementedError


class Json(Output):
    """One document."""

    def write(self, analysis: Analysis) -> None:
        write_output(self._pieces(analysis), self.target)

    def _pieces(self, analysis: Analysis) -> Iterator[bytes]:
        from tracehint.analyzer.output.json import write_json

        done = 0
        for piece in write_json(analysis, self.threads):
            done += len(piece)
            self.tell("writing", done >> 20, 0, "MiB")
            yield piece


@dataclass
class Parquet(Output):
    """One file per table in a directory, written by threads as tables complete; last run.json."""

    def __post_init__(self) -> None:
        from concurrent.futures import Future, ThreadPoolExecutor

        self._folder = Path(str(self.target))
        self._pool = ThreadPoolExecutor(self.threads)
        self._begun: dict[str, Future[None]] = {}

    def ready(self, name: str, table: pa.Table) -> None:
        where = self._folder / f"{name}.parquet"
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise cannot_write(self._folder, error) from None
        self._begun[name] = self._pool.submit(_table, table, where, self.options.ranges)

    def write(self, analysis: Analysis) -> None:
        import json

        for name, table in analysis.tables().items():
            if name not in self._begun:
                self.ready(name, table)
        text = json.dumps(analysis.run, indent=1, allow_nan=False)
        try:
            for begun in self._begun.values():
                begun.result()
            (self._folder / "run.json").write_text(text + "\n", encoding="utf-8")
        except OSError as error:
            raise cannot_write(self._folder, error) from None


def _table(table: pa.Table, path: Path, ranges: bool) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    if not ranges and "ranges" in table.schema.names:
        table = table.drop_columns(["ranges"])
    # Dictionaries of numbers cost more than compressing them, and statistics of the few texts,
    # by which no query selects, as much as writing them.
    repeated = [f.name for f in table.schema if pa.types.is_dictionary(f.type)]
    ordered = [f.name for f in table.schema if not pa.types.is_dictionary(f.type)]
    pq.write_table(
        table, path, compression="zstd", use_dictionary=repeated, write_statistics=ordered
    )


class Text(Output):
    """The summary for people."""

    def write(self, analysis: Analysis) -> None:
        import io

        if self.target in (None, "-"):
            self._print(analysis, sys.stdout)
            return
        text = io.StringIO()
        self._print(analysis, text)
        write_output([text.getvalue().encode("utf-8", "backslashreplace")], self.target)

    def _print(self, analysis: Analysis, stream: TextIO) -> None:
        from tracehint.app.user_cluster import where_of
        from tracehint.hintgen.summary.console import console_for
        from tracehint.hintgen.summary.gain import Simulation
        from tracehint.hintgen.summary.summary import print_summary

        where = where_of(self.cluster, self.options.nodes, analysis, self.source)
        print_summary(analysis, console_for(stream), Simulation(analysis, where))


# --format -> its writer
FORMS: dict[str, type[Output]] = {"text": Text, "json": Json, "parquet": Parquet}
