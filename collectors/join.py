"""Joining of the tables and manifests of several recordings: identifiers renumbered, hosts kept."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tracehint.collectors import clocks
from tracehint.collectors.clocks import FileTimes, note_distant_logs, one_file_each, uses
from tracehint.errors import BundleError, TracehintError
from tracehint.schemas.manifest import Manifest, RecordingHost
from tracehint.schemas.recovery import RAW_DIR, SPOOL_DIR
from tracehint.schemas.store import one_ahead, segment_files
from tracehint.schemas.tables import TABLES

if TYPE_CHECKING:
    from tracehint.schemas.store import Bundle
    from tracehint.schemas.writer import BundleWriter


# identifier -> columns of the tables that hold it
IDENTIFIERS: dict[str, tuple[str, ...]] = {
    "proc": ("proc", "parent", "prev"),
    "file": ("file",),
    "open": ("open",),
    "seq": ("seq",),
}


@dataclass(frozen=True)
class BundlePart:
    """One of the bundles to join; `table` returns a table by its name."""

    path: Path
    manifest: Manifest
    problems: list[str]
    rows: dict[str, int]
    highest: dict[str, int]  # largest identifier of each kind in any table
    used: FileTimes  # per row of the table `files`
    table: Callable[[str], pa.Table]


def in_memory(bundle: Bundle) -> BundlePart:
    """Return a bundle as a part whose tables stay in memory."""
    return _make_part(bundle, bundle.tables.__getitem__)


def set_aside(bundle: Bundle, folder: Path) -> BundlePart:
    """Store the tables in a new directory; return the bundle as a part. Raises TracehintError."""
    try:
        folder.mkdir()
        for name, table in bundle.tables.items():
            _write_table_file(table, folder / name)
    except OSError as error:
        raise TracehintError(
            f"{folder.parent}: {bundle.path.name} cannot be buffered: {error.strerror or error}",
            "Set TMPDIR to a directory with more space.",
        ) from None
    return _make_part(bundle, lambda name: _read_table_file(folder / name))


def _make_part(bundle: Bundle, table: Callable[[str], pa.Table]) -> BundlePart:
    tables = bundle.tables
    return BundlePart(
        path=bundle.path,
        manifest=bundle.manifest,
        problems=bundle.problems,
        rows={name: found.num_rows for name, found in tables.items()},
        highest={key: highest(tables, key) for key in IDENTIFIERS},
        used=uses(tables["names"], tables["files"]),
        table=table,
    )


def highest(tables: dict[str, pa.Table], key: str) -> int:
    """Return the largest identifier in any table: a damaged bundle may lack its owner's row."""
    found = 0
    for table in tables.values():
        for column in IDENTIFIERS[key]:
            if column in table.schema.names and len(table):
                found = max(found, pc.max(table[column]).as_py() or 0)
    return found


def offset_identifiers(table: pa.Table, offsets: dict[str, int]) -> pa.Table:
    """Return the rows with their identifiers increased by the offsets."""
    for key, columns in IDENTIFIERS.items():
        for name in columns:
            index = table.schema.get_field_index(name)
            if index < 0 or not offsets[key]:
                continue
            values = pc.add(table[name], pa.scalar(offsets[key], pa.int64()))
            table = table.set_column(index, table.schema.field(index), values)
    return table


def offsets_of(parts: list[dict[str, int]]) -> list[dict[str, int]]:
    """Return the identifier offsets of each part: sums of the highest ones of previous parts."""
    found = [dict.fromkeys(IDENTIFIERS, 0)]
    for most in parts[:-1]:
        found.append({key: found[-1][key] + most[key] for key in IDENTIFIERS})
    return found


def _write_table_file(table: pa.Table, file: Path) -> None:
    if not table.num_rows:
        return
    options = pa.ipc.IpcWriteOptions(compression="lz4", use_threads=False)
    with (
        pa.OSFile(str(file), "wb") as sink,
        pa.ipc.new_file(sink, table.schema, options=options) as out,
    ):
        out.write_table(table)


