"""What `run` does around the command: rules into a table before it, the journal read after it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tracehint.collectors.run import told
from tracehint.errors import UsageError

if TYPE_CHECKING:
    import pyarrow as pa

    from tracehint.adapters.creation.launch import Switched
    from tracehint.adapters.creation.resolution import Resolution
    from tracehint.adapters.plan import Paths
    from tracehint.adapters.stores.base import Store


@dataclass(frozen=True)
class Wanted:
    """The options of the command line that say which hints are set where."""

    hints: Path | None
    store: str | None
    prefix: str | None
    places: Path | None
    like: Path | None
    nodes: int | None
    roots: tuple[str, ...]


@dataclass(frozen=True)
class Hinted:
    """A command's run with hints; without `switched` it has none."""

    resolution: Resolution
    store: Store
    roots: list[bytes]
    switched: Switched

    @property
    def environment(self) -> dict[str, str]:
        """What switches the tagger on."""
        return self.switched.environment

    def tell(self, bundle: Path | None, host: str, *, quiet: bool) -> None:
        """After the run: what was set goes into the bundle, and in words to standard error."""
        with told("The recording itself is whole."):
            self._tell(bundle, host, quiet=quiet)

    def _tell(self, bundle: Path | None, host: str, *, quiet: bool) -> None:
        from tracehint.adapters.creation.told import first_reasons, settings_table, summary
        from tracehint.collectors.hostinfo import host_name

        journal = self.switched.journal()
        table = settings_table(journal, self.resolution, self.store, self.roots, host_name(host))
        if bundle is not None and table.num_rows:
            _add(bundle, table)
        for line in [] if quiet else [*summary(journal), *first_reasons(table)]:
            click.echo(f"tracehint: {line}", err=True)


@contextmanager
def prepared(wanted: Wanted) -> Iterator[Hinted]:
    """The rules compiled and the tagger switched on. Raises TracehintError before the run."""
    from tracehint.adapters.creation.compile import compile_rules
    from tracehint.adapters.creation.launch import switched_on
    from tracehint.adapters.creation.resolution import resolution_of
    from tracehint.adapters.stores.registry import open_store
    from tracehint.hintgen.hints.hintfile import load

    if wanted.hints is None:
        raise UsageError("no hints given", "Add --hints FILE (`tracehint profile` writes one).")
    hints = load(wanted.hints)
    store = open_store(wanted.store or "xattr", prefix=wanted.prefix, places=wanted.places)
    roots = [os.fsencode(Path(root).resolve()) for root in wanted.roots or (".",)]
    resolution = resolution_of(hints, _known(wanted.like), wanted.nodes)
    compiled = compile_rules(resolution, store, roots)
    with switched_on(compiled, Path.cwd()) as switched:
        yield Hinted(resolution, store, roots, switched)


def _known(like: Path | None) -> Paths | None:
    """The files of a recorded run."""
    from tracehint.adapters.learned import run_paths
    from tracehint.adapters.plan import Paths

    if like is None:
        return None
    run = run_paths(like)
    return Paths(files=(), declared=run.files, known=run.known)


def _add(bundle: Path, table: pa.Table) -> None:
    """The table `settings`, into a bundle that was just written."""
    from tracehint.schemas.manifest import read_manifest
    from tracehint.schemas.store import BundleWriter

    writer = BundleWriter.append_to(bundle)
    writer.write_table("settings", table)
    manifest = read_manifest(bundle)
    manifest.rows = {**manifest.rows, "settings": table.num_rows}
    writer.write_manifest(manifest)
