"""`tracehint run`: a workflow as it is, its files hinted as they are made."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tracehint.collectors.run import Ended, die_like
from tracehint.commands._options import with_options
from tracehint.commands._recording import (
    RecordError,
    RunCommand,
    recording_options,
    run_plain,
    start,
)
from tracehint.commands._stores import store_options
from tracehint.errors import TracehintError

if TYPE_CHECKING:
    from tracehint.commands._hinted import Hinted

_options = with_options(
    click.option(
        "--hints",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        metavar="HINTS",
        help="Hint file of `hints` or `plan`.",
    ),
    store_options(required=False),
    click.option(
        "--like",
        type=click.Path(exists=True, path_type=Path),
        metavar="RUN",
        help="Bundle or analysis of a run whose files this one has as well.",
    ),
    click.option(
        "--nodes",
        type=click.IntRange(1, 1_000_000),
        help="Nodes of this run; copies of a file never exceed them.",
    ),
    click.option("--no-record", is_flag=True, help="Set hints only; record nothing."),
)


@click.command(cls=RunCommand, context_settings={"allow_interspersed_args": False})
@_options
@recording_options
def command(
    hints: Path | None,
    store: str | None,
    prefix: str | None,
    places: Path | None,
    like: Path | None,
    nodes: int | None,
    no_record: bool,
    **options: Any,
) -> int:
    """Run COMMAND unchanged; each file that a hint is for gets it as it is made, before its
    first byte.

    The command's output, exit code and signals pass through; a store's error never
    reaches it. What was set, and what the store refused, is told at the end and
    stands in the trace bundle. 125, 126, 127: as `record`.

    Example: tracehint run --hints hints.json --store moosefs -- makeflow montage.mf
    """
    from tracehint.commands._hinted import Wanted, prepared

    wanted = Wanted(hints, store, prefix, places, like, nodes, options["data_roots"])
    try:
        with prepared(wanted) as hinted:
            ended, bundle = _run(hinted, no_record, options)
            hinted.tell(bundle, options["host_id"], quiet=options["quiet"])
    except TracehintError as error:
        if error.exit_code in (126, 127):
            raise
        raise RecordError(error.what, error.remedy) from None
    return die_like(ended)


def _run(hinted: Hinted, no_record: bool, options: dict[str, Any]) -> tuple[Ended, Path | None]:
    if no_record:
        return run_plain(options["command"], hinted.environment), None
    result, bundle = start(**options, environment=hinted.environment)
    if bundle is not None and not options["quiet"]:
        click.echo(f"tracehint: wrote {click.format_filename(bundle)}", err=True)
    return Ended(result.exit_status, result.signal), bundle
