"""The steps of `run` around its command: compile the rules before, read the journal after it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tracehint.collectors.run import report_failures
from tracehint.errors import UsageError
from tracehint.schemas.arrow import skip_pandas
from tracehint.schemas.plain import inside

if TYPE_CHECKING:
    from tracehint.adapters.creation.launch import Switched
    from tracehint.adapters.creation.resolution import Resolution
    from tracehint.adapters.paths import Paths
    from tracehint.adapters.stores.base import Store
    from tracehint.hintgen.hints.model import HintFile


_UNREAD = ("extents", "metadata_ops", "attributes", "marks")  # tables that are not read
READ_BACK_S = 10.0  # time budget for stores that are read through a tool


@dataclass(frozen=True)
class Wanted:
    """The command-line options that select the hints, the store and the data roots."""

    hints: Path | None
    store: str
    prefix: str | None
    places: Path | None
    like: Path | None
    nodes: int | None
    roots: tuple[str, ...]
    learned: tuple[HintFile, Paths] | None = None  # instead of a hint file


@dataclass(frozen=True)
class Hinted:
    """A command's run with hints; `switched`: the active tagger."""

    resolution: Resolution
    store: Store
    roots: list[bytes]
    switched: Switched

    @property
    def environment(self) -> dict[str, str]:
        """Environment variables that activate the tagger in the command."""
        return self.switched.environment

    def tell(self, bundle: Path | None, host: str, *, quiet: bool) -> int:
        """Add the settings made by the run to the bundle, and print a summary to stderr. Returns
        the number of files created below the data roots."""
        with report_failures("The recording itself is intact."):
            return self._report_settings(bundle, host, quiet=quiet)
        return 0

    def _report_settings(self, bundle: Path | None, host: str, *, quiet: bool) -> int:
        from tracehint.adapters.creation.outcome import (
            Renames,
            explain_lost_hints,
            made_in,
            read_back,
            summary,
            teller,
        )
        from tracehint.collectors.hostinfo import host_name
        from tracehint.hintgen.hints.hintfile import dump
        from tracehint.schemas.manifest import HINTS_NAME
        from tracehint.schemas.store import read_bundle

        journal = self.switched.journal()
        run = None
        if bundle is not None:
            skip_pandas()
            run = read_bundle(bundle, without=_UNREAD)
        tell = teller(self.resolution, self.store, self.roots, host_name(host))
        rows = tell.rows(journal)
        if run is not None:
            rows = tell.rows(journal, made_in(run, self.roots), Renames(run))
        unread = read_back(rows, self.store, READ_BACK_S)
        lost = [row for row in rows if row["state"] == "lost"]
        whys = (
            explain_lost_hints(run, {row["path"] for row in lost})
            if run is not None and lost
            else {}
        )
        for row in lost:
            row["why"] = whys.get(row["path"], row["why"])
        if bundle is not None:
            dump(self.resolution.hints, inside(bundle) / HINTS_NAME, force=True)
            _add(bundle, rows)
        for line in [] if quiet else summary(journal, rows, unread):
            click.echo(f"tracehint: {line}", err=True)
        return journal.counts["created"] - journal.counts["outside"]


@contextmanager
def prepared(wanted: Wanted) -> Iterator[Hinted]:
    """Compile the rules and activate the tagger. Raises TracehintError before the run."""
    from tracehint.adapters.creation.launch import require_mechanism, switched_on
    from tracehint.adapters.creation.resolution import resolution_of
    from tracehint.adapters.creation.rule_table import compile_rules
    from tracehint.adapters.stores.registry import open_store
    from tracehint.hintgen.hints.hintfile import load

    paths: Paths | None
    if wanted.learned is not None:
        hints, paths = wanted.learned
    elif wanted.hints is not None:
        hints, paths = load(wanted.hints), _known_files(wanted.like)
    else:
        raise UsageError("no hints given", "Add --hints FILE (`tracehint profile` writes one).")
    if hints.rules:  # they are matched with numpy
        skip_pandas()
    require_mechanism()
    store = open_store(wanted.store, prefix=wanted.prefix, places=wanted.places)
    roots = [os.fsencode(Path(root).resolve()) for root in wanted.roots or (".",)]
    resolution = resolution_of(hints, paths, wanted.nodes)
    compiled = compile_rules(resolution, store, roots)
    with switched_on(compiled, Path.cwd()) as switched:
        yield Hinted(resolution, store, roots, switched)


def _known_files(like: Path | None) -> Paths | None:
    """Return the files of a recorded run; None if no run was named."""
    from tracehint.adapters.paths import Paths, run_paths

    if like is None:
        return None
    skip_pandas()
    run = run_paths(like)
    return Paths(files=(), declared=run.files, known=run.known)


def _add(bundle: Path, rows: list[dict[str, Any]]) -> None:
    """Add the table `settings` to a bundle that was just written."""
    from tracehint.schemas.manifest import read_manifest
    from tracehint.schemas.store import table_from_rows
    from tracehint.schemas.writer import BundleWriter

    writer = BundleWriter.append_to(bundle)
    writer.write_table("settings", table_from_rows("settings", rows))
    manifest = read_manifest(writer.path.inside)
    manifest.rows = {**manifest.rows, "settings": len(rows)}
    writer.write_manifest(manifest)
