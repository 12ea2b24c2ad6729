"""`tracehint import`: make a bundle from logs that others recorded.

Adding a source is one line in IMPORTERS.
"""

from __future__ import annotations

import hashlib
import importlib
import os
import re
import shlex
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tracehint.app.workflow_graph import check_workflow, declare, without_times
from tracehint.commands._options import joined_workflow_option
from tracehint.errors import InputError, TracehintError
from tracehint.progress import stage
from tracehint.schemas.arrow import skip_pandas
from tracehint.schemas.manifest import MANIFEST_NAME, Manifest
from tracehint.schemas.recovery import RAW_DIR
from tracehint.schemas.writer import BundleWriter, refuse_existing, whole_bundle, write_bundle

if TYPE_CHECKING:
    from tracehint.schemas.store import Bundle


Import = Callable[..., Manifest]


@dataclass(frozen=True)
class Importer:
    """A source of bundles: how it is recognised and which function reads it.

    `recognises(path, head)` gets a file and its first 64 KiB. The function has the
    signature (sources: Sequence[Path], output: Path, *, force: bool) -> Manifest.
    """

    name: str
    text: str  # one line for --help
    recognises: Callable[[Path, bytes], bool]
    module: str
    function: str

    def run(self, sources: Sequence[Path], output: Path, *, force: bool) -> Manifest:
        """Read the sources, write the bundle."""
        reader: Import = getattr(importlib.import_module(self.module), self.function)
        return reader(sources, output, force=force)


def _strace(path: Path, head: bytes) -> bool:
    _ = path
    from tracehint.collectors.strace.importer import looks_like_strace

    return looks_like_strace(head)


def _darshan(path: Path, head: bytes) -> bool:
    _ = head
    return path.suffix == ".darshan"


def _graph(path: Path, head: bytes) -> bool:
    from tracehint.adapters.engines.graphs import recognises

    return recognises(path, head)


IMPORTERS: tuple[Importer, ...] = (
    Importer(
        "darshan",
        "Darshan logs",
        _darshan,
        "tracehint.collectors.darshan.importer",
        "import_darshan",
    ),
    Importer(
        "strace",
        "logs of strace -f or -ff",
        _strace,
        "tracehint.collectors.strace.importer",
        "import_strace",
    ),
    Importer(
        "graph",
        "graphs and logs of workflow engines, WfFormat",
        _graph,
        "tracehint.adapters.engines.graphs",
        "import_graphs",
    ),
)


_HEAD = 1 << 16
_SCHEMA_BYTES = 200  # bytes in which a JSON file of tracehint names its schema
_MAX_FILES = 2_000_000
_SHOWN = 5  # names of one reason
_UNKNOWN = "not a log that tracehint knows"
_LINK = "a symbolic link"
_OF_A_PROCESS = re.compile(r"\.\d{1,8}$")  # strace -ff: equal contents are two processes


@dataclass
class ImportSources:
    """The work of each importer, and by reason the files without an importer."""

    work: dict[str, list[Path]] = field(default_factory=dict)
    left_out: dict[str, list[str]] = field(default_factory=dict)
    unreadable: list[str] = field(default_factory=list)  # left-out files that may be logs

    def add(self, name: str, path: Path) -> None:
        """Assign `path` to the importer `name`."""
        self.work.setdefault(name, []).append(path)

    def leave(self, path: Path | str, reason: str) -> None:
        """Leave `path` out."""
        self.left_out.setdefault(reason, []).append(str(path))

    def fail(self, path: Path | str, error: OSError) -> None:
        """Leave `path` out as unreadable."""
        self.unreadable.append(str(path))
        self.leave(path, error.strerror or "cannot be read")

    def importers(self) -> list[tuple[Importer, list[Path]]]:
        """Return importers and their paths, in the order of IMPORTERS."""
        return [(i, self.work[i.name]) for i in IMPORTERS if i.name in self.work]

    def notes(self) -> list[str]:
        """One line per reason."""
        lines = []
        for reason, names in self.left_out.items():
            more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
            lines.append(f"left out: {', '.join(names[:_SHOWN])}{more}: {reason}")
        return lines


def sort_sources(sources: Sequence[Path], kind: str | None) -> ImportSources:
    """Sort files, and the files of directories. Raises InputError when no importer reads any."""
    found = ImportSources()
    for source in sources:
        if not os.path.lexists(source):
            raise InputError(f"{source}: no such file or directory", "Check the path.")
        if kind is not None:
            found.add(kind, source)
        elif source.is_dir():
            _refuse_bundle(source)
            _sort_directory(source / RAW_DIR if (source / RAW_DIR).is_dir() else source, found)
        else:
            _sort_file(source, str(source), found)
    if kind is None:
        _remove_copies(found)
    if not found.work:
        known = ", ".join(f"{i.name} ({i.text})" for i in IMPORTERS)
        reasons = "; ".join(n.removeprefix("left out: ") for n in found.notes()[:3])
        given = ", ".join(map(str, sources[:3]))
        raise InputError(
            f"{given}: nothing to import: {reasons or 'no files in it'}",
            f"Supported: {known}. Name one with --from.",
        )
    return found


