"""Several bundles as one run: identifiers renumbered, hosts kept, manifests joined."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tracehint.collectors.clocks import apart
from tracehint.collectors.identity import recordings
from tracehint.schemas.manifest import Host, Manifest
from tracehint.schemas.tables import TABLES

if TYPE_CHECKING:
    from tracehint.schemas.store import Bundle

# identifier -> columns of the tables that hold it
_IDENTIFIERS: dict[str, tuple[str, ...]] = {
    "proc": ("proc", "parent", "prev"),
    "file": ("file",),
    "open": ("open",),
    "seq": ("seq",),
}


def join_bundles(parts: Sequence[Bundle]) -> tuple[dict[str, pa.Table], Manifest]:
    """The tables and the manifest of one run that several recorders saw."""
    ordered = sorted(parts, key=lambda b: b.manifest.started_ns)
    tables = one_file_each(join_tables([b.tables for b in ordered]))
    manifest = join_manifests([b.manifest for b in ordered])
    manifest.parts = list(dict.fromkeys(i for b in ordered for i in recordings(b)))
    return tables, manifest


def join_tables(parts: Sequence[dict[str, pa.Table]]) -> dict[str, pa.Table]:
    """One set of tables; identifiers of the second and later parts are moved up."""
    if len(parts) == 1:
        return parts[0]
    offsets = dict.fromkeys(_IDENTIFIERS, 0)
    moved: list[dict[str, pa.Table]] = []
    for part in parts:
        moved.append({name: _move(part[name], offsets) for name in TABLES})
        for key in _IDENTIFIERS:
            offsets[key] += _highest(part, key)
    return {name: pa.concat_tables([m[name] for m in moved]) for name in TABLES}


def _highest(part: dict[str, pa.Table], key: str) -> int:
    """The largest identifier in any table: a damaged bundle may lack its owner's row."""
    highest = 0
    for table in part.values():
        for column in _IDENTIFIERS[key]:
            if column in table.schema.names and len(table):
                highest = max(highest, pc.max(table[column]).as_py() or 0)
    return highest


def _move(table: pa.Table, offsets: dict[str, int]) -> pa.Table:
    for key, columns in _IDENTIFIERS.items():
        for name in columns:
            index = table.schema.get_field_index(name)
            if index < 0 or not offsets[key]:
                continue
            values = pc.add(table[name], pa.scalar(offsets[key], pa.int64()))
            table = table.set_column(index, table.schema.field(index), values)
    return table


def join_manifests(manifests: Sequence[Manifest]) -> Manifest:
    """The joined run: earliest start, latest end, first failure, all blind spots and notes."""
    ordered = sorted(manifests, key=lambda m: m.started_ns or 1 << 62)
    first = ordered[0]
    ends = [m.ended_ns for m in ordered]
    statuses = [m.exit_status for m in ordered]
    collectors = list(dict.fromkeys(m.collector for m in ordered))
    notes = [n for m in ordered for n in m.notes]
    notes += filter(None, [apart([(m.started_ns, m.ended_ns) for m in ordered])])
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
    )


def _hosts(manifests: Sequence[Manifest]) -> list[Host]:
    """Each host once; the mounts of a host that appears several times are united."""
    found: dict[str, Host] = {}
    for host in (h for m in manifests for h in m.hosts):
        known = found.setdefault(host.name, host)
        if known is not host:
            known.mounts = known.mounts + [m for m in host.mounts if m not in known.mounts]
    return list(found.values())


def one_file_each(tables: dict[str, pa.Table]) -> dict[str, pa.Table]:
    """Rows of one inode of one host, from several bundles, become one file.

    Inodes are used again: a file that was made after the other had gone is another one.
    """
    files = tables["files"]
    if not len(files):
        return tables
    host = files["host"].combine_chunks().dictionary_encode().indices.to_numpy()
    dev, ino, gen, ids = (files[c].to_numpy() for c in ("dev", "ino", "generation", "file"))
    first, last = _lifetimes(tables["names"], ids)
    order = np.lexsort((first, gen, ino, dev, host))
    same = np.zeros(len(ids), bool)
    for values in (host, dev, ino, gen):
        ranked = values[order]
        step = np.concatenate(([False], ranked[1:] == ranked[:-1]))
        same = step if values is host else same & step
    gone = files["deleted"].to_numpy(zero_copy_only=False)[order]
    after = first[order][1:] > last[order][:-1]
    same[1:] &= ~(gone[:-1] & after)
    same &= dev[order] > 0
    if not same.any():
        return tables
    leader = np.maximum.accumulate(np.where(same, 0, np.arange(len(ids))))
    target = np.empty(len(ids), np.int64)
    target[order] = ids[order][leader]
    return _unite(tables, ids, target)


def _lifetimes(names: pa.Table, ids: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """First and last time at which a file's names changed or were used, by position in `ids`."""
    place = np.argsort(ids)
    first = np.full(len(ids), np.iinfo(np.int64).max)
    last = np.full(len(ids), np.iinfo(np.int64).min)
    if len(names):
        at = place[np.clip(np.searchsorted(ids[place], names["file"].to_numpy()), 0, len(ids) - 1)]
        times = names["t_ns"].to_numpy()
        np.minimum.at(first, at, times)
        np.maximum.at(last, at, times)
    return first, last


def _unite(tables: dict[str, pa.Table], ids: np.ndarray, target: np.ndarray) -> dict[str, pa.Table]:
    place = np.argsort(ids)
    keys, values = ids[place], target[place]
    result = dict(tables)
    for name, table in tables.items():
        index = table.schema.get_field_index("file")
        if index < 0 or not len(table) or name == "files":
            continue
        old = table["file"].to_numpy()
        at = np.clip(np.searchsorted(keys, old), 0, len(keys) - 1)
        new = np.where(keys[at] == old, values[at], old)
        result[name] = table.set_column(index, table.schema.field(index), [pa.array(new)])
    with duckdb.connect() as db:
        db.register("files", tables["files"])
        db.register("targets", pa.table({"file": ids, "target": target}))
        united: pa.Table = db.sql(_UNITE).to_arrow_table()
    schema = TABLES["files"]
    result["files"] = united.select(schema.names).cast(schema)
    return result


_UNITE = """
select host, target as file, any_value(dev) as dev, any_value(ino) as ino,
    any_value(generation) as generation, max(fstype) as fstype, any_value(kind) as kind,
    arg_max(size_bytes, file) as size_bytes, bool_or(deleted) as deleted,
    arg_min(existed, file) as existed
from files join targets using (file) group by host, target order by target
"""