def _read_table_file(file: Path) -> pa.Table:
    if not file.exists():
        return TABLES[file.name].empty_table()
    with pa.OSFile(str(file)) as source:
        return pa.ipc.open_file(source).read_all()


def join_tables(parts: Sequence[dict[str, pa.Table]]) -> dict[str, pa.Table]:
    """Concatenate the tables of all parts; identifiers of the second and later parts are offset."""
    if len(parts) == 1:
        return parts[0]
    offsets = offsets_of([{key: highest(part, key) for key in IDENTIFIERS} for part in parts])
    pairs = list(zip(parts, offsets, strict=True))
    return {
        name: pa.concat_tables([offset_identifiers(p[name], by) for p, by in pairs])
        for name in TABLES
    }


def join_manifests(manifests: Sequence[Manifest]) -> Manifest:
    """Join manifests: earliest start, latest end, first failure, all blind spots and notes."""
    ordered = sorted(manifests, key=lambda m: m.started_ns or 1 << 62)
    first = ordered[0]
    ends = [m.ended_ns for m in ordered]
    statuses = [m.exit_status for m in ordered]
    collectors = list(dict.fromkeys(m.collector for m in ordered))
    notes = [n for m in ordered for n in m.notes]
    notes += filter(None, [note_distant_logs([(m.started_ns, m.ended_ns) for m in ordered])])
    return Manifest(
        format=first.format,
        program=first.program,
        collector=",".join(collectors),
        command=first.command,
        cwd=first.cwd,
        started_ns=first.started_ns,
        ended_ns=None if None in ends else max(e for e in ends if e is not None),
        exit_status=None if None in statuses else next((s for s in statuses if s), 0),
        complete=all(m.complete for m in ordered),
        hosts=_hosts(ordered),
        data_roots=list(dict.fromkeys(r for m in ordered for r in m.data_roots)),
        blind_to=list(dict.fromkeys(b for m in ordered for b in m.blind_to)),
        notes=list(dict.fromkeys(notes)),
        redacted_args=sum(m.redacted_args for m in ordered),
        parts=list(dict.fromkeys(i for m in ordered for i in m.parts or [m.recording] if i)),
        kept_args=any(m.kept_args for m in ordered),
        no_args=any(m.no_args for m in ordered),
    )


def _hosts(manifests: Sequence[Manifest]) -> list[RecordingHost]:
    """Return each host once, with all mounts of a host that appears several times."""
    found: dict[str, RecordingHost] = {}
    for host in (h for m in manifests for h in m.hosts):
        known = found.setdefault(host.name, host)
        if known is not host:
            known.mounts = known.mounts + [m for m in host.mounts if m not in known.mounts]
    return list(found.values())


# Tables of observed data; other tables may be added to a bundle later.
_OBSERVED = ("processes", "files", "names", "opens", "extents")


class Recorded(Protocol):
    """A bundle, or another record of its path and manifest."""

    @property
    def path(self) -> Path: ...

    @property
    def manifest(self) -> Manifest: ...


def recordings(bundle: Recorded) -> list[str]:
    """Return the identifiers of a bundle's recordings; for an older one a digest of its content."""
    manifest = bundle.manifest
    return manifest.parts or [manifest.recording or f"sha256:{_digest(bundle.path)}"]


def refuse_twice(bundles: Sequence[Recorded]) -> None:
    """Raise BundleError, naming both, if two bundles contain the same recording."""
    known: dict[str, Path] = {}
    for bundle in bundles:
        for identity in recordings(bundle):
            other = known.setdefault(identity, bundle.path)
            if other is not bundle.path:
                raise BundleError(
                    f"{other} and {bundle.path} contain the same recording ({identity})",
                    "Give each recording once: no copies, and no parts of a merged bundle.",
                )


def _digest(root: Path) -> str:
    files = [path for name in _OBSERVED for path in segment_files(root, name)]
    for folder in (SPOOL_DIR, RAW_DIR):
        files += sorted(p for p in (root / folder).glob("*") if p.is_file() and not p.is_symlink())
    total = hashlib.sha256()
    for path in files:
        total.update(f"{path.relative_to(root)}\0".encode("utf-8", "surrogateescape"))
        with path.open("rb") as stream:
            total.update(hashlib.file_digest(stream, "sha256").digest())
    return total.hexdigest()


