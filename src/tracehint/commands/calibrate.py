"""`tracehint calibrate`: measure a store, so that savings can be given in seconds."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tracehint.commands._output import write_result
from tracehint.commands._stores import require_store, store_options
from tracehint.errors import UsageError

if TYPE_CHECKING:
    from tracehint.adapters.place.hosts import Host

PROBE_MB, PROBE_MOST_MB = 16, 1024
_NAME = re.compile(r"[^A-Za-z0-9_.-]+")


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
    help="Size of the file that is written and read (default: 256; of each file of a cluster: 16, "
    "or the store's chunk if that is less).",
)
@click.option(
    "--hosts",
    type=click.Path(path_type=Path),
    help="For a cluster: nodes to measure from, the first 5 (TOML; docs: start where the data is).",
)
@click.option("-o", "--output", help="Write the JSON here; a name that ends in .toml: a cluster.")
@click.option("--force", is_flag=True, help="Replace an existing output.")
def command(
    directory: Path,
    store: str | None,
    prefix: str | None,
    places: Path | None,
    seconds: float,
    size_mb: int | None,
    hosts: Path | None,
    output: str | None,
    force: bool,
) -> None:
    """Measure the cost of calls and the data rate of the store below DIRECTORY.

    Works in a directory of its own that it removes again. The result is JSON: seconds for each
    call (median, and the middle half of all), bytes per second for writing with fsync and for
    reading back; what could not be measured is null, with the reason.

    With -o NAME.toml it measures the nodes of --hosts and their links as well, and writes a
    cluster file for `predict --cluster`, with ranges. Nodes need python3 and the mounted store.

    Example: tracehint calibrate /scratch -o scratch.json

    Example: tracehint calibrate /scratch --hosts hosts.toml --store moosefs -o cluster.toml
    """
    import json

    from tracehint.adapters.calibrate import measure

    if output is not None and output.endswith(".toml"):
        text = _cluster(directory, Path(output), store, hosts, seconds, size_mb)
        write_result(text, output, force=force)
        return
    if hosts is not None:
        raise UsageError("--hosts is for a cluster file", "Add -o NAME.toml.")
    chosen = require_store(store or "xattr", prefix, places)
    result = measure(directory, chosen, seconds=seconds, size=(size_mb or 256) << 20)
    write_result(json.dumps(result, indent=1) + "\n", output, force=force)


def _cluster(
    directory: Path,
    output: Path,
    store: str | None,
    hosts: Path | None,
    seconds: float,
    size_mb: int | None,
) -> str:
    """The text of a cluster file."""
    from tracehint.adapters.place.hosts import STARTS, Host, read_hosts
    from tracehint.adapters.probe.derive import derive
    from tracehint.adapters.probe.probe import probe
    from tracehint.adapters.probe.write import cluster_text
    from tracehint.analyzer.predict.cluster_file import read_cluster, ready_made

    base = store if store in ready_made() else None
    size = size_mb or PROBE_MB
    if size > PROBE_MOST_MB:
        raise UsageError(f"--size-mb {size}", f"Give at most {PROBE_MOST_MB} for a cluster file.")
    if size_mb is None and base is not None and (ready := read_cluster(base)).spread:
        size = max(1, min(size, int(ready.store["chunk_mb"]) >> 20))  # a file lies in one place
    here = Host(name="localhost", start=STARTS["here"])
    nodes: tuple[Host, ...] = (here,) if hosts is None else read_hosts(hosts)
    seen = probe(directory, nodes, seconds=seconds, size=size << 20, store=store)
    name = _NAME.sub("-", output.stem).strip("-._") or "measured"
    return cluster_text(name[:64], base, *derive(seen))
