"""`tracehint import`: make a bundle from logs that others recorded."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tracehint.commands._importers import IMPORTERS, Importer
from tracehint.errors import BundleError, InputError, TracehintError
from tracehint.schemas.arrow import skip_pandas
from tracehint.schemas.manifest import MANIFEST_NAME, Manifest
from tracehint.schemas.store import RAW_DIR

if TYPE_CHECKING:
    from tracehint.schemas.store import Bundle

_HEAD = 1 << 16
_SNIFF_FILES = 64  # of a directory


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
    sorted_out = sort_sources(sources, kind)
    manifest = _run(sorted_out, output, force=force)
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
    from tracehint.schemas.store import BundleWriter, segment_files

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


def sort_sources(sources: Sequence[Path], kind: str | None) -> list[tuple[Importer, list[Path]]]:
    """Which importer reads which source. Raises InputError for what nobody reads."""
    chosen: dict[str, list[Path]] = {}
    unknown: list[str] = []
    for source in sources:
        if not os.path.lexists(source):
            raise InputError(f"{source}: no such file or directory", "Check the path.")
        name = kind or recognise(source)
        if name is None:
            unknown.append(str(source))
        else:
            chosen.setdefault(name, []).append(source)
    if not chosen:
        known = ", ".join(f"{i.name} ({i.text})" for i in IMPORTERS)
        raise InputError(
            f"{', '.join(unknown[:3])}: not a log that tracehint knows",
            f"Known are: {known}. Say which with --from.",
        )
    for text in unknown:
        click.echo(f"tracehint: left out: {text}: not a log that tracehint knows", err=True)
    return [(i, chosen[i.name]) for i in IMPORTERS if i.name in chosen]


def recognise(source: Path) -> str | None:
    """The name of the importer that understands the file, or files of the directory.

    A directory may hold other things beside its logs: the first importer of the table wins.
    """
    if (source / RAW_DIR).is_dir():
        source = source / RAW_DIR
    paths = [source]
    if source.is_dir():
        paths = []
        for base, folders, names in os.walk(source):
            folders.sort()
            paths += [Path(base) / n for n in sorted(names)]
            if len(paths) >= _SNIFF_FILES:
                break
    heads = [(path, head) for path in paths[:_SNIFF_FILES] if (head := _head_of(path)) is not None]
    for importer in IMPORTERS:
        if any(importer.recognises(path, head) for path, head in heads):
            return importer.name
    return None


def _head_of(path: Path) -> bytes | None:
    """The first bytes of a file; None when it cannot be read."""
    try:
        with path.open("rb") as stream:
            return stream.read(_HEAD)
    except OSError:
        return None


def _run(work: list[tuple[Importer, list[Path]]], output: Path, *, force: bool) -> Manifest:
    """One importer writes the bundle itself; the results of several are joined."""
    from tracehint.collectors.join import join_manifests, join_tables
    from tracehint.schemas.store import BundleWriter, read_bundle

    if len(work) == 1:
        importer, sources = work[0]
        return importer.run(sources, output, force=force)
    with tempfile.TemporaryDirectory(prefix="tracehint-") as folder:
        bundles = []
        for importer, sources in work:
            part = Path(folder) / importer.name
            try:
                importer.run(sources, part, force=False)
            except TracehintError as error:
                click.echo(f"tracehint: left out: {error}", err=True)
                continue
            bundles.append(read_bundle(part))
        if not bundles:
            raise InputError("none of the sources could be read", "See the messages above.")
        _only_declared(bundles)
        manifest = join_manifests([b.manifest for b in bundles])
        writer = BundleWriter(output, force=force)
        for name, table in join_tables([b.tables for b in bundles]).items():
            if len(table):
                writer.write_table(name, table)
        writer.write_manifest(manifest)
        return manifest


def _only_declared(bundles: list[Bundle]) -> None:
    """What a graph alone cannot see, the logs beside it did; its placed times say nothing then."""
    from tracehint.commands._workflow import without_times

    if not any(b.tables["processes"].num_rows for b in bundles):
        return
    for bundle in bundles:
        if not bundle.tables["processes"].num_rows:
            if "start_times" in bundle.manifest.blind_to:
                bundle.tables["declared_tasks"] = without_times(bundle.tables["declared_tasks"])
            bundle.manifest.blind_to = []


def _quoted(path: Path) -> str:
    import shlex

    return shlex.quote(str(path))
