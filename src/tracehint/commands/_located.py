"""After a recording: where its files lie goes into the bundle, where the store can tell."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tracehint.collectors.run import told, working_directory
from tracehint.hintgen.text.units import plural

if TYPE_CHECKING:
    from tracehint.adapters.stores.base import Locator

_UNREAD = ("extents", "metadata_ops", "attributes", "marks", "names")


def project_locator() -> Locator | None:
    """The store of tracehint.toml here, where it can tell places. Raises TracehintError."""
    from tracehint.adapters.project.config import find_config

    config = find_config(working_directory())
    if config is None or "store" not in config.values:
        return None
    places = config.values.get("map")
    return locator(config.values["store"], None, Path(places) if places else None)


def locator(store: str, prefix: str | None, places: Path | None) -> Locator | None:
    """The store of that name, where it can tell places. Raises TracehintError."""
    from tracehint.adapters.stores.base import Locator
    from tracehint.adapters.stores.registry import open_store

    chosen = open_store(store, prefix=prefix, places=places)
    return chosen if isinstance(chosen, Locator) else None


def note_locations(
    bundle: Path, store: Locator | None, roots: tuple[str, ...], host_id: str, *, quiet: bool
) -> None:
    """Ask the store and write what it says; nothing that goes wrong here ends the command."""
    if store is None:
        return
    with told("The recording itself is whole."):
        from tracehint.adapters.located import locations
        from tracehint.collectors.hostinfo import host_name
        from tracehint.schemas.store import read_bundle

        run = read_bundle(bundle, without=_UNREAD)
        places = [os.fsencode(os.path.realpath(root)) for root in roots or (".",)]
        found = locations(run, store, places, host_name(host_id))
        if found.rows:
            _add(bundle, found.rows)
        left = found.files - found.gone - found.elsewhere - found.asked
        if found.rows and left and not quiet:
            said = f"the store was not asked where {plural(left, 'file')} lie"
            click.echo(f"tracehint: {said} (too many, or too slow)", err=True)


def _add(bundle: Path, rows: list[dict[str, Any]]) -> None:
    """The rows, beside those of the table that are there."""
    from tracehint.schemas.manifest import read_manifest
    from tracehint.schemas.store import table_from_rows
    from tracehint.schemas.writer import BundleWriter

    writer, manifest = BundleWriter.append_to(bundle), read_manifest(bundle)
    there = manifest.rows.get("attributes", 0)
    writer.write_table("attributes", table_from_rows("attributes", rows), segment=1 if there else 0)
    manifest.rows = {**manifest.rows, "attributes": there + len(rows)}
    writer.write_manifest(manifest)
