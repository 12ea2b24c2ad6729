"""`tracehint predict`: a run on another cluster, store and placement."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from tracehint.app.output import refuse_existing, write_result
from tracehint.app.planning import load_analysis, load_workload
from tracehint.app.prediction import seconds, table
from tracehint.commands._options import (
    gather_options,
    option,
    seed_option,
    with_options,
    workload_options,
)
from tracehint.errors import UsageError
from tracehint.schemas.wording import agree, plural

if TYPE_CHECKING:
    from tracehint.analyzer.predict.prediction import Configuration
    from tracehint.app.planning import Loaded


METADATA = ("centralised", "replicated", "decentralised", "decentralised-replica")
_COUNTS = "N,N,..."
_SWEEP = with_options(
    click.option(
        "--cluster",
        "clusters",
        multiple=True,
        required=True,
        metavar="FILE",
        help="A cluster file, or the name of a built-in model (repeatable).",
    ),
    click.option(
        "--placement",
        "placements",
        multiple=True,
        metavar="NAME",
        help="default, local, or hints:FILE (repeatable; default: default).",
    ),
    click.option("--nodes", metavar=_COUNTS, help="Numbers of nodes to try."),
    click.option(
        "--chunk",
        metavar="MB,MB,...",
        help="Sizes of chunks to try, in megabytes: the pieces that the store cuts files into.",
    ),
    click.option("--copies", metavar=_COUNTS, help="Numbers of copies of each file to try."),
    click.option(
        "--split-nodes", metavar=_COUNTS, help="Number of nodes that only serve the store."
    ),
)
_RESULT = with_options(
    seed_option,
    click.option(
        "--format",
        "form",
        type=click.Choice(["text", "json", "parquet"]),
        default="text",
        show_default=True,
    ),
    click.option("-o", "--output", help="Write the result here."),
    click.option("--force", is_flag=True, help="Replace an existing output."),
)


@dataclass(frozen=True, kw_only=True)
class PredictionRequest:
    """The run, and its notes."""

    run: Path
    learned: tuple[Path, ...]
    scale_bytes: float
    scale_seconds: float
    validate: Path | None = option(
        type=click.Path(path_type=Path),
        metavar="RUN2",
        help="Compare the first configuration with this measured run, by type of task.",
    )
    tasks: bool = option(is_flag=True, help="With json: the predicted timeline.")
    metadata: str | None = option(
        type=click.Choice([*METADATA, "all"]),
        metavar="NAME",
        help=f"Metadata over the sites of the (first) cluster file: all, {', '.join(METADATA)}.",
    )
    pins: str | None = option(
        metavar="FILE",
        help="With --metadata: a hint file that assigns directories to the sites they gain from.",
    )
    runs: int | None = option(
        type=click.IntRange(1, 1000),
        help="Simulated runs of each configuration (default: 15, large ones fewer).",
    )
    seed: int


def refuse_late(output: str | None, pins: str | None, metadata: str | None, *, force: bool) -> None:
    """Raise UsageError for outputs that cannot be written, before the work is done."""
    if pins is not None and metadata is None:
        raise UsageError("--pins needs --metadata", "Add --metadata all.")
    for path in (output, pins):
        if path not in (None, "-"):
            refuse_existing(Path(str(path)), force=force)


@click.command()
@click.argument("run", type=click.Path(path_type=Path), metavar="RUN")
@_SWEEP
@workload_options
@_RESULT
@gather_options(asked=PredictionRequest)
def command(
    asked: PredictionRequest, form: str, output: str | None, force: bool, **sweep: Any
) -> None:
    """Predict how long RUN takes on a cluster, and why; compare clusters, placements and sizes.

    RUN is a trace bundle, the JSON of analyze, or an engine's graph that has not run yet.

    Example: tracehint predict run.trace --cluster moosefs --nodes 5,10,20

    Example: tracehint predict run.trace --cluster mine.toml --placement default --placement local

    Example: tracehint predict run.trace --cluster sites.toml --metadata all
    """
    from tracehint.app.prediction import write_parquet

    refuse_late(output, asked.pins, asked.metadata, force=force)
    data = _predict_all(asked, sweep)
    if asked.pins is not None:
        write_pins(data["metadata"], asked.pins, force=force)
    if form == "parquet":
        write_parquet(data, output, force=force)
        return
    result = _text(data) if form == "text" else json.dumps(data, indent=1) + "\n"
    write_result(result, output, force=force)


def _predict_all(asked: PredictionRequest, sweep: dict[str, Any]) -> dict[str, Any]:
    """The document of the predictions."""
    from tracehint.analyzer.predict.prediction import predict, runs_for, validate
    from tracehint.analyzer.predict.result import to_json
    from tracehint.app.prediction import configurations

    loaded = load_workload(asked.run, asked.learned, asked.scale_bytes, asked.scale_seconds)
    work = loaded.work
    points = configurations(analysis=loaded.analysis, **sweep)
    detail = asked.tasks or len(points) == 1
    runs = asked.runs or runs_for(len(points), len(work.op_kind))
    found = predict(work, points, runs=runs, seed=asked.seed, detail=detail)
    data = to_json(work, found, tasks=asked.tasks)
    if asked.validate is not None:
        data["validation"] = validate(work, found[0], load_analysis(asked.validate))
    if asked.metadata is not None:
        names = METADATA if asked.metadata == "all" else (asked.metadata,)
        data["metadata"] = predicted_metadata(asked.run, loaded, points[0], names, asked.seed)
    return data


def _text(data: dict[str, Any]) -> str:
    from tracehint.app.prediction import text

    above = "\n".join([*metadata_text(data["metadata"]), "", ""]) if "metadata" in data else ""
    return above + text(data)


Row = dict[str, Any]
_DIRECTORIES = 5


def predicted_metadata(
    run: Path, loaded: Loaded, point: Configuration, names: Sequence[str], seed: int
) -> Row:
    """Return the object `metadata` of `--format json`, including the calls counted in a bundle.
    If the placement is a plan, tasks are at the sites of their parts."""
    from tracehint.analyzer.predict.metadata.model import at_nodes
    from tracehint.analyzer.predict.metadata.prediction import predict_metadata
    from tracehint.analyzer.predict.metadata.work import metadata_work
    from tracehint.schemas.kinds import what_is
    from tracehint.schemas.store import read_bundle

    bundle = read_bundle(run) if what_is(run) == "bundle" else None
    work = metadata_work(loaded.analysis, loaded.work, bundle)
    plan = point.strategy(loaded.work, point.cluster).plan
    if plan is not None:
        work = at_nodes(work, plan, point.cluster)
    return cast("Row", predict_metadata(work, point.cluster, names, seed=seed))


def write_pins(data: Row, output: str, *, force: bool) -> None:
    """Write a hint file that assigns directories to sites; print how many are left out."""
    from tracehint.app.output import write_result
    from tracehint.hintgen.hints.hintfile import to_json
    from tracehint.hintgen.hints.model import FolderHints, HintFile, sayable
    from tracehint.hintgen.hints.pathtext import to_text
    from tracehint.hintgen.hints.vocabulary import safe_name

    found = [(os.fsencode(row["path"]), safe_name(row["site"])) for row in data["directories"]]
    kept = tuple(
        FolderHints(to_text(path), {"Metadata": site}) for path, site in found if sayable(path)
    )
    if len(kept) < len(found):
        left = len(found) - len(kept)
        click.echo(
            agree(left, f"not in {output}: {{n}} [directory|directories] outside the data root"),
            err=True,
        )
    if not kept:
        click.echo(f"No directory gains from another site: {output} has no hints", err=True)
    hints = HintFile((), {"nodes": 1}, (), directories=kept)
    write_result(json.dumps(to_json(hints), indent=1) + "\n", output, force=force)


def metadata_text(data: Row) -> list[str]:
    """Lines for the object `metadata` of `--format json`."""
    rows = data["strategies"]
    return [
        _answer(data),
        "",
        *_table(rows, data["best"]),
        *_directories(data["directories"]),
        "",
        "Assumed for metadata:",
        *(f"  - {note}" for note in data["assumptions"]),
        f"Left out for metadata: {data['left_out']}.",
    ]


def _answer(data: Row) -> str:
    best = next(row for row in data["strategies"] if row["name"] == data["best"])
    centre = f" at {best['centre']}" if best["centre"] else ""
    cost = best["seconds"] - data["seconds_without"]
    text = (
        f"Metadata: {best['name']}{centre}: {seconds(best['seconds'])}, of which "
        f"{seconds(max(0.0, cost))} wait for {plural(data['operations'], 'operation')}"
    )
    if data["alike"]:
        return f"{text}; {' and '.join(data['alike'])} would be equally fast."
    if data["margin"] is None:
        return f"{text}."
    return f"{text}; the next one takes {data['margin']:.0%} longer."


def _table(rows: list[Row], best: str) -> list[str]:
    head = ["metadata", "time", "90 %", "half done", "between sites", "seen elsewhere after"]
    cells = []
    for row in rows:
        stale = row["staleness_seconds"]
        cells.append(
            [
                _site_name(row) + (" *" if row["name"] == best else ""),
                seconds(row["seconds"]),
                f"{seconds(row['seconds_low'])} - {seconds(row['seconds_high'])}",
                seconds(row["progress_seconds"][4]),
                f"{row['wide_area_round_trips']:,}",
                f"{seconds(stale['mean'])} (at most {seconds(stale['most'])})" if stale else "-",
            ]
        )
    return table(head, cells)


def _site_name(row: Row) -> str:
    return f"{row['name']} at {row['centre']}" if row["centre"] else str(row["name"])


def _directories(rows: list[Row]) -> list[str]:
    if not rows:
        return []
    lines = ["", "Directories that gain from another site:"]
    lines += [
        f"  {row['path'] or '.'}/ at {row['site']}: {row['from_site']:,} of "
        f"{row['operations']:,} operations come from there"
        for row in rows[:_DIRECTORIES]
    ]
    if len(rows) > _DIRECTORIES:
        lines.append(f"  and {len(rows) - _DIRECTORIES} more (--format json)")
    return lines
