"""Convert a recorder's spool to bundle tables, after a run or after a recorder was killed.

`record` calls `convert_spool`; schemas/recovery.py calls `recover` for a bundle
whose recorder did not finish. See layout.py for the records.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from tracehint.errors import BundleError
from tracehint.schemas.manifest import Manifest
from tracehint.schemas.recovery import SPOOL_DIR
from tracehint.schemas.spool import layout as lay
from tracehint.schemas.spool.arena_links import RealPaths, Resolved
from tracehint.schemas.spool.constants import LOSSES as KINDS
from tracehint.schemas.spool.layout import distinct, filter_records, is_in, take_records
from tracehint.schemas.spool.mount_names import mounts_of
from tracehint.schemas.spool.names import Names, find_first_opens, follow_names, kind_of_mode
from tracehint.schemas.spool.opens import (
    Sessions,
    dev_of,
    extents_table,
    load_sessions,
    opens_table,
    runs_in_flight,
)
from tracehint.schemas.spool.packed import read_packed
from tracehint.schemas.spool.read import (
    Records,
    Spool,
    end_of,
    path_lookup,
    read_spool,
    spool_of_arena,
)
from tracehint.schemas.tables import (
    EXTENTS,
    FILES,
    LOSSES,
    METADATA_OPS,
    METADATA_OPS_KINDS,
    NAMES,
    PROCESSES,
    TABLES,
)

# Process epochs of the spool: tables `processes`, `metadata_ops`, `losses`.

LAUNCHER = 1


@dataclass
class Processes:
    """One record per epoch, sorted by epoch."""

    rows: Records
    start: NDArray[np.int64]
    end: NDArray[np.int64]  # 0: still running

    def end_of(self, epochs: Records) -> NDArray[np.int64]:
        """Return the end of each given epoch; 0 if it still runs or is unknown."""
        if not len(self.rows):
            return np.zeros(len(epochs), np.int64)
        at = np.minimum(np.searchsorted(self.rows["epoch"], epochs), len(self.rows) - 1)
        return np.where(self.rows["epoch"][at] == epochs, self.end[at], 0)


def forget_launcher(spool: Spool) -> None:
    """Remove the epochs of tracehint's own programs, which then executed the command.

    That is the recorder's child or, for a node's recorder, each process that requested tracing.
    Without a next epoch the command was not found, or the recorder died at once: it is kept.
    """
    records = spool.records["processes"]
    ours = np.array([LAUNCHER], np.uint32)
    if spool.joined:
        asked = (records["flags"] & lay.ADOPTED > 0) & (records["prev"] == 0)
        ours = records["epoch"][asked]
    ours = ours[is_in(ours, records["prev"])]
    if not len(ours):
        return
    records["prev"][is_in(records["prev"], ours)] = 0
    spool.records["processes"] = filter_records(records, ~is_in(records["epoch"], ours))
    episodes = spool.records["episodes"]
    spool.records["episodes"] = filter_records(episodes, ~is_in(episodes["epoch"], ours))
    extents = spool.records["extents"]
    epochs = (extents["open_id"] >> np.uint64(32)).astype(np.uint32)
    spool.records["extents"] = filter_records(extents, ~is_in(epochs, ours))


def load_processes(spool: Spool) -> Processes:
    """Return the final record of each epoch: its end if recorded, else the last snapshot."""
    records = spool.records["processes"]
    final = records["kind"] != lay.ALIVE
    order = np.lexsort((np.arange(len(records)), final, records["epoch"]))
    epochs = records["epoch"][order]
    last = epochs > 0
    last[:-1] &= epochs[1:] != epochs[:-1]
    rows = take_records(records, order[last])
    ended = (rows["kind"] != lay.ALIVE) & (rows["end_ns"] > 0)
    return Processes(
        rows, spool.wall(rows["start_ns"]), np.where(ended, spool.wall(rows["end_ns"]), 0)
    )


def processes_table(spool: Spool, proc: Processes) -> pa.Table:
    """Build the `processes` table."""
    from tracehint.schemas.spool.read import path_lookup

    rows = proc.rows
    n = len(rows)
    paths = path_lookup(spool)
    argv, env = _arguments(spool, rows["epoch"])
    exited = (rows["kind"] == lay.EXIT) & ((rows["flags"] & lay.STOPPED) == 0)
    status = rows["exit_status"]
    signal = status & 0x7F
    # a process that requested tracing has no parent: pids are reused in a long recording
    parent = rows["parent"].copy() if spool.joined else _parents(rows)
    columns = {
        "host": pa.array([spool.host] * n, pa.string()),
        "proc": pa.array(rows["epoch"]),
        "parent": pa.array(parent, mask=parent == 0),
        "prev": pa.array(rows["prev"], mask=rows["prev"] == 0),
        "pid": pa.array(rows["pid"]),
        "uid": pa.array(rows["uid"].astype(np.int32)),
        "start_ns": pa.array(proc.start),
        "end_ns": pa.array(proc.end, mask=proc.end == 0),
        "exit_code": pa.array((status >> 8) & 0xFF, mask=~exited | (signal != 0)),
        "exit_signal": pa.array(signal, mask=~exited | (signal == 0)),
        "exe": paths(rows["exe"]),
        "argv": pa.array(argv, PROCESSES.field("argv").type),
        "cwd": paths(rows["cwd"]),
        "env": pa.array(env, PROCESSES.field("env").type),
        "cpu_ns": _processor_time(rows),
        "io_ns": pa.nulls(n, pa.int64()),
    }
    return pa.table(
        [columns[c].cast(PROCESSES.field(c).type) for c in PROCESSES.names], schema=PROCESSES
    )


def _processor_time(rows: Records) -> pa.Array:
    """Return the CPU time of each epoch in ns; null for a process that ran before it was traced,
    whose earlier threads are not all known."""
    used = rows["cpu_ns"].astype(np.int64) - rows["cpu_from"].astype(np.int64)
    ended = (rows["kind"] != lay.ALIVE) & ((rows["flags"] & lay.ADOPTED) == 0)
    return pa.array(used, mask=~ended | (rows["cpu_ns"] == 0) | (used < 0))


def _parents(rows: Records) -> Records:
    """Return the epoch of each parent; 0 if it was not traced.

    Processes that already run are adopted one by one, a child perhaps before its parent.
    """
    parent = rows["parent"].copy()
    adopted = np.flatnonzero((rows["ppid"] > 0) & (parent == 0))  # their epochs after an exec too
    first = adopted[rows["prev"][adopted] == 0]
    known = {int(rows["tgid"][i]): int(rows["epoch"][i]) for i in first}
    for i in adopted:
        parent[i] = known.get(int(rows["ppid"][i]), 0)
    return parent


def _arguments(
    spool: Spool, epochs: Records
) -> tuple[list[list[bytes]], list[list[dict[str, object]]]]:
    """Return arguments and markers of each epoch, empty if it began with a fork."""
    execs = spool.records["execs"]
    where = {int(epoch): i for i, epoch in enumerate(execs["epoch"])}
    argv_text = spool.texts(execs["argv_off"], execs["argv_len"]).to_pylist()
    env_text = spool.texts(execs["env_off"], execs["env_len"]).to_pylist()
    argv: list[list[bytes]] = []
    env: list[list[dict[str, object]]] = []
    for epoch in epochs.tolist():
        i = where.get(epoch)
        args = [] if i is None else argv_text[i].removesuffix(b"\0").split(b"\0")
        argv.append(args)
        pairs = [] if i is None else [p.partition(b"=") for p in env_text[i].split(b"\0") if p]
        env.append([{"name": k.decode("ascii", "replace"), "value": v} for k, _, v in pairs])
    return argv, env


def metadata_table(spool: Spool, proc: Processes) -> pa.Table:
    """Build the `metadata_ops` table: counters of stat, failed open ... per epoch."""
    row, kind = np.nonzero(proc.rows["meta"])
    n = len(row)
    columns = [
        pa.array([spool.host] * n, pa.string()),
        pa.array(proc.rows["epoch"][row].astype(np.int64)),
        pa.nulls(n, pa.binary()),
        pa.array(METADATA_OPS_KINDS).take(pa.array(kind)),
        pa.array(proc.rows["meta"][row, kind].astype(np.int64)),
        pa.array(proc.rows["meta_errors"][row, kind].astype(np.int64)),
    ]
    return pa.table(columns, schema=METADATA_OPS)


_URING_CALLS = (425, 426)  # setup, enter


def _call_name(number: int) -> str:
    """Describe a number of `unknown_call`: a system call, or an operation of io_uring."""
    if number == lay.UNKNOWN_LIBC:
        return "unsupported C library: calls of it are not seen"
    if number >= lay.UNKNOWN_URING:
        return f"io_uring operation {number - lay.UNKNOWN_URING}"
    if number in _URING_CALLS:
        return "io_uring"
    return f"call {number}"


_Loss = tuple[int | None, str, int, str | None]  # epoch, kind, count, detail


def losses_table(spool: Spool, proc: Processes, parts: Records) -> pa.Table:
    """Build the `losses` table: per epoch if it is known, the rest of the totals without one."""
    rows = [*_of_processes(proc), *_of_ranges(parts)]
    rows += list(_without_process(spool, rows))
    rows += [(epoch, kind, 1, what) for epoch, kind, what in spool.of_processes]
    if spool.outlived:
        rows.append((None, "outliving_processes", spool.outlived, None))
    if not spool.ended:
        rows.append((None, "killed_recorder", 1, "the recorder did not reach its end"))
    names = ("proc", "kind", "count", "detail")
    found = [{"host": spool.host, **dict(zip(names, row, strict=True))} for row in rows]
    return pa.Table.from_pylist(found, schema=LOSSES)


def _of_processes(proc: Processes) -> Iterator[_Loss]:
    for i, kind in zip(*np.nonzero(proc.rows["lost"]), strict=True):
        if kind in KINDS:
            row, name = proc.rows[i], KINDS[kind]
            call = _call_name(int(row["unknown_call"])) if name == "unknown_calls" else None
            yield int(row["epoch"]), name, int(row["lost"][kind]), call


def _of_ranges(parts: Records) -> Iterator[_Loss]:
    lossy = filter_records(parts, parts["lost_ops"] > 0)
    for epoch in distinct(lossy["epoch"]).tolist():
        lost = int(lossy["lost_ops"][lossy["epoch"] == epoch].sum())
        yield epoch, KINDS[lay.LOST_EXTENTS], lost, None


def _without_process(spool: Spool, known: list[_Loss]) -> Iterator[_Loss]:
    """Yield the losses in the totals that no process accounts for."""
    for row in spool.records["losses"]:
        name = KINDS.get(int(row["kind"]))
        rest = int(row["count"]) - sum(n for epoch, kind, n, _ in known if epoch and kind == name)
        if name and rest > 0:
            yield None, name, rest, None


# code in manifest.blind_to, if the run had programs that the library cannot enter
_UNENTERED = "static_binaries"


def convert_spool(root: Path, manifest: Manifest) -> dict[str, pa.Table]:
    """Convert the spool of the bundle `root` to all tables.

    They still contain secrets: BundleWriter redacts them. Raises BundleError if nothing can be
    read.
    """
    folder = root / SPOOL_DIR
    return _convert_spool(read_spool(folder, _host(manifest)), manifest, str(folder))


def convert_arena(
    arena: NDArray[np.uint8],
    start: dict[str, Any],
    end: dict[str, Any],
    manifest: Manifest,
    what: str,
    links: Resolved | None = None,
) -> dict[str, pa.Table]:
    """Convert an arena without a spool's directory; `what` names it in errors. links: of the
    recording host, if it is another than this one. Raises BundleError."""
    paths = RealPaths(here=links is None, resolved=links, mounts=mounts_of(start))
    spool = spool_of_arena(arena, start, end, paths, _host(manifest), what)
    return _convert_spool(spool, manifest, what)


def convert_packed(path: Path) -> tuple[Manifest, dict[str, pa.Table]]:
    """Convert a job's recording in one file. Raises BundleError, InputError."""
    job = read_packed(path)
    tables = convert_arena(job.arena, job.start, job.end, job.manifest, str(path), job.links)
    return job.manifest, tables


