"""`tracehint predict`: a run on another cluster, store and placement."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from tracehint.commands._options import gathered, seed_option, with_options
from tracehint.commands._output import refuse_existing, write_result
from tracehint.commands._workload import load_analysis, load_workload, workload_options
from tracehint.errors import UsageError

METADATA = ("centralised", "replicated", "decentralised", "decentralised-replica")
_COUNTS = "N,N,..."
_SWEEP = with_options(
    click.option(
        "--cluster",
        "clusters",
        multiple=True,
        required=True,
        metavar="FILE",
        help="A cluster file, or the name of a ready-made one (repeatable).",
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
        "--split-nodes", metavar=_COUNTS, help="So many of the nodes serve the store alone."
    ),
)
_RESULT = with_options(
    click.option(
        "--validate",
        type=click.Path(path_type=Path),
        metavar="RUN2",
        help="Compare the first configuration with this measured run, by type of task.",
    ),
    click.option("--tasks", is_flag=True, help="With json: the predicted timeline."),
    click.option(
        "--metadata",
        type=click.Choice([*METADATA, "all"]),
        metavar="NAME",
        help=f"Metadata over the sites of the (first) cluster file: all, {', '.join(METADATA)}.",
    ),
    click.option(
        "--pins",
        metavar="FILE",
        help="With --metadata: a hint file that gives directories to the site they had better"
        " live at.",
    ),
    click.option(
        "--runs",
        type=click.IntRange(1, 1000),
        help="Simulated runs of each configuration (default: 15, large ones fewer).",
    ),
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


@dataclass(frozen=True)
class PredictionRequest:
    """The run, and what is told of it."""

    run: Path
    learned: tuple[Path, ...]
    scale_bytes: float
    scale_seconds: float
    validate: Path | None
    tasks: bool
    metadata: str | None
    pins: str | None
    runs: int | None
    seed: int


def refuse_late(output: str | None, pins: str | None, metadata: str | None, *, force: bool) -> None:
    """Raises UsageError for outputs that cannot be written, before the work is done."""
    if pins is not None and metadata is None:
        raise UsageError("--pins is about directories' metadata", "Give --metadata all as well.")
    for path in (output, pins):
        if path not in (None, "-"):
            refuse_existing(Path(str(path)), force=force)


@click.command()
@click.argument("run", type=click.Path(path_type=Path), metavar="RUN")
@_SWEEP
@workload_options
@_RESULT
@gathered(asked=PredictionRequest)
def command(
    asked: PredictionRequest, form: str, output: str | None, force: bool, **sweep: Any
) -> None:
    """Predict how long RUN takes on a cluster, and why; compare clusters, placements and sizes.

    RUN is a trace bundle, the JSON of analyze, or an engine's graph that has not run yet.

    Example: tracehint predict run.trace --cluster moosefs --nodes 5,10,20

    Example: tracehint predict run.trace --cluster mine.toml --placement default --placement local

    Example: tracehint predict run.trace --cluster sites.toml --metadata all
    """
    from tracehint.commands._predict_metadata import write_pins
    from tracehint.commands._predict_output import write_parquet

    refuse_late(output, asked.pins, asked.metadata, force=force)
    data = _predicted(asked, sweep)
    if asked.pins is not None:
        write_pins(data["metadata"], asked.pins, force=force)
    if form == "parquet":
        write_parquet(data, output, force=force)
        return
    result = _text(data) if form == "text" else json.dumps(data, indent=1) + "\n"
    write_result(result, output, force=force)


def _predicted(asked: PredictionRequest, sweep: dict[str, Any]) -> dict[str, Any]:
    """The document of the predictions."""
    from tracehint.analyzer.predict.prediction import predict, runs_for
    from tracehint.analyzer.predict.result import to_json
    from tracehint.analyzer.predict.validation import validate
    from tracehint.commands._predict_sweep import configurations

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
        from tracehint.commands._predict_metadata import predicted_metadata

        names = METADATA if asked.metadata == "all" else (asked.metadata,)
        data["metadata"] = predicted_metadata(asked.run, loaded, points[0], names, asked.seed)
    return data


def _text(data: dict[str, Any]) -> str:
    from tracehint.commands._predict_metadata import metadata_text
    from tracehint.commands._predict_output import text

    above = "\n".join([*metadata_text(data["metadata"]), "", ""]) if "metadata" in data else ""
    return above + text(data)
