"""What engines want to know besides the hints: options of `tracehint emit`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import click

from tracehint.commands._options import with_options

annotation_options = with_options(
    click.option(
        "--local-dir",
        default="",
        help="Directory of each node for itself (default: Swift/K /dev/shm, Nextflow the node's "
        "own; Slurm keeps copies there).",
    ),
    click.option("--shared-dir", default="", help="Directory that all nodes see (Swift/K)."),
    click.option(
        "--locations",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        help="JSON of `tracehint locate` (Swift/T).",
    ),
    click.option(
        "--hosts",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        help="Host file: the nodes that a plan's parts get, in its order (docs: start where the "
        "data is).",
    ),
    click.option(
        "--temporary", is_flag=True, help="Let Snakemake delete files that hints call temporary."
    ),
    click.option(
        "--precreate",
        is_flag=True,
        help="Let Makeflow's rules make their outputs, empty and tagged, before their command.",
    ),
)


@dataclass(frozen=True)
class Annotations:
    """What engines want to know, by the names of `EmitRequest`."""

    local_dir: str
    shared_dir: str
    locations: Path | None
    hosts: Path | None
    temporary: bool
    precreate: bool
