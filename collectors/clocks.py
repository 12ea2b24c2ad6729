"""Clocks of several hosts, aligned by causality: nobody opens a file before it was made.

Only what is needed to remove contradictions is moved, and what was moved is
stated. Without contradictions the clocks stay as they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from tracehint.schemas.manifest import Manifest

_LIMIT_NS = 86_400 * 10**9  # more than a day apart is not a clock that runs wrong

# Per host and name on a shared file system: when it was made there, and first read as found.
_SEEN = """
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

# For each pair of hosts: by how much the reader's clock is behind, at least.
_BEHIND = """
with times as (select host, name, min(made) as made, min(used) as used from seen group by all)
select a.host as maker, b.host as reader, max(a.made - b.used)::bigint as behind
from times a join times b using (name)
where a.host <> b.host and a.made is not null and b.used is not null group by all
"""


def apart(spans: Sequence[tuple[int, int | None]]) -> str:
    """A note when logs (start and end in ns) lie more than a day apart; empty: they do not."""
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
    """host, path, cut (length of path), source: mounts of one source on several hosts."""
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
                    "shared": mount.get("shared") is True or _network(mount),
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


def _network(mount: dict[str, object]) -> bool:
    """File systems that show one tree on every host; local ones may have equal sources."""
    fstype = str(mount.get("fstype", ""))
    return fstype.startswith(("nfs", "fuse.", "lustre", "beegfs", "ceph", "gluster")) or fstype in (
        "gpfs",
        "mmfs",
        "pvfs2",
        "orangefs",
        "afs",
        "cifs",
        "smb3",
        "9p",
        "virtiofs",
        "wekafs",
        "panfs",
        "ocfs2",
        "gfs2",
        "moosefs",
    )


def corrections(opens: Iterable[pa.Table], manifest: Manifest) -> dict[str, int]:
    """Nanoseconds to add to each host's times; empty when nothing needs or can be moved.

    `opens`: the rows of that table, piece by piece.
    """
    mounts = shared_mounts(manifest)
    if len(manifest.hosts) < 2 or not len(mounts):
        return {}
    with duckdb.connect() as db:
        db.register("mounts", mounts)
        seen = [_asked(db, _SEEN, "opens", piece) for piece in opens]
        behind = _asked(db, _BEHIND, "seen", pa.concat_tables(seen)).to_pylist()
    rows = [(row["maker"], row["reader"], int(row["behind"])) for row in behind]
    if not any(least > 0 for _, _, least in rows):
        return {}
    return _solve([h.name for h in manifest.hosts], rows)


def _asked(db: duckdb.DuckDBPyConnection, query: str, name: str, table: pa.Table) -> pa.Table:
    """The answer to a query about a table of this name."""
    db.register(name, table)
    found: pa.Table = db.sql(query).to_arrow_table()
    db.unregister(name)
    return found


def _solve(hosts: list[str], behind: list[tuple[str, str, int]]) -> dict[str, int]:
    """Smallest forward shifts with shift[reader] - shift[maker] >= behind for every pair.

    Empty where no shifts can do that: hosts that each read what the other made later.
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


def shifted(table: pa.Table, shifts: dict[str, int]) -> pa.Table:
    """The rows with every time (column `*_ns`) moved by the correction of their host."""
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
    """What was corrected, for the manifest's notes."""
    parts = [f"{host} by {n / 1e9:.6f} s" for host, n in sorted(shifts.items())]
    return "Clocks were aligned so that no file is read before it was made: " + ", ".join(parts)