def recover(root: Path, manifest: Manifest) -> tuple[dict[str, pa.Table], list[str]]:
    """Return the tables of the spool, with secrets, and problems. Raises BundleError."""
    end = end_of(root / SPOOL_DIR)
    if end and manifest.ended_ns is None:  # the run had ended, its tables were not written
        status = end.get("exit_status")
        manifest.exit_status = status if type(status) is int else None
        manifest.complete, manifest.notes = True, []
    folder = root / SPOOL_DIR
    spool = read_spool(folder, _host(manifest))
    return _convert_spool(spool, manifest, str(folder)), spool.problems


def _host(manifest: Manifest) -> str:
    return manifest.hosts[0].name if manifest.hosts else "unknown"


def _convert_spool(spool: Spool, manifest: Manifest, what: str) -> dict[str, pa.Table]:
    try:
        tables = _tables(spool, manifest)
    except (pa.ArrowException, ValueError, OverflowError, IndexError, MemoryError) as error:
        raise BundleError(f"{what}: damaged: {error}", "Record it again.") from None
    unentered = any(kind == "unentered_programs" for _, kind, _ in spool.of_processes)
    if unentered and _UNENTERED not in manifest.blind_to:
        manifest.blind_to.append(_UNENTERED)
    return tables


def _tables(spool: Spool, manifest: Manifest) -> dict[str, pa.Table]:
    forget_launcher(spool)
    proc = load_processes(spool)
    ep = load_sessions(spool)
    paths = _session_paths(spool, ep)
    ends = proc.end_of(ep.rows["epoch"])
    firsts = find_first_opens(spool, ep, paths)
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
    """Return the path of each session; pipes and lost paths get a descriptive name."""
    paths = path_lookup(spool)(ep.rows["path"])
    pipe = pa.array((ep.rows["state"] & lay.PIPE) > 0)
    ino = pa.array(ep.rows["ino"]).cast(pa.string())
    label = pc.binary_join_element_wise(pa.scalar("pipe:["), ino, pa.scalar("]"), "")
    lost = pc.binary_join_element_wise(pa.scalar("?inode:"), ino, "")
    return pc.if_else(pipe, label.cast(pa.binary()), pc.coalesce(paths, lost.cast(pa.binary())))


