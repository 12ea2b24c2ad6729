"""Clocks of several hosts, aligned by causality: nobody opens a file before it was made.

Only what is needed to remove contradictions is moved, and what was moved is
stated. Without contradictions the clocks stay as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import duckdb
import pyarrow as pa

from tracehint.schemas.manifest import Manifest

_LIMIT_NS = 86_400 * 10**9  # more than a day apart is not a clock that runs wrong

# For each pair of hosts: by how much the reader's clock is behind, at least.
_BEHIND = """
with shared as (
    select o.host, m.source || chr(0) || substr(hex(o.path), 2 * m.cut + 1) as name,
        o.created, o.open_ns, o.read_bytes
    from opens o join mounts m on o.host = m.host
        and starts_with(hex(o.path) || '2F', hex(m.path) || '2F')
), made as (select host, name, min(open_ns) as t from shared where created group by all),
used as (
    select host, name, min(open_ns) as t from shared
    where not created and read_bytes > 0 group by all
)
select made.host as maker, used.host as reader, max(made.t - used.t)::bigint as behind
from made join used using (name) where made.host <> used.host group by all
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


def corrections(tables: dict[str, pa.Table], manifest: Manifest) -> dict[str, int]:
    """Nanoseconds to add to each host's times; empty when nothing needs or can be moved."""
    mounts = shared_mounts(manifest)
    if len(manifest.hosts) < 2 or not len(mounts):
        return {}
    with duckdb.connect() as db:
        db.register("opens", tables["opens"])
        db.register("mounts", mounts)
        rows = db.execute(_BEHIND).fetchall()
    wrong = [(a, b, n) for a, b, n in rows if n > 0]
    if not wrong:
        return {}
    return _solve([h.name for h in manifest.hosts], [(a, b, int(n)) for a, b, n in rows])


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


def shift_times(tables: dict[str, pa.Table], shifts: dict[str, int]) -> dict[str, pa.Table]:
    """Every time column (`*_ns`) of the hosts' rows moved by their correction."""
    if not shifts:
        return tables
    with duckdb.connect() as db:
        rows = [{"host": h, "by_ns": n} for h, n in shifts.items()]
        db.register("shifts", pa.Table.from_pylist(rows))
        moved = {}
        for name, table in tables.items():
            times = [c for c in table.schema.names if c.endswith("_ns")]
            if not times or not len(table):
                moved[name] = table
                continue
            db.register("part", table)
            change = ", ".join(f"({c} + coalesce(by_ns, 0))::bigint as {c}" for c in times)
            query = f"select part.* replace ({change}) from part left join shifts using (host)"
            result: pa.Table = db.sql(query).to_arrow_table()
            moved[name] = result.select(table.schema.names).cast(table.schema)
        return moved


def statement(shifts: dict[str, int]) -> str:
    """What was corrected, for the manifest's notes."""
    parts = [f"{host} by {n / 1e9:.6f} s" for host, n in sorted(shifts.items())]
    return "Clocks were aligned so that no file is read before it was made: " + ", ".join(parts)
