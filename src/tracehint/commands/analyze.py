"""tracehint analyze: the graph and the patterns of a bundle, as text, JSON or Parquet."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tracehint.commands._roots import given_roots
from tracehint.commands._stage_line import stages
from tracehint.errors import UsageError

if TYPE_CHECKING:
    import pyarrow as pa

    from tracehint.analyzer.execution.resources import Resources, Tell
    from tracehint.analyzer.model import Analysis, Options

_SHARE = click.FloatRange(0, 1)
_COUNT = click.IntRange(0)

# field of analyzer.model.Options -> (type, help); the option is the name with dashes.
THRESHOLDS: dict[str, tuple[Any, str]] = {
    "peek_share": (_SHARE, "A peek reads less than this share of the file ..."),
    "peek_bytes": (_COUNT, "... and fewer bytes than this."),
    "header_bytes": (_COUNT, "A shared header lies within the first bytes of a file ..."),
    "header_share": (_SHARE, "... and within this share of it ..."),
    "header_readers": (_SHARE, "... and at least this share of the readers read it."),
    "broadcast_slope": (_SHARE, "Broadcast: readers per byte >= 1 + SLOPE (readers - 1)."),
    "scatter_max_m": (click.FloatRange(1), "Scatter: at most so many readers per byte."),
    "gather_max_overlap": (_SHARE, "Gather: at most this share of the bytes written twice."),
    "reduce_min_share": (_SHARE, "Reduce: at least this share of what the task reads."),
    "max_versions": (_COUNT, "Files with more versions are called concurrently shared."),
    "call_cost_bytes": (_COUNT, "A hint that saves fewer bytes does not repay its call."),
}


def analysis_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """The options that decide how a bundle is analyzed; `options_from` takes their values."""
    for name, (kind, text) in reversed(THRESHOLDS.items()):
        flag = "--" + name.replace("_", "-")
        function = click.option(flag, name, type=kind, default=None, help=text)(function)
    function = click.option(
        "--data-root", "data_roots", multiple=True, metavar="DIR",
        help="Workflow data is below DIR (repeatable; default: found from the run).",
    )(function)  # fmt: skip
    function = click.option(
        "--default-placement", type=click.Choice(["striped", "one-node", "local"]),
        default="striped", show_default=True, help="What the store does without hints.",
    )(function)  # fmt: skip
    function = click.option(
        "--calibration", type=click.Path(path_type=Path), metavar="FILE",
        help="Of `tracehint calibrate`: savings in seconds, from the rates that it measured.",
    )(function)  # fmt: skip
    function = click.option(
        "--bandwidth", type=click.FloatRange(min=0, min_open=True, max=1e9), metavar="MBIT",
        help="Megabits per second of a node's link: savings in seconds.",
    )(function)  # fmt: skip
    function = click.option(
        "--sites", type=click.Path(path_type=Path), metavar="FILE",
        help="Table of sites or racks: a host (or a pattern) and its site per line.",
    )(function)  # fmt: skip
    return click.option(
        "--nodes", type=click.IntRange(1), default=None,
        help="Nodes of the cost model (default: the run's hosts, or its most tasks at one time).",
    )(function)  # fmt: skip


def options_from(values: dict[str, Any], *, ranges: bool = True) -> Options:
    """Options of the analyzer from the command line's values; None means the default."""
    from tracehint.analyzer.model import Options

    given = {name: values[name] for name in THRESHOLDS if values.get(name) is not None}
    return Options(
        nodes=values.get("nodes"),
        default_placement=values.get("default_placement") or "striped",
        data_roots=given_roots(values.get("data_roots") or ()),
        ranges=ranges,
        sites=_sites(values.get("sites")),
        link_rates=_link_rates(values.get("bandwidth"), values.get("calibration")),
        **given,
    )


def _sites(path: Path | None) -> tuple[tuple[str, str], ...]:
    """The table of sites, if one was named."""
    from tracehint.analyzer.sites import read_sites

    return read_sites(path) if path else ()


def _link_rates(mbit: float | None, calibration: Path | None) -> tuple[float, float] | None:
    """Slowest and fastest known rate of a link in bytes per second; None: none is known."""
    known = [mbit * 125_000] if mbit else []
    if calibration:
        from tracehint.hintgen.calibration import read_rates

        rates = read_rates(calibration)
        known += [rates.slow, rates.fast]
    return (min(known), max(known)) if known else None