def _files_table(spool: Spool, ep: Sessions, names: Names, manifest: Manifest) -> pa.Table:
    rows, extra = ep.files, names.extra
    n = len(rows)
    size, nlink = _find_sizes_and_links(spool, ep, names, n)
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
        "file": np.arange(1, n + len(extra) + 1),
        "dev": dev,
        "ino": np.concatenate([rows["ino"], np.array([e.ino for e in extra], np.uint64)]).astype(
            np.int64
        ),
        "generation": np.concatenate([rows["generation"], np.zeros(len(extra))]).astype(np.int64),
        "fstype": _fstypes(dev, manifest),
        "kind": kind_of_mode(mode, np.concatenate([pipe, none])),
        "size_bytes": pa.array(
            np.concatenate([size, np.zeros(len(extra), np.int64)]), mask=unknown_size
        ),
        "deleted": deleted,
        "existed": existed,
    }
    table = pa.table([pa.array(columns[c]).cast(FILES.field(c).type) for c in FILES.names], FILES)
    return _without_aliases(table, names, n)


def _find_sizes_and_links(
    spool: Spool, ep: Sessions, names: Names, n: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the last known size and number of links of each of n files.

    A session that may write reports them as of its close, any other as of its open: the preload
    library repeats the stat for writers only. A truncation by path reports the size.
    """
    rows, size, nlink = ep.rows, np.zeros(n, np.int64), np.ones(n, np.int64)
    may_write = (rows["flags"] & os.O_ACCMODE) != os.O_RDONLY
    closed = np.where(ep.wall_end > 0, ep.wall_end, ep.last)
    seen = np.where(may_write, closed, spool.wall(rows["open_ns"]))
    _keep_last(nlink, ep.file, seen, np.where(rows["kind"] == lay.EPISODE, rows["nlink"], 1))
    cut = np.array([(f, t, to) for t, _, f, to in names.truncated if f <= n], np.int64)
    file, times, sizes = cut.reshape(-1, 3).T
    _keep_last(
        size,
        np.concatenate([ep.file, file]),
        np.concatenate([seen, times]),
        np.concatenate([rows["size_close"].astype(np.int64), sizes]),
    )
    return size, nlink


def _keep_last(
    kept: NDArray[np.int64], file: NDArray[np.int64], times: NDArray[np.int64], values: Records
) -> None:
    """Set the value of each file to the one with the latest time."""
    order = np.argsort(times, kind="stable")
    kept[file[order] - 1] = values[order]


def _without_aliases(table: pa.Table, names: Names, known: int) -> pa.Table:
    """Drop files known by name only that were later identified as another file."""
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
    """Return extents without an open for truncate(2) by path."""
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
