"""Alignment of the clocks of several hosts by causality: no file is opened before its creation.

Clocks are moved only as far as needed to remove contradictions, and the corrections are recorded.
Without contradictions the clocks are unchanged.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tracehint.schemas.manifest import Manifest
from tracehint.schemas.mounts import is_network
from tracehint.schemas.tables import TABLES

_LIMIT_NS = 86_400 * 10**9  # one day: a larger difference is not clock error

# Per host and name on a shared file system: time of creation, first read of an existing file.
_USES_QUERY = """
with shared as (
    select o.host, m.source || chr(0) || substr(hex(o.path), 2 * m.cut + 1) as name,
        o.created, o.open_ns, o.read_bytes
    from opens o join mounts m on o.host = m.host
        and starts_with(hex(o.path) || '2F', hex(m.path) || '2F')
)
select host, name, min(open_ns) filter (where created) as made,
    min(open_ns) filter (where not created and read_bytes > 0) as used
from shared group by all
"""

# Per pair of hosts: minimum ns by which the reader's clock is behind the maker's.
_LAG_QUERY = """
with times as (select host, name, min(made) as made, min(used) as used from seen group by all)
select a.host as maker, b.host as reader, max(a.made - b.used)::bigint as behind
from times a join times b using (name)
where a.host <> b.host and a.made is not null and b.used is not null group by all
"""


def note_distant_logs(spans: Sequence[tuple[int, int | None]]) -> str:
    """Return a note if logs (start and end in ns) are over a day apart, else an empty string."""
    known = sorted((start, end or start) for start, end in spans if start > 0)
    latest, gap, after = 0, 0, 0
    for number, (start, end) in enumerate(known):
        if number and start - latest > gap:
            gap, after = start - latest, number
        latest = max(latest, end)
    if gap <= _LIMIT_NS:
        return ""
    return (
        f"{after} of {len(known)} logs end {gap // _LIMIT_NS} days before the others begin: "
        "they are of several runs, or clocks disagree"
    )


def shared_mounts(manifest: Manifest) -> pa.Table:
    """Return shared mounts of one source on several hosts: host, path, cut (its length), source."""
    rows: list[dict[str, Any]] = []
    for host in manifest.hosts:
        for mount in host.mounts:
            source = f"{mount.get('fstype', '')}:{mount.get('source', '')}"
            path = str(mount.get("path", "")).encode("utf-8", "surrogateescape").rstrip(b"/")
            rows.append(
                {
                    "host": host.name,
                    "path": path,
                    "cut": len(path),
                    "source": source,
                    "shared": mount.get("shared") is True
                    or is_network(str(mount.get("fstype", ""))),
                }
            )
    hosts_of: dict[str, set[str]] = {}
    for row in rows:
        hosts_of.setdefault(row["source"], set()).add(row["host"])
    keep = [r for r in rows if r["shared"] and len(hosts_of[r["source"]]) > 1]
    schema = pa.schema(
        [("host", pa.string()), ("path", pa.binary()), ("cut", pa.int64()), ("source", pa.string())]
    )
    return pa.Table.from_pylist([{k: r[k] for k in schema.names} for r in keep], schema=schema)


def corrections(opens: Iterable[pa.Table], manifest: Manifest) -> dict[str, int]:
    """Return nanoseconds to add to each host's times; empty if no shift is needed or possible.

    `opens`: the rows of the table `opens`, in pieces.
    """
    mounts = shared_mounts(manifest)
    if len(manifest.hosts) < 2 or not len(mounts):
        return {}
    with duckdb.connect() as db:
        db.register("mounts", mounts)
        seen = [_query_table(db, _USES_QUERY, "opens", piece) for piece in opens]
        behind = _query_table(db, _LAG_QUERY, "seen", pa.concat_tables(seen)).to_pylist()
    rows = [(row["maker"], row["reader"], int(row["behind"])) for row in behind]
    if not any(least > 0 for _, _, least in rows):
        return {}
    return _solve_shifts([h.name for h in manifest.hosts], rows)


def _query_table(db: duckdb.DuckDBPyConnection, query: str, name: str, table: pa.Table) -> pa.Table:
    """Return the result of a query on a table, which is registered under this name."""
    db.register(name, table)
    found: pa.Table = db.sql(query).to_arrow_table()
    db.unregister(name)
    return found


def _solve_shifts(hosts: list[str], behind: list[tuple[str, str, int]]) -> dict[str, int]:
    """Return smallest forward shifts with shift[reader] - shift[maker] >= behind for every pair.

    Empty if there are none (hosts that each read what the other made later) or one is over a day.
    """
    shift = dict.fromkeys(hosts, 0)
    for _ in range(len(hosts) + 1):
        changed = False
        for maker, reader, least in behind:
            if shift.get(reader, 0) < shift.get(maker, 0) + least:
                shift[reader] = shift.get(maker, 0) + least
                changed = True
        if not changed:
            wide = max(shift.values()) > _LIMIT_NS
            return {} if wide else {host: n for host, n in shift.items() if n}
    return {}


def shift_times(table: pa.Table, shifts: dict[str, int]) -> pa.Table:
    """Return the rows with every time (column `*_ns`) shifted by the correction of its host."""
    times = [name for name in table.schema.names if name.endswith("_ns")]
    if not shifts or not times or not len(table):
        return table
    host = pc.index_in(table["host"], pa.array(list(shifts), pa.string()))
    by_ns = pc.fill_null(pa.array(list(shifts.values()), pa.int64()).take(host), 0)
    for name in times:
        index = table.schema.get_field_index(name)
        table = table.set_column(index, table.schema.field(index), pc.add(table[name], by_ns))
    return table


def statement(shifts: dict[str, int]) -> str:
    """Return the corrections as a note for the manifest."""
    parts = [f"{host} by {n / 1e9:.6f} s" for host, n in sorted(shifts.items())]
    return "Clocks were aligned so that no file is read before it was made: " + ", ".join(parts)


_UNITE_QUERY = """
select host, target as file, any_value(dev) as dev, any_value(ino) as ino,
    any_value(generation) as generation, max(fstype) as fstype, any_value(kind) as kind,
    arg_max(size_bytes, file) as size_bytes, bool_or(deleted) as deleted,
    arg_min(existed, file) as existed
