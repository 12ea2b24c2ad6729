"""`tracehint compare`: what hints did between two recorded runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tracehint.app.last_runs import last_runs
from tracehint.app.output import write_result
from tracehint.commands._options import (
    cluster_option,
    last_runs_or_two,
    load,
    nodes_option,
    result_options,
    task_options,
)
from tracehint.errors import EXIT_OK, TracehintError, UsageError
from tracehint.progress import stage
from tracehint.schemas.arrow import skip_pandas

if TYPE_CHECKING:
    from tracehint.hintgen.hints.model import HintFile


@click.command()
@last_runs_or_two
@result_options("text", "json")
@nodes_option
@cluster_option
@task_options
def command(
    before: str | None,
    after: str | None,
    fmt: str,
    output: str | None,
    force: bool,
    nodes: int | None,
    cluster: str | None,
    cut: dict[str, Any],
) -> int:
    """Report what the hints of the run AFTER did, compared with the run BEFORE.

    Without them, the last two runs of the workflow here, as `tracehint run` keeps them.

    Which hints were in force, lost (and by what) or not possible; seconds and
    bytes by task type; bytes from the own and from other nodes where the store
    reported file locations; predicted and measured network traffic;
    the simulated gain of all hints for BEFORE.

    Example: tracehint compare

    Example: tracehint compare first.trace second.trace
    """
    if before is None:
        before, after = last_runs(2, Path())
    elif after is None:
        raise UsageError("one run given", "Give two, or none: then the last two runs here.")
    skip_pandas()
    from tracehint.analyzer.model import Options
    from tracehint.app.user_cluster import where_of
    from tracehint.hintgen.compare.proof import proof_of, to_json, to_text_lines
    from tracehint.hintgen.summary.gain import Simulation

    options = Options(nodes=nodes, **cut)
    first, second = (load(path, options) for path in (before, after))
    with stage("comparing"):
        proof = proof_of(first, second, hints_of(Path(after)))
        simulation = Simulation(first.analysis, where_of(cluster, nodes, first.analysis, before))
        gain = simulation.as_json()
    if fmt == "json":
        text = json.dumps(to_json(proof) | gain, indent=1)
    else:
        lines = [f"Simulated for {before}:", *(f"  {line}" for line in simulation.lines())]
        text = "\n".join([*to_text_lines(proof), "", *lines])
    write_result(text, output, force=force)
    return EXIT_OK


def hints_of(run: Path) -> HintFile | None:
    """The hint file that `run` keeps in its bundle."""
    from tracehint.hintgen.hints import hintfile
    from tracehint.schemas.manifest import HINTS_NAME

    path = run / HINTS_NAME
    try:
        return hintfile.load(path) if path.is_file() and not path.is_symlink() else None
    except TracehintError as error:
        click.echo(f"tracehint: {error}", err=True)
        return None
