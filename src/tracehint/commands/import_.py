"""`tracehint import`: make a bundle from logs that others recorded."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tracehint.commands._importers import IMPORTERS, Importer
from tracehint.commands._sources import sort_sources
from tracehint.errors import BundleError, InputError, TracehintError
from tracehint.schemas.arrow import skip_pandas
from tracehint.schemas.manifest import MANIFEST_NAME, Manifest
from tracehint.schemas.store import BundleWriter

if TYPE_CHECKING:
    from tracehint.schemas.store import Bundle


@click.command()
@click.argument("sources", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("-o", "--output", required=True, metavar="BUNDLE", type=click.Path(path_type=Path))
@click.option(
    "--from", "kind", type=click.Choice([i.name for i in IMPORTERS]),
    help="What the sources are. Default: recognised by their contents.",
)  # fmt: skip
@click.option(
    "--workflow", metavar="FILE", type=click.Path(path_type=Path),
    help="Workflow file or engine log whose declared tasks and files are joined.",
)  # fmt: skip
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
    _return_memory()
    refuse_existing(output, force=force)
    if workflow is not None and not workflow.exists():
        raise InputError(f"{workflow}: no such file or directory", "Check --workflow.")
    found = sort_sources(sources, kind)
    manifest = _run(found.importers(), output, force=force)
    if found.left_out:
        manifest.notes += found.notes()
        BundleWriter.append_to(output).write_manifest(manifest)
    if workflow is not None:
        _declare(output, workflow)
    if not quiet:
        for note in manifest.notes:
            click.echo(f"tracehint: {note}", err=True)
        if manifest.blind_to:
            click.echo(f"  cannot see: {', '.join(manifest.blind_to)}", err=True)
        click.echo(f"tracehint: wrote {click.format_filename(output)}", err=True)
        click.echo(f"  next: tracehint analyze {_quoted(output)}", err=True)
    return 0


def _return_memory() -> None:
    """Let Arrow use the system's allocator in this process: its own one keeps what was freed, which
    is half of the peak of a large import. Measured: no slower here."""
    import pyarrow as pa

    pa.set_memory_pool(pa.system_memory_pool())


def _declare(bundle: Path, workflow: Path) -> None:
    """Add what the workflow declares to the bundle that was just written."""
    from tracehint.commands._workflow import with_workflow
    from tracehint.schemas.store import segment_files

    joined = with_workflow(str(bundle), str(workflow))
    writer = BundleWriter.append_to(bundle)
    for name in ("declared_tasks", "declared_io"):
        there = segment_files(bundle, name)
        for path in there:
            path.unlink()  # its rows are among the joined ones
        if joined.tables[name].num_rows:
            writer.write_table(name, joined.tables[name])


def refuse_existing(output: Path, *, force: bool) -> None:
    """Say so before a long import and not after it."""
    if not output.exists():
        return
    if not (output / MANIFEST_NAME).exists() and (not output.is_dir() or any(output.iterdir())):
        raise BundleError(f"{output}: exists and is not a trace bundle", "Choose another name.")
    if (output / MANIFEST_NAME).exists() and not force:
        raise BundleError(f"{output}: exists", "Give --force to replace it, or another -o.")


def _run(work: list[tuple[Importer, list[Path]]], output: Path, *, force: bool) -> Manifest:
    """One importer writes the bundle itself; the results of several are joined."""
    from tracehint.collectors.join import join_manifests, join_tables
    from tracehint.schemas.store import read_bundle

    if len(work) == 1:
        importer, sources = work[0]
        return importer.run(sources, output, force=force)
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
        writer = BundleWriter(output, force=force)
        for name, table in join_tables([b.tables for b in bundles]).items():
            if len(table):
                writer.write_table(name, table)
        manifest.notes += problems
        writer.write_manifest(manifest)
        return manifest


def _only_declared(bundles: list[Bundle]) -> None:
    """What a graph alone cannot see, the logs beside it did; its placed times say nothing then."""
    from tracehint.adapters.engines.graphs import NOTHING_OBSERVED
    from tracehint.commands._workflow import without_times

    if not any(b.tables["processes"].num_rows for b in bundles):
        return
    for bundle in bundles:
        if not bundle.tables["processes"].num_rows:
            if "start_times" in bundle.manifest.blind_to:
                bundle.tables["declared_tasks"] = without_times(bundle.tables["declared_tasks"])
            bundle.manifest.blind_to = []
            bundle.manifest.notes = [n for n in bundle.manifest.notes if n != NOTHING_OBSERVED]


def _quoted(path: Path) -> str:
    import shlex

    return shlex.quote(str(path))