@click.command()
@click.argument("bundle", type=click.Path())
@click.option(
    "--format", "form", type=click.Choice(["text", "json", "parquet"]), default="text",
    show_default=True,
)  # fmt: skip
@click.option("-o", "--output", metavar="PATH", help="File, or directory for parquet.")
@click.option("--force", is_flag=True, help="Replace what is there.")
@click.option("--no-ranges", is_flag=True, help="Leave the byte ranges out of the output.")
@click.option(
    "--engine",
    type=click.Choice(["duckdb", "spark"]),
    default="duckdb",
    show_default=True,
    help="Who computes: this process, or Spark. The result is the same.",
)
@click.option(
    "--master", metavar="URL", help="Spark's cluster (default: local[*], this machine's cores)."
)
@click.option(
    "--threads", type=click.IntRange(1), default=None,
    help="Threads that compute (default: the processors that this process may use).",
)  # fmt: skip
@click.option(
    "--memory-limit", metavar="SIZE", default=None,
    help="Accesses that would take more than half of it go through temporary files in TMPDIR"
    " (default: half of the machine's memory).",
)  # fmt: skip
@analysis_options
def command(
    bundle: str, form: str, output: str | None, force: bool, no_ranges: bool, engine: str,
    master: str | None, threads: int | None, memory_limit: str | None, **values: Any,
) -> None:  # fmt: skip
    """Print the graph and the patterns of BUNDLE.

    Text is a summary for people; json is one document with everything; parquet is one file
    per table in the directory that -o names. With --engine spark, BUNDLE may be a URL that
    Spark can read (s3://, hdfs://, ...).

    Example: tracehint analyze run.trace --format json -o run.json
    """
    from tracehint.analyzer.execution import analyze_at
    from tracehint.analyzer.execution.memory import keep_memory
    from tracehint.schemas.arrow import skip_pandas

    if form == "parquet" and output is None:
        raise UsageError("--format parquet needs a directory", "Name it with -o.")
    _check_free(output, force)
    keep_memory()
    skip_pandas()
    options = options_from(values, ranges=not no_ranges)
    # Millions of live objects and no garbage in circles: the collector would only look on.
    gc.disable()
    with stages() as seen:
        given = None
        if engine == "duckdb":
            given = _resources(threads, memory_limit, seen.tell)
        elif threads or memory_limit:
            raise UsageError(
                "--threads and --memory-limit are for the engine duckdb",
                "Set spark.executor.cores and spark.executor.memory.",
            )
        analysis = analyze_at(bundle, options, engine, master, given)
        seen.tell("writing", 0, 0, "")
        on_screen = output in (None, "-") and sys.stdout.isatty()
        if not on_screen:
            _put(analysis, form, output, given, seen.tell)
    if on_screen:
        _put(analysis, form, output, given, seen.tell)


def _put(
    analysis: Analysis, form: str, output: str | None, given: Resources | None, tell: Tell
) -> None:
    if form == "json":
        _write_json(analysis, output, given.threads if given else 1, tell)
    elif form == "parquet":
        _write_parquet(analysis, Path(str(output)), given.threads if given else 1)
    else:
        _write_text(analysis, output)


def _resources(threads: int | None, memory: str | None, tell: Tell) -> Resources:
    """What the options allow."""
    from tracehint.analyzer.execution.resources import Resources, cores, half_of_memory
    from tracehint.commands.lint import parse_size

    limit = parse_size(memory) if memory else half_of_memory()
    return Resources(threads or cores(), limit, tell=tell)


def _write_json(analysis: Analysis, output: str | None, threads: int, tell: Tell) -> None:
    from tracehint.analyzer.output import write_json

    def pieces() -> Iterator[bytes]:
        done = 0
        for piece in write_json(analysis, threads):
            done += len(piece)
            tell("writing", done >> 20, 0, "MiB")
            yield piece

    _write(pieces(), output)


def _check_free(output: str | None, force: bool) -> None:
    """Refuse before the work is done."""
    if output not in (None, "-") and Path(str(output)).exists() and not force:
        raise UsageError(f"{output}: exists", "Give --force to replace it, or another -o.")


def _write(pieces: Iterable[bytes], output: str | None) -> None:
    """To stdout, or atomically to a file."""
    if output in (None, "-"):
        for piece in pieces:
            sys.stdout.buffer.write(piece)
        sys.stdout.buffer.flush()
        return
    path = Path(str(output))
    temporary = path.with_name(f".{path.name[:200]}.{os.getpid()}.tmp")
    try:
        with temporary.open("wb") as stream:
            stream.writelines(pieces)
        temporary.replace(path)
    except OSError as error:
        raise _cannot_write(path, error) from None
    finally:
        temporary.unlink(missing_ok=True)


def _write_parquet(analysis: Analysis, folder: Path, threads: int) -> None:
    """One file per table, and run.json."""
    import json
    from concurrent.futures import ThreadPoolExecutor

    try:
        folder.mkdir(parents=True, exist_ok=True)
        tables = analysis.tables()
        largest = sorted(tables, key=lambda name: -tables[name].nbytes)
        ranges = analysis.options.ranges
        with ThreadPoolExecutor(threads) as pool:
            for done in [
                pool.submit(_write_table, tables[name], folder / f"{name}.parquet", ranges)
                for name in largest
            ]:
                done.result()
        text = json.dumps(analysis.run, indent=1, allow_nan=False)
        (folder / "run.json").write_text(text + "\n", encoding="utf-8")
    except OSError as error:
        raise _cannot_write(folder, error) from None


def _write_table(table: pa.Table, path: Path, ranges: bool) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    if not ranges and "ranges" in table.schema.names:
        table = table.drop_columns(["ranges"])
    # Looking for repeated numbers costs more than compressing them.
    repeated = [f.name for f in table.schema if pa.types.is_dictionary(f.type)]
    pq.write_table(table, path, compression="zstd", use_dictionary=repeated)


def _write_text(analysis: Analysis, output: str | None) -> None:
    import io

    from tracehint.analyzer.summary import console_for, print_summary

    if output in (None, "-"):
        print_summary(analysis, console_for(sys.stdout))
        return
    text = io.StringIO()
    print_summary(analysis, console_for(text))
    _write([text.getvalue().encode("utf-8", "backslashreplace")], output)


def _cannot_write(path: Path, error: OSError) -> UsageError:
    return UsageError(
        f"{path}: cannot be written: {error.strerror or error}", "Choose another place with -o."
    )
