"""`tracehint calibrate`: measure a store, so that savings can be given in seconds."""

from __future__ import annotations

from pathlib import Path

import click

from tracehint.commands._output import write_result
from tracehint.commands._stores import require_store, store_options


@click.command()
@click.argument("directory", type=click.Path(path_type=Path))
@store_options(required=False)
@click.option(
    "--seconds",
    type=click.FloatRange(1, 600),
    default=30.0,
    show_default=True,
    help="Stop after this time at the latest.",
)
@click.option(
    "--size-mb",
    type=click.IntRange(1, 100_000),
    default=256,
    show_default=True,
    help="Size of the file that is written and read.",
)
@click.option("-o", "--output", help="Write the JSON here.")
@click.option("--force", is_flag=True, help="Replace an existing output.")
def command(
    directory: Path,
    store: str | None,
    prefix: str | None,
    places: Path | None,
    seconds: float,
    size_mb: int,
    output: str | None,
    force: bool,
) -> None:
    """Measure the cost of calls and the data rate of the store below DIRECTORY.

    Works in a directory of its own that it removes again. The result is JSON: seconds for each
    call (median, and the middle half of all), bytes per second for writing with fsync and for
    reading back; what could not be measured is null, with the reason.

    Example: tracehint calibrate /scratch -o scratch.json
    """
    import json

    from tracehint.adapters.calibrate import measure

    chosen = require_store(store or "xattr", prefix, places)
    result = measure(directory, chosen, seconds=seconds, size=size_mb << 20)
    write_result(json.dumps(result, indent=1) + "\n", output, force=force)
