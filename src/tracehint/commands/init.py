"""`tracehint init`: find engine, store and nodes, and write them down as defaults."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from tracehint.commands._output import write_result
from tracehint.errors import EXIT_OK

if TYPE_CHECKING:
    from tracehint.adapters.project.discover import Discovered

MAP = "tracehint.map.toml"
# engine -> how it is usually started
COMMANDS = {
    "makeflow": "makeflow FILE", "snakemake": "snakemake -c4", "make": "make -j4",
    "nextflow": "nextflow run main.nf", "cwl": "cwltool FILE",
}  # fmt: skip  # a table


@click.command()
@click.argument(
    "directory", type=click.Path(exists=True, file_okay=False, path_type=Path), default="."
)
@click.option("--force", is_flag=True, help="Replace tracehint.toml; its tables stay.")
@click.option("--dry-run", is_flag=True, help="Only say what was found.")
def command(directory: Path, force: bool, dry_run: bool) -> int:
    """Find the engine, store and nodes of the workflow in DIRECTORY (here); write tracehint.toml.

    All commands that are typed in that directory take their defaults from it. Says at once what
    the store can and cannot take. Nothing is run, no host is asked.

    Example: tracehint init
    """
    from tracehint.adapters.project.config import NAME
    from tracehint.adapters.project.discover import discover, project_text
    from tracehint.adapters.project.kept import kept_from

    found = discover(directory)
    old = directory / NAME
    by_hand, tables = kept_from(old) if old.is_file() else ({}, "")
    if found.store == "moosefs" and "map" not in by_hand:
        by_hand |= _map(directory, dry_run=dry_run)
    text = project_text(found, by_hand, tables)
    if not dry_run:
        write_result(text, str(directory / NAME), force=force)
        click.echo(f"wrote {directory / NAME}", err=True)
    click.echo(text, nl=False)
    for line in _takes(found):
        click.echo(line)
    return EXIT_OK


def _map(directory: Path, *, dry_run: bool) -> dict[str, str]:
    """The map of the storage classes that are there, written beside the project file."""
    from tracehint.adapters.project.classes import map_text
    from tracehint.collectors.hostinfo import host_name

    text = map_text(directory, host_name())
    if not text:
        return {}
    if not dry_run:
        write_result(text, str(directory / MAP), force=True)
    return {"map": f'map = "{MAP}"'}


def _takes(found: Discovered) -> list[str]:
    """What the store can and cannot take, and what comes next."""
    from tracehint.adapters.stores.registry import open_store

    store = open_store(found.store or "xattr")
    levels: dict[str, list[str]] = {"full": [], "approximate": [], "none": []}
    for row, said in store.capabilities().items():
        levels[said.level].append(row)
    lines = ["", f"{store.title}:"]
    words = {"full": "takes", "approximate": "takes nearly", "none": "cannot take"}
    lines += [f"  {words[level]}: {', '.join(rows)}" for level, rows in levels.items() if rows]
    if found.local:
        lines.append("  but this is a disk of one node: it keeps them, and nothing acts on them")
    disk = open_store("local") if found.local else store
    if disk.about.instead:
        lines.append(f"  instead: {disk.about.instead}")
    warning = store.about.warning(store.title)
    if warning:
        lines.append(f"  {warning}")
    if found.nodes:
        lines.append(f"  {found.why['nodes']}")
    if found.scheduler is not None:
        with_it = f"{found.scheduler.name}: jobs that COMMAND submits"
        how = " ".join(found.scheduler.submit)
        lines.append(f"  {with_it} ({how}) are recorded and have hints as well")
    return [*lines, "", f"Next: tracehint run -- {COMMANDS.get(found.engine, 'COMMAND')}"]
