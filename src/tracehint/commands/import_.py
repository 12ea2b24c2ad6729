"""`tracehint import`: make a bundle from logs that others recorded."""

from __future__ import annotations

import shlex
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tracehint.commands._importers import IMPORTERS, Importer
from tracehint.commands._sources import sort_sources
from tracehint.commands._stage_line import stage
from tracehint.commands._workflow import check_workflow, declare, without_times
from tracehint.errors import InputError, TracehintError
from tracehint.schemas.arrow import skip_pandas
from tracehint.schemas.manifest import Manifest
from tracehint.schemas.writer import BundleWriter, whole_bundle
from tracehint.schemas.writing import refuse_existing, write_bundle

if TYPE_CHECKING:
    from tracehint.schemas.store import Bundle


@click.command()
@click.argument("sources", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("-o", "--output", required=True, metavar="BUNDLE", type=click.Path(path_type=Path))
@click.option(
    "--from",
    "kind",
    type=click.Choice([i.name for i in IMPORTERS]),
    help="What the sources are. Default: recognised by their contents.",
)
@click.option(
    "--workflow",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Workflow file or engine log whose declared tasks and files are joined.",
)
@click.option("--force", is_flag=True, help="Replace an existing bundle.")
@click.option("--quiet", is_flag=True, help="Print errors only.")
def command(
    sources: tuple[Path, ...],
    output: Path,
    kind: str | None,
    workflow: Path | None,
    force: bool,
    quiet: bool,
) -> int:
    """Make a bundle of SOURCES: log files, or directories of them.

    What cannot be read is listed and left out. 0: something was usable;
    2: nothing was.

    Example: tracehint import strace.log -o run.trace
    """
    skip_pandas()
    refuse_existing(output, force=force)
    if workflow is not None:
        check_workflow(workflow)
    found = sort_sources(sources, kind)
    with whole_bundle(output, force=force) as made:
        with stage("importing"):
            manifest = _run(found.importers(), made)
        if found.left_out:
            manifest.notes += found.notes()
            writer = BundleWriter.append_to(made)
            add_unreadable(writer, manifest, found.unreadable)
            writer.write_manifest(manifest)
        if workflow is not None:
            declare(made, workflow)
    if not quiet:
        for note in manifest.notes:
            click.echo(f"tracehint: {note}", err=True)
        if manifest.blind_to:
            click.echo(f"  cannot see: {', '.join(manifest.blind_to)}", err=True)
        click.echo(f"tracehint: wrote {click.format_filename(output)}", err=True)
        click.echo(f"  next: tracehint analyze {shlex.quote(str(output))}", err=True)
    return 0


def _run(work: list[tuple[Importer, list[Path]]], output: Path) -> Manifest:
    """One importer writes the bundle itself; the results of several are joined."""
    from tracehint.collectors.join import join_manifests, join_tables
    from tracehint.schemas.store import Bundle, add_losses, read_bundle

    if len(work) == 1:
        importer, sources = work[0]
        return importer.run(sources, output, force=False)
    with tempfile.TemporaryDirectory(prefix="tracehint-") as folder:
        bundles: list[Bundle] = []
        problems: list[str] = []
        for importer, sources in work:
            part = Path(folder) / importer.name
            try:
                importer.run(sources, part, force=False)
            except TracehintError as error:
                problems.append(f"left out: {error.what}")
                continue
            bundles.append(read_bundle(part))
        if not bundles:
            raise InputError("none of the sources could be read", "\n  ".join(problems))
        _only_declared(bundles)
        manifest = join_manifests([b.manifest for b in bundles])
        manifest.notes += problems
        joined = Bundle(output, manifest, join_tables([b.tables for b in bundles]))
        add_losses(joined, [("unreadable_log", 1, text) for text in problems])
        write_bundle(BundleWriter(output), joined.tables, manifest)
        return manifest


def add_unreadable(writer: BundleWriter, manifest: Manifest, names: list[str]) -> None:
    """Sources that could not be read, as losses of the bundle that is there."""
    from tracehint.schemas.store import losses_table, segment_files

    if names:
        table = losses_table(manifest, [("unreadable_log", 1, name) for name in names])
        writer.write_table("losses", table, segment=len(segment_files(writer.path, "losses")))


def _only_declared(bundles: list[Bundle]) -> None:
    """What a graph alone cannot see, the logs beside it did; its placed times say nothing then."""
    from tracehint.adapters.engines.graphs import NOTHING_OBSERVED

    if not any(b.tables["processes"].num_rows for b in bundles):
        return
    for bundle in bundles:
        if not bundle.tables["processes"].num_rows:
            if "start_times" in bundle.manifest.blind_to:
                bundle.tables["declared_tasks"] = without_times(bundle.tables["declared_tasks"])
            bundle.manifest.blind_to = []
            bundle.manifest.notes = [n for n in bundle.manifest.notes if n != NOTHING_OBSERVED]
