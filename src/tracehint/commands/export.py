"""`tracehint export`: a run in the formats of other tools."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from tracehint.app.last_runs import run_or_last
from tracehint.commands._options import load, nodes_option, task_options
from tracehint.progress import prepare_for_analysis, stage

FORMATS = ("wfformat", "prov", "ro-crate", "perfetto", "graphml", "parquet", "arrow")


@click.command()
@run_or_last
@click.option("--to", "fmt", type=click.Choice(FORMATS), required=True, help="Format.")
@click.option("-o", "--output", help="File or directory; default: the bundle's name. `-`: stdout.")
@nodes_option
@task_options
@click.option("--force", is_flag=True, help="Replace the output.")
def command(
    bundle: str, fmt: str, output: str | None, nodes: int | None, cut: dict[str, Any], force: bool
) -> None:
    """Write the run of BUNDLE in the format of another tool.

    wfformat: WfCommons; prov: PROV-JSON; ro-crate: a Process Run RO-Crate;
    perfetto: a timeline; graphml: the graph; parquet, arrow: all tables.

    Example: tracehint export run.trace --to wfformat -o run.json
    """
    prepare_for_analysis(keep=False)
    from tracehint.analyzer.memory import give_back
    from tracehint.analyzer.model import Options
    from tracehint.hintgen import export

    stem = Path(bundle).name.removesuffix(".trace").removesuffix(".json") or "run"
    target = Path(output or f"{stem}.{fmt}{export.FORMATS[fmt].suffix}")
    run = export.select_input(load(bundle, Options(nodes=nodes, **cut)), fmt)
    give_back()
    with stage("writing"):
        export.export(run, fmt, target, force=force)
    if str(target) != "-":
        click.echo(f"tracehint: wrote {target}", err=True)
