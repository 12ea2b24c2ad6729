"""`tracehint locate`: ask the store on which nodes files lie."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tracehint.commands._stores import require_store, store_options
from tracehint.errors import EXIT_FINDINGS, EXIT_OK, UsageError

if TYPE_CHECKING:
    from tracehint.adapters.stores.base import Locator


@click.command()
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
@store_options(required=True)
@click.option("--format", "fmt", type=click.Choice(["text", "json"]), default="text")
def command(
    files: tuple[Path, ...], store: str, prefix: str | None, places: Path | None, fmt: str
) -> int:
    """Print the nodes that hold each of FILES, as the store reports them.

    Exits with 1 when the store does not say for some file.

    Example: tracehint locate --store moosefs /mnt/mfs/out/*.fits
    """
    from tracehint.adapters.stores.base import Locator
    from tracehint.hintgen.escape import text
    from tracehint.hintgen.pathtext import to_text

    chosen = require_store(store, prefix, places)
    if not isinstance(chosen, Locator):
        raise UsageError(
            f"the store {chosen.name} cannot tell where files lie",
            "Use a store with a location attribute or tool (docs/reference/stores.md).",
        )
    rows = [_row(chosen, path) for path in files]
    if fmt == "json":
        data = [{**row, "path": to_text(os.fsencode(row["path"]))} for row in rows]
        click.echo(json.dumps({"schema": "tracehint.locate/1", "files": data}, indent=1))
    else:
        for row in rows:
            shown = ", ".join(map(text, row["nodes"])) or f"unknown ({row['problem']})"
            click.echo(f"{text(os.fsencode(row['path']))}: {shown}")
    return EXIT_FINDINGS if any(not row["nodes"] for row in rows) else EXIT_OK


def _row(store: Locator, path: Path) -> dict[str, Any]:
    """One file: its nodes, or why they are unknown."""
    row: dict[str, Any] = {"path": str(path), "nodes": [], "detail": {}, "problem": ""}
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError as error:
        return {**row, "problem": error.strerror}
    try:
        found = store.locate(fd)
    except OSError as error:
        return {**row, "problem": error.strerror or "error"}
    finally:
        os.close(fd)
    if found is None:
        return {**row, "problem": "the store does not say"}
    return {**row, "nodes": list(found.nodes), "detail": dict(found.detail)}
