"""`tracehint graph`: the file/task graph as a picture or for other programs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from tracehint.app.last_runs import run_or_last
from tracehint.app.output import refuse_existing, write_result
from tracehint.commands._options import load, nodes_option, task_options
from tracehint.errors import UsageError
from tracehint.progress import prepare_for_analysis, stage

FORMATS = ("svg", "png", "dot", "graphml", "json")


@click.command()
@run_or_last
@click.option("-o", "--output", help="File; its ending is the format. Default: DOT to stdout.")
@click.option("--format", "fmt", type=click.Choice(FORMATS), help="Default: by the file's ending.")
@click.option("--fold/--no-fold", default=None, help="Default: fold above 60 tasks or 120 nodes.")
@nodes_option
@task_options
@click.option(
    "--timeout",
    type=click.FloatRange(1),
    default=120,
    show_default=True,
    help="Seconds for Graphviz.",
)
@click.option("--force", is_flag=True, help="Replace the output file.")
def command(
    bundle: str,
    output: str | None,
    fmt: str | None,
    fold: bool | None,
    nodes: int | None,
    cut: dict[str, Any],
    timeout: float,
    force: bool,
) -> None:
    """Draw how the tasks of BUNDLE hand data to each other through files.

    Default: the last run here. Boxes with round corners are tasks, the others files; colours are
    patterns, line width is bytes. Large runs are folded by task type and file template.

    Example: tracehint graph run.trace -o run.svg
    """
    prepare_for_analysis(keep=False)
    chosen = fmt or _by_ending(output)
    if output not in (None, "-"):
        refuse_existing(Path(str(output)), force=force)
    from tracehint.analyzer.model import Options
    from tracehint.hintgen.report import dot, graph_export
    from tracehint.hintgen.report.drawing import build, lean, title

    run = load(bundle, Options(nodes=nodes, **cut))
    run.analysis = lean(run.analysis)
    with stage("drawing"):
        drawing = build(run.analysis, fold)
    result: str | bytes
    if chosen == "graphml":
        result = graph_export.to_graphml(drawing)
    elif chosen == "json":
        result = graph_export.to_json(drawing)
    else:
        result = dot.to_dot(drawing, title(run.analysis.run, Path(bundle)))
        if chosen != "dot":
            result = dot.draw(result, chosen, timeout)
    write_result(result, output, force=force)


def _by_ending(output: str | None) -> str:
    """Return the format for the file's name. Raises UsageError."""
    ending = Path(output).suffix[1:].lower() if output else "dot"
    if ending not in FORMATS:
        raise UsageError(
            f"{output}: unknown graph format", f"Use one of these endings: {', '.join(FORMATS)}"
        )
    return ending
