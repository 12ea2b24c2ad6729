"""`tracehint compare`: what hints did between two recorded runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tracehint.commands._backend import load
from tracehint.commands._last_runs import last_runs
from tracehint.commands._options import last_runs_or_two, nodes_option, result_options
from tracehint.commands._output import write_result
from tracehint.commands._stage_line import stage
from tracehint.commands._task_options import task_options
from tracehint.errors import EXIT_OK, TracehintError, UsageError
from tracehint.schemas.arrow import skip_pandas

if TYPE_CHECKING:
    from tracehint.hintgen.hints.model import HintFile


@click.command()
@last_runs_or_two
@result_options("text", "json")
@nodes_option
@task_options
def command(
    before: str | None,
    after: str | None,
    fmt: str,
    output: str | None,
    force: bool,
    nodes: int | None,
    cut: dict[str, Any],
) -> int:
    """Tell what the hints of the run AFTER did, compared with the run BEFORE.

    Without them, the last two runs of the workflow here, as `tracehint run` keeps them.

    Which hints were in force, lost (and by what) or not possible; seconds and
    bytes by task type; bytes from the own and from other nodes where the store
    told where files lie; what was predicted beside what was measured.

    Example: tracehint compare

    Example: tracehint compare first.trace second.trace
    """
    if before is None:
        before, after = last_runs(2, Path())
    elif after is None:
        raise UsageError("one run given", "Give two, or none: then the last two runs here.")
    skip_pandas()
    from tracehint.analyzer.model import Options
    from tracehint.hintgen.proof.compare import proof_of
    from tracehint.hintgen.proof.result import to_json, to_text_lines

    options = Options(nodes=nodes, **cut)
    first, second = (load(path, options) for path in (before, after))
    with stage("comparing"):
        proof = proof_of(first, second, hints_of(Path(after)))
    text = (
        json.dumps(to_json(proof), indent=1) if fmt == "json" else "\n".join(to_text_lines(proof))
    )
    write_result(text, output, force=force)
    return EXIT_OK


def hints_of(run: Path) -> HintFile | None:
    """The hint file that `run` keeps in its bundle."""
    from tracehint.hintgen.hints import hintfile
    from tracehint.schemas.version import HINTS_NAME

    path = run / HINTS_NAME
    try:
        return hintfile.load(path) if path.is_file() and not path.is_symlink() else None
    except TracehintError as error:
        click.echo(f"tracehint: {error}", err=True)
        return None