def _refuse_bundle(folder: Path) -> None:
    """Raise InputError for a complete bundle, which needs no importer."""
    if (folder / MANIFEST_NAME).is_file() and not (folder / RAW_DIR).is_dir():
        name = shlex.quote(str(folder))
        raise InputError(
            f"{folder}: is already a trace bundle",
            f"Analyse it: tracehint analyze {name}. Join several: tracehint merge",
        )


def _sort_directory(folder: Path, found: ImportSources) -> None:
    """Add an engine's directory as one source, and recorders' logs in it as further ones."""
    from tracehint.adapters.engines.graphs import sniff

    whole = sniff(folder) is not None
    if whole:
        found.add("graph", folder)
    for count, path in enumerate(_walk(folder, found)):
        if count >= _MAX_FILES:
            raise InputError(f"{folder}: more than {_MAX_FILES:,} files", "Import a part of it.")
        _sort_file(path, os.fspath(path.relative_to(folder)), found, of_engine=whole)


def _walk(folder: Path, found: ImportSources) -> Iterator[Path]:
    def failed(error: OSError) -> None:
        found.fail(str(error.filename), error)

    for base, folders, names in os.walk(folder, onerror=failed):
        folders.sort()
        for name in folders:
            if (Path(base) / name).is_symlink():
                found.leave(os.path.relpath(os.path.join(base, name), folder), _LINK)  # noqa: PTH118
        yield from (Path(base) / name for name in sorted(names))


def _sort_file(path: Path, name: str, found: ImportSources, *, of_engine: bool = False) -> None:
    if path.is_symlink() and name != str(path):
        return found.leave(name, _LINK)
    if not path.is_file():
        return found.leave(name, "not a regular file")
    try:
        with path.open("rb") as stream:
            head = stream.read(_HEAD)
    except OSError as error:
        return found.fail(name, error)
    if not head:
        return found.leave(name, "empty")
    if b'"tracehint.' in head[:_SCHEMA_BYTES]:
        return found.leave(name, "written by tracehint itself, not a log")
    for importer in IMPORTERS:
        if importer.recognises(path, head):
            if importer.name == "graph" and of_engine:
                return None  # read as a part of its directory
            return found.add(importer.name, path)
    return None if of_engine else found.leave(name, _UNKNOWN)


def _remove_copies(found: ImportSources) -> None:
    """Remove copies, and files that are read together with another one."""
    from tracehint.adapters.engines.graphs import companions

    for name, paths in found.work.items():
        kept = list(dict.fromkeys(paths))
        for copy, first in copies(kept).items():
            found.leave(copy, f"a copy of {first}")
            kept.remove(copy)
        if name == "graph":
            beside = companions(kept)
            kept = [p for p in kept if p not in beside]
        found.work[name] = kept


def copies(paths: Sequence[Path]) -> dict[Path, Path]:
    """Map each file with the contents of an earlier one to that one. Only files of equal size are
    read, and none whose name ends in a process number."""
    sizes: dict[int, list[Path]] = {}
    for path in paths:
        if path.is_file() and not _OF_A_PROCESS.search(path.name):
            sizes.setdefault(path.stat().st_size, []).append(path)
    found: dict[Path, Path] = {}
    for same in sizes.values():
        seen: dict[bytes, Path] = {}
        for path in same if len(same) > 1 else []:
            try:
                with path.open("rb") as stream:
                    digest = hashlib.file_digest(stream, "sha256").digest()
            except OSError:
                continue  # its importer reports it
            if seen.setdefault(digest, path) is not path:
                found[path] = seen[digest]
    return found


@click.command()
@click.argument("sources", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("-o", "--output", required=True, metavar="BUNDLE", type=click.Path(path_type=Path))
@click.option(
    "--from",
    "kind",
    type=click.Choice([i.name for i in IMPORTERS]),
    help="What the sources are. Default: recognised by their contents.",
)
@joined_workflow_option
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
            manifest = _run_importers(found.importers(), made)
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


def _run_importers(work: list[tuple[Importer, list[Path]]], output: Path) -> Manifest:
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
        _clear_graph_limits(bundles)
        manifest = join_manifests([b.manifest for b in bundles])
        manifest.notes += problems
        joined = Bundle(output, manifest, join_tables([b.tables for b in bundles]))
        add_losses(joined, [("unreadable_log", 1, text) for text in problems])
        write_bundle(BundleWriter(output), joined.tables, manifest)
        return manifest


def add_unreadable(writer: BundleWriter, manifest: Manifest, names: list[str]) -> None:
    """Add sources that could not be read to the losses of an existing bundle."""
    from tracehint.schemas.store import losses_table, segment_files

    if names:
        table = losses_table(manifest, [("unreadable_log", 1, name) for name in names])
        writer.write_table("losses", table, segment=len(segment_files(writer.path, "losses")))


def _clear_graph_limits(bundles: list[Bundle]) -> None:
    """Clear blind spots and placed times of graphs, if other sources observed processes."""
    from tracehint.adapters.engines.graphs import NOTHING_OBSERVED

    if not any(b.tables["processes"].num_rows for b in bundles):
        return
    for bundle in bundles:
        if not bundle.tables["processes"].num_rows:
            if "start_times" in bundle.manifest.blind_to:
                bundle.tables["declared_tasks"] = without_times(bundle.tables["declared_tasks"])
            bundle.manifest.blind_to = []
            bundle.manifest.notes = [n for n in bundle.manifest.notes if n != NOTHING_OBSERVED]
