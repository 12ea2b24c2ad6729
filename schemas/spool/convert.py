"""The eBPF loader's spool to bundle tables, after a run or after a recorder was killed.

`convert_spool` is what `record` calls; `recover` what schemas/recovery.py calls
for a bundle whose recorder did not finish. See spool_layout for the records.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tracehint.errors import BundleError
from tracehint.schemas.manifest import Manifest
from tracehint.schemas.recovery import SPOOL_DIR
from tracehint.schemas.spool import layout as lay
from tracehint.schemas.spool.names import first_sights, follow_names, kind_of_mode
from tracehint.schemas.spool.opens import (
    Sessions,
    dev_of,
    extents_table,
    load_sessions,
    opens_table,
    runs_in_flight,
)
from tracehint.schemas.spool.paths import path_lookup
from tracehint.schemas.spool.processes import (
    forget_launcher,
    load_processes,
    losses_table,
    metadata_table,
    processes_table,
)
from tracehint.schemas.spool.read import Spool, end_of, read_spool
from tracehint.schemas.spool.replay import Names
from tracehint.schemas.tables import EXTENTS, FILES, NAMES, TABLES


def convert_spool(root: Path, manifest: Manifest) -> dict[str, pa.Table]:
    """All tables that the spool below the bundle `root` gives.

    Secrets are still in them: BundleWriter takes them out. Raises BundleError when nothing can be
    read.
    """
    tables, _ = _convert(root, manifest)
    return tables


def recover(root: Path, manifest: Manifest) -> tuple[dict[str, pa.Table], list[str]]:
    """The tables of what the spool holds, secrets in them, and problems. Raises BundleError."""
    end = end_of(root / SPOOL_DIR)
    if end and manifest.ended_ns is None:  # the run was over, its tables were not written
        status = end.get("exit_status")
        manifest.exit_status = status if type(status) is int else None
        manifest.complete, manifest.notes = True, []
    return _convert(root, manifest)


def _convert(root: Path, manifest: Manifest) -> tuple[dict[str, pa.Table], list[str]]:
    host = manifest.hosts[0].name if manifest.hosts else "unknown"
    spool = read_spool(root / SPOOL_DIR, host)
    try:
        tables = _tables(spool, manifest)
    except (pa.ArrowException, ValueError, OverflowError, IndexError, MemoryError) as error:
        raise BundleError(f"{root / SPOOL_DIR}: damaged: {error}", "Record it again.") from None
    return tables, spool.problems


def _tables(spool: Spool, manifest: Manifest) -> dict[str, pa.Table]:
    forget_launcher(spool)
    proc = load_processes(spool)
    ep = load_sessions(spool)
    paths = _session_paths(spool, ep)
    ends = proc.end_of(ep.rows["epoch"])
    firsts = first_sights(spool, ep, paths)
    names = follow_names(spool, ep, firsts)
    tables = {name: schema.empty_table() for name, schema in TABLES.items()}
    tables["processes"] = processes_table(spool, proc)
    tables["opens"] = opens_table(spool, ep, paths, ends)
    tables["extents"] = pa.concat_tables(
        [extents_table(spool, ep, ends), _truncations(spool, names)]
    ).sort_by("first_ns")
    tables["files"] = _files_table(spool, ep, names, manifest)
    tables["names"] = _names_table(spool, names)
    tables["metadata_ops"] = metadata_table(spool, proc)
    tables["losses"] = losses_table(spool, proc, ep.parts)
    if not spool.ended:
        missing = runs_in_flight(spool, ep, tables["extents"])
        tables["losses"] = pa.concat_tables([tables["losses"], missing])
    return tables


def _session_paths(spool: Spool, ep: Sessions) -> pa.Array:
    """The path of each session; pipes and lost paths get a name that says what they are."""
    paths = path_lookup(spool)(ep.rows["path"])
    pipe = pa.array((ep.rows["state"] & lay.PIPE) > 0)
    ino = pa.array(ep.rows["ino"]).cast(pa.string())
    label = pc.binary_join_element_wise(pa.scalar("pipe:["), ino, pa.scalar("]"), "")
    lost = pc.binary_join_element_wise(pa.scalar("?inode:"), ino, "")
    return pc.if_else(pipe, label.cast(pa.binary()), pc.coalesce(paths, lost.cast(pa.binary())))


def _files_table(spool: Spool, ep: Sessions, names: Names, manifest: Manifest) -> pa.Table:
    rows, extra = ep.files, names.extra
    n = len(rows)
    size = np.zeros(n, np.int64)
    nlink = np.ones(n, np.int64)
    size[ep.file - 1] = ep.rows["size_close"].astype(np.int64)  # later rows win
    nlink[ep.file - 1] = np.where(ep.rows["kind"] == lay.EPISODE, ep.rows["nlink"], 1)
    for _, _, file, to in names.truncated:
        if file <= n:
            size[file - 1] = to
    pipe = (rows["state"] & lay.PIPE) > 0
    deleted = np.zeros(n + len(extra), bool)
    deleted[:n] = (nlink == 0) & ~pipe
    gone = [f for f in names.deleted if 0 < f <= n + len(extra)]
    deleted[np.array(gone, np.int64) - 1] = True
    none = np.zeros(len(extra), bool)
    dev = np.concatenate([dev_of(rows["dev"]), np.array([e.dev for e in extra], np.int64)])
    mode = np.concatenate([rows["mode"], np.array([e.mode for e in extra], np.uint32)])
    existed = np.concatenate(
        [(rows["state"] & lay.CREATED) == 0, np.array([e.existed for e in extra], bool)]
    )
    unknown_size = np.concatenate([pipe, ~none])
    columns: dict[str, Any] = {
        "host": pa.array([spool.host] * (n + len(extra)), pa.string()),
        "file": np.arange(1, n + len(extra) + 1), "dev": dev,
        "ino": np.concatenate([rows["ino"], np.array([e.ino for e in extra], np.uint64)]).astype(
            np.int64
        ),
        "generation": np.concatenate([rows["generation"], np.zeros(len(extra))]).astype(np.int64),
        "fstype": _fstypes(dev, manifest), "kind": kind_of_mode(
            mode, np.concatenate([pipe, none])
        ),
        "size_bytes": pa.array(np.concatenate([size, np.zeros(len(extra), np.int64)]),
                               mask=unknown_size),
        "deleted": deleted, "existed": existed,
    }  # fmt: skip  # a table
    table = pa.table([pa.array(columns[c]).cast(FILES.field(c).type) for c in FILES.names], FILES)
    return _without_aliases(table, names, n)


def _without_aliases(table: pa.Table, names: Names, known: int) -> pa.Table:
    """Files known by name only that turned out to be another have no row."""
    used = {row[2] for row in names.rows} | {row[2] for row in names.truncated}
    keep = [i <= known or i in used for i in range(1, len(table) + 1)] if names.extra else None
    return table if keep is None else table.filter(pa.array(keep))


def _fstypes(dev: Any, manifest: Manifest) -> pa.Array:
    known = {}
    for mount in manifest.hosts[0].mounts if manifest.hosts else []:
        major, _, minor = str(mount.get("dev", "")).partition(":")
        if major.isdigit() and minor.isdigit():
            known[os.makedev(int(major), int(minor))] = str(mount.get("fstype", ""))
    unique, inverse = np.unique(dev, return_inverse=True)
    types = pa.array([known.get(int(d)) for d in unique], pa.string())
    return types.take(pa.array(inverse))


def _names_table(spool: Spool, names: Names) -> pa.Table:
    assert names.firsts is not None
    seen = names.firsts.append_column("new_path", pa.nulls(len(names.firsts), pa.binary()))
    columns = ("t_ns", "proc", "file", "op", "path", "new_path")
    kinds = [NAMES.field(c).type for c in columns]
    changed = pa.table(
        [
            pa.array([row[i] for row in names.rows], kind)
            for i, kind in zip(range(6), kinds, strict=True)
        ],
        names=list(columns),
    )
    both = pa.concat_tables([seen.select(columns).cast(changed.schema), changed]).sort_by("t_ns")
    both = both.append_column("seq", pa.array(np.arange(len(both))))
    both = both.append_column("host", pa.array([spool.host] * len(both), pa.string()))
    return both.select(NAMES.names).cast(NAMES)


def _truncations(spool: Spool, names: Names) -> pa.Table:
    """truncate(2) by path: an extent without an open file."""
    rows = [
        {
            "host": spool.host,
            "open": None,
            "proc": proc,
            "file": file,
            "op": "truncate",
            "how": "truncate",
            "start": size,
            "length": 0,
            "stride": 0,
            "count": 1,
            "ops": 1,
            "bytes": 0,
            "first_ns": t,
            "last_ns": t,
            "exact": True,
            "rank": None,
        }
        for t, proc, file, size in names.truncated
    ]
    return pa.Table.from_pylist(rows, schema=EXTENTS)