from files join targets using (file) group by host, target order by target
"""


class FileTimes(NamedTuple):
    """First and last time (ns) at which the names of each file changed or were used."""

    first: np.ndarray
    last: np.ndarray


class United(NamedTuple):
    """The files without duplicates, and the map from old to new numbers, sorted by `old`."""

    files: pa.Table
    old: np.ndarray
    new: np.ndarray

    def renumber_files(self, table: pa.Table) -> pa.Table:
        """Return the table with new numbers in its column `file`, if it has one."""
        index = table.schema.get_field_index("file")
        if index < 0 or not len(table) or not len(self.old):
            return table
        given = table["file"].to_numpy()
        at = np.clip(np.searchsorted(self.old, given), 0, len(self.old) - 1)
        found = np.where(self.old[at] == given, self.new[at], given)
        return table.set_column(index, table.schema.field(index), [pa.array(found)])


def uses(names: pa.Table, files: pa.Table) -> FileTimes:
    """Return the times of each row of `files`, in order; for a file without names first > last."""
    ids = files["file"].to_numpy()
    first = np.full(len(ids), np.iinfo(np.int64).max)
    last = np.full(len(ids), np.iinfo(np.int64).min)
    if len(names) and len(ids):
        place, given = np.argsort(ids), names["file"].to_numpy()
        at = place[np.clip(np.searchsorted(ids[place], given), 0, len(ids) - 1)]
        known = ids[at] == given
        times = names["t_ns"].to_numpy()[known]
        np.minimum.at(first, at[known], times)
        np.maximum.at(last, at[known], times)
    return FileTimes(first, last)


def one_file_each(files: pa.Table, used: FileTimes) -> United:
    """Unite rows of one inode of one host, from several bundles, into one file.

    Inode numbers are reused: a file first used after the deletion of the other one is a new file.
    """
    none = np.zeros(0, np.int64)
    if not len(files):
        return United(files, none, none)
    same, order = _compare_neighbours(files, used)
    if not same.any():
        return United(files, none, none)
    ids = files["file"].to_numpy()
    leader = np.maximum.accumulate(np.where(same, 0, np.arange(len(ids))))
    target = np.empty(len(ids), np.int64)
    target[order] = ids[order][leader]
    place = np.argsort(ids)
    return United(_unite_files(files, ids, target), ids[place], target[place])


def _compare_neighbours(files: pa.Table, used: FileTimes) -> tuple[np.ndarray, np.ndarray]:
    """Return, in sorted order, whether each row is the same file as the previous one; the order."""
    host = files["host"].combine_chunks().dictionary_encode().indices.to_numpy()
    dev, ino, gen = (files[c].to_numpy() for c in ("dev", "ino", "generation"))
    order = np.lexsort((used.first, gen, ino, dev, host))
    same = np.ones(len(order), bool)
    same[0] = False
    for values in (host, dev, ino, gen):
        ranked = values[order]
        same[1:] &= ranked[1:] == ranked[:-1]
    gone = files["deleted"].to_numpy(zero_copy_only=False)[order]
    after = used.first[order][1:] > used.last[order][:-1]
    same[1:] &= ~(gone[:-1] & after)
    return same & (dev[order] > 0), order


def _unite_files(files: pa.Table, ids: np.ndarray, target: np.ndarray) -> pa.Table:
    with duckdb.connect() as db:
        db.register("files", files)
        db.register("targets", pa.table({"file": ids, "target": target}))
        found: pa.Table = db.sql(_UNITE_QUERY).to_arrow_table()
    schema = TABLES["files"]
    return found.select(schema.names).cast(schema)
