"""`tracehint locate`: query the store for file locations."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tracehint.app.stores import require_locator
from tracehint.commands._stores import store_options
from tracehint.errors import EXIT_FINDINGS, EXIT_OK

if TYPE_CHECKING:
    from tracehint.adapters.stores.base import Location, Locator

FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
BATCH = 256  # open descriptors at a time


@click.command()
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
@store_options(required=True)
@click.option("--format", "fmt", type=click.Choice(["text", "json"]), default="text")
def command(
    files: tuple[Path, ...], store: str, prefix: str | None, places: Path | None, fmt: str
) -> int:
    """Print the nodes that hold each of FILES, as the store reports them.

    Exits with 1 when the store does not report the nodes of some file.

    Example: tracehint locate --store moosefs /mnt/mfs/out/*.fits
    """
    from tracehint.hintgen.hints.pathtext import to_text
    from tracehint.hintgen.text.escape import text

    chosen = require_locator(store, prefix, places)
    rows = [
        row for at in range(0, len(files), BATCH) for row in _rows(chosen, files[at : at + BATCH])
    ]
    if fmt == "json":
        data = [{**row, "path": to_text(os.fsencode(row["path"]))} for row in rows]
        click.echo(json.dumps({"schema": "tracehint.locate/1", "files": data}, indent=1))
    else:
        for row in rows:
            shown = ", ".join(map(text, row["nodes"])) or f"unknown ({row['problem']})"
            click.echo(f"{text(os.fsencode(row['path']))}: {shown}")
    return EXIT_FINDINGS if any(not row["nodes"] for row in rows) else EXIT_OK


def _rows(store: Locator, files: tuple[Path, ...]) -> list[dict[str, Any]]:
    """Return one row per file, with a single query if the store supports that."""
    from contextlib import ExitStack

    from tracehint.adapters.stores.base import BatchLocator

    if isinstance(store, BatchLocator) and len(files) > 1:
        try:
            with ExitStack() as opened:
                fds = []
                for path in files:
                    fds.append(os.open(path, FLAGS))
                    opened.callback(os.close, fds[-1])
                found = store.locate_all(fds)
        except OSError:
            found = []  # one file caused the error: query each one separately
        if found:
            return [_location_row(path, place) for path, place in zip(files, found, strict=True)]
    return [_row(store, path) for path in files]


def _row(store: Locator, path: Path) -> dict[str, Any]:
    """One file: its nodes, or why they are unknown."""
    from tracehint.adapters.stores.base import NameLocator

    row: dict[str, Any] = {"path": str(path), "nodes": [], "detail": {}, "problem": ""}
    if isinstance(store, NameLocator) and not store.mounted:
        try:
            return _location_row(path, store.locate_name(str(path)))
        except OSError as error:
            return {**row, "problem": error.strerror or "error"}
    try:
        fd = os.open(path, FLAGS)
    except OSError as error:
        return {**row, "problem": error.strerror}
    try:
        found = store.locate(fd)
    except OSError as error:
        return {**row, "problem": error.strerror or "error"}
    finally:
        os.close(fd)
    return _location_row(path, found)


def _location_row(path: Path, found: Location | None) -> dict[str, Any]:
    if found is None:
        return {
            "path": str(path),
            "nodes": [],
            "detail": {},
            "problem": "the store does not report it",
        }
    detail = dict(found.detail)
    return {"path": str(path), "nodes": list(found.nodes), "detail": detail, "problem": ""}
