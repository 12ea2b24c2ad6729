"""`tracehint init`: find engine, store and nodes, and write them down as defaults."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from tracehint.adapters.engines.registry import ENGINES
from tracehint.app.output import write_result
from tracehint.errors import EXIT_OK

if TYPE_CHECKING:
    from tracehint.adapters.project.discover import Discovered

MAP = "tracehint.map.toml"


@click.command()
@click.argument(
    "directory", type=click.Path(exists=True, file_okay=False, path_type=Path), default="."
)
@click.option("--force", is_flag=True, help="Replace tracehint.toml; its tables stay.")
@click.option("--dry-run", is_flag=True, help="Print what was found; write nothing.")
def command(directory: Path, force: bool, dry_run: bool) -> int:
    """Find the engine, store and nodes of the workflow in DIRECTORY (here); write tracehint.toml.

    All commands that are typed in that directory take their defaults from it. Prints what
    the store can and cannot take. Nothing is run.

    Example: tracehint init
    """
    from tracehint.adapters.project.config import NAME, kept_from
    from tracehint.adapters.project.discover import (
        NODE_PLACES,
        commands_for,
        discover,
        project_text,
    )

    found = discover(directory)
    old = directory / NAME
    by_hand, tables = kept_from(old) if old.is_file() else ({}, "")
    if found.store in NODE_PLACES and "map" not in by_hand:
        by_hand |= _map(found.store, directory, dry_run=dry_run)
    text = project_text(found, by_hand, tables)
    if not dry_run:
        write_result(text, str(directory / NAME), force=force)
        click.echo(f"wrote {directory / NAME}", err=True)
    click.echo(text, nl=False)
    lines = _describe_store(found)
    if found.store in NODE_PLACES and "map" not in by_hand:
        lines[-2:-2] = [f"  {line}" for line in commands_for(found.store, _nodes())]
    for line in lines:
        click.echo(line)
    return EXIT_OK


def _nodes() -> list[str]:
    """Where tasks will run: the nodes of the allocation or of the batch system, else this one."""
    from tracehint.adapters.place.allocation import allocated_hosts
    from tracehint.adapters.place.submissions import batch_nodes
    from tracehint.collectors.hostinfo import host_name

    return [host.name for host in allocated_hosts() or batch_nodes()] or [host_name()]


def _map(store: str, directory: Path, *, dry_run: bool) -> dict[str, str]:
    """Write a map of the store's classes or pools; return its line of the project file."""
    from tracehint.adapters.project.discover import map_text

    text = map_text(store, directory, _nodes())
    if not text:
        return {}
    if not dry_run:
        write_result(text, str(directory / MAP), force=True)
    return {"map": f'map = "{MAP}"'}


def _describe_store(found: Discovered) -> list[str]:
    """Return lines on what the store supports, and the next command."""
    from tracehint.adapters.stores.registry import open_store

    store = open_store(found.store or "xattr")
    levels: dict[str, list[str]] = {"full": [], "approximate": [], "none": []}
    for row, support in store.capabilities().items():
        levels[support.level].append(row)
    lines = ["", f"{store.title}:"]
    words = {"full": "supports", "approximate": "approximates", "none": "does not support"}
    lines += [f"  {words[level]}: {', '.join(rows)}" for level, rows in levels.items() if rows]
    if found.local:
        lines.append("  but this is a disk of one node: it stores hints and does not act on them")
    disk = open_store("local") if found.local else store
    if disk.about.instead:
        lines.append(f"  instead: {disk.about.instead}")
    warning = store.about.warning(store.title)
    if warning:
        lines.append(f"  {warning}")
    if "ignored" in found.why:
        lines.append(f"  {found.why['ignored']}")
    if found.nodes:
        lines.append(f"  {found.why['nodes']}")
    if found.scheduler is not None:
        with_it = f"{found.scheduler.name}: jobs that COMMAND submits"
        how = " ".join(found.scheduler.submit)
        lines.append(f"  {with_it} ({how}) are also recorded and have hints")
    start = ENGINES[found.engine].start_line(found.workflow) if found.engine else ""
    return [*lines, "", f"Next: tracehint run -- {start or 'COMMAND'}"]