BATCH_BYTES = 64 << 20  # bytes of a table to write at once, in whole parts


class Joined:
    """Several bundles as one. Only the table of files is kept in memory; other rows are streamed.

    `losses`: losses that no part records. Callers may add to it, to the manifest and to its notes.
    """

    def __init__(self, parts: Sequence[BundlePart]) -> None:
        self._parts = sorted(parts, key=lambda part: part.manifest.started_ns)
        self.manifest = join_manifests([part.manifest for part in self._parts])
        found = (identity for part in self._parts for identity in recordings(part))
        self.manifest.parts = list(dict.fromkeys(found))
        self.losses = TABLES["losses"].empty_table()
        self._offsets = offsets_of([part.highest for part in self._parts])
        self._shifts: dict[str, int] = {}
        files = pa.concat_tables(self._number_rows("files"))
        first, last = (np.concatenate([part.used[i] for part in self._parts]) for i in (0, 1))
        self._united = one_file_each(files, FileTimes(first, last))

    def writer(self, path: Path) -> BundleWriter:
        """Return a writer of the joined bundle, with the parts' settings for arguments."""
        from tracehint.schemas.writer import BundleWriter

        manifest = self.manifest
        return BundleWriter(path, keep_args=manifest.kept_args, no_args=manifest.no_args)

    def align(self) -> str:
        """Align the clocks of hosts that read a file before its creation; return a note on it."""
        self._shifts = clocks.corrections(batch_tables(self._number_rows("opens")), self.manifest)
        if not self._shifts:
            return ""
        text = clocks.statement(self._shifts)
        self.manifest.notes.append(text)
        return text

    def tables(self, name: str) -> Iterator[pa.Table]:
        """Yield the rows of a table, one piece per part; `files` in one piece."""
        if name == "files":
            yield self._united.files
            return
        for table in self._number_rows(name):
            yield clocks.shift_times(self._united.renumber_files(table), self._shifts)
        if name == "losses":
            yield self.losses

    def write(self, writer: BundleWriter) -> None:
        """Write the non-empty tables, and the manifest last. Raises BundleError."""
        self.manifest.rows = {}
        for name, segment, table in one_ahead(self._pieces()):
            writer.write_table(name, table, segment)
            self.manifest.rows[name] = self.manifest.rows.get(name, 0) + table.num_rows
        writer.write_manifest(self.manifest)

    def _pieces(self) -> Iterator[tuple[str, int, pa.Table]]:
        """Yield the table name, segment number and rows of each non-empty piece."""
        for name in TABLES:
            for segment, table in enumerate(batch_tables(self.tables(name))):
                if table.num_rows:
                    yield name, segment, table

    def _number_rows(self, name: str) -> Iterator[pa.Table]:
        """Yield the rows of each non-empty part with the run's identifiers; at least one table, for
        its columns."""
        for part, offsets in zip(self._parts, self._offsets, strict=True):
            if part.rows[name] or part is self._parts[0]:
                yield offset_identifiers(part.table(name), offsets)


def batch_tables(pieces: Iterator[pa.Table]) -> Iterator[pa.Table]:
    """Yield the pieces in order, concatenated until they have `BATCH_BYTES` bytes."""
    held: list[pa.Table] = []
    size = 0
    for piece in pieces:
        held.append(piece)
        size += piece.nbytes
        if size >= BATCH_BYTES:
            yield _concatenate(held)
            held, size = [], 0
    if held:
        yield _concatenate(held)


def _concatenate(pieces: list[pa.Table]) -> pa.Table:
    """Concatenate tables; small ones into one array per column, which is faster to process."""
    whole = pa.concat_tables(pieces)
    few = len(pieces) == 1 or whole.nbytes > 2 * BATCH_BYTES
    return whole if few else whole.combine_chunks()
