"""`tracehint calibrate`: measure a store and its nodes, for predictions and gains."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tracehint.app.output import write_result
from tracehint.commands._stores import store_option
from tracehint.errors import UsageError

if TYPE_CHECKING:
    from tracehint.adapters.place.hosts import Host

PROBE_MB, PROBE_MOST_MB = 16, 1024
_NAME = re.compile(r"[^A-Za-z0-9_.-]+")


@click.command()
@click.argument("directory", type=click.Path(path_type=Path))
@store_option(required=False)
@click.option(
    "--seconds",
    type=click.FloatRange(1, 600),
    default=30.0,
    show_default=True,
    help="Stop after this time at the latest.",
)
@click.option(
    "--size-mb",
    type=click.IntRange(1, PROBE_MOST_MB),
    help=f"Size of each file (default: {PROBE_MB}, or the store's chunk if that is less).",
)
@click.option(
    "--hosts",
    type=click.Path(path_type=Path),
    help="Nodes to measure from, the first 5 (TOML; docs: start where the data is). Default: here.",
)
@click.option("-o", "--output", help="NAME.toml. Default: stdout.")
@click.option("--force", is_flag=True, help="Replace an existing output.")
def command(
    directory: Path,
    store: str | None,
    seconds: float,
    size_mb: int | None,
    hosts: Path | None,
    output: str | None,
    force: bool,
) -> None:
    """Measure the store below DIRECTORY, the nodes of --hosts and their links.

    Works in a directory of its own that it removes again, and writes a cluster file for
    `--cluster`, with ranges. Nodes need python3 and the mounted store. Where Slurm is there, 13
    jobs of no work measure how soon and how fast it starts tasks.

    Example: tracehint calibrate /scratch --hosts hosts.toml --store moosefs -o cluster.toml
    """
    if output is not None and not output.endswith(".toml") and output != "-":
        raise UsageError(f"{output}: calibrate writes a cluster file", "Name it NAME.toml.")
    name = _NAME.sub("-", Path(output or "-").stem).strip("-._") or "measured"
    text = _cluster(directory, name[:64], store, hosts, seconds, size_mb)
    write_result(text, output, force=force)


def _cluster(
    directory: Path,
    name: str,
    store: str | None,
    hosts: Path | None,
    seconds: float,
    size_mb: int | None,
) -> str:
    """The text of a cluster file."""
    from tracehint.adapters.place.hosts import STARTS, Host, read_hosts
    from tracehint.adapters.probe.derive import cluster_text, derive
    from tracehint.adapters.probe.probe import probe
    from tracehint.analyzer.predict.cluster_file import read_cluster, ready_made

    base = store if store in ready_made() else None
    size = size_mb or PROBE_MB
    if size_mb is None and base is not None and (ready := read_cluster(base)).spread:
        size = max(1, min(size, int(ready.store["chunk_mb"]) >> 20))  # keeps the file in one chunk
    here = Host(name="localhost", start=STARTS["here"])
    nodes: tuple[Host, ...] = (here,) if hosts is None else read_hosts(hosts)
    seen = probe(directory, nodes, seconds=seconds, size=size << 20, store=store)
    return cluster_text(name, base, *derive(seen))
