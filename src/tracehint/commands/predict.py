"""`tracehint predict`: a run on another cluster, store and placement, before anybody pays for it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from tracehint.commands._options import with_options
from tracehint.commands._output import write_result

_COUNTS = "1,2,3"
_SOURCES = with_options(
    click.argument("run", type=click.Path(), metavar="RUN"),
    click.option(
        "--cluster",
        "clusters",
        multiple=True,
        required=True,
        metavar="FILE",
        help="A cluster file, or the name of a ready-made one (repeatable).",
    ),
)


@click.command()
@_SOURCES
@click.option(
    "--placement",
    "placements",
    multiple=True,
    metavar="NAME",
    help="default, local, or hints:FILE (repeatable; default: default).",
)
@click.option("--nodes", metavar=_COUNTS, help="Numbers of nodes to try.")
@click.option("--chunk", metavar="MB,...", help="Chunk sizes to try, in megabytes.")
@click.option("--copies", metavar=_COUNTS, help="Numbers of copies to try.")
@click.option("--split-nodes", metavar=_COUNTS, help="So many of the nodes serve the store alone.")
@click.option("--tasks", is_flag=True, help="With JSON: the predicted timeline.")
@click.option("--runs", type=click.IntRange(1, 1000), help="Simulated runs of each configuration.")
@click.option("--seed", type=click.IntRange(0, 1 << 20), default=1, show_default=True)
@click.option(
    "--format", "fmt", type=click.Choice(["text", "json"]), default="text", show_default=True
)
@click.option("-o", "--output", help="Write the result here.")
@click.option("--force", is_flag=True, help="Replace an existing output.")
def command(
    run: str,
    clusters: tuple[str, ...],
    fmt: str,
    output: str | None,
    force: bool,
    tasks: bool,
    runs: int | None,
    seed: int,
    **sweep: Any,
) -> None:
    """Predict how long RUN takes on a cluster, and why.

    Example: tracehint predict run.trace --cluster moosefs --nodes 5,10,20
    """
    from tracehint.analyzer.model import Options
    from tracehint.analyzer.predict.prediction import predict
    from tracehint.analyzer.predict.result import to_json
    from tracehint.analyzer.predict.workload import from_analysis
    from tracehint.commands._predict_sweep import configurations
    from tracehint.hintgen.inputs import load_run

    loaded = load_run(Path(run), Options())
    work = from_analysis(loaded.analysis)
    points = configurations(clusters, loaded.analysis, **sweep)
    found = predict(work, points, runs=runs or 5, seed=seed, detail=True)
    result = to_json(work, found, tasks=tasks)
    write_result(json.dumps(result, indent=1) + "\n", output, force=force)
