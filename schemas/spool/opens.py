"""Convert open-file sessions (spool episodes) to `opens`, runs to `extents`; identify files."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from tracehint.schemas.spool import layout as lay
from tracehint.schemas.spool.layout import (
    concat_records,
    distinct,
    firsts,
    number_rows,
    take_records,
)
from tracehint.schemas.spool.read import Records, Spool
from tracehint.schemas.tables import EXTENTS, LOSSES, OPENS
from tracehint.schemas.wording import plural

_SUMS = ("read_ops", "read_bytes", "write_ops", "write_bytes", "seq_ops", "small_ops", "lost_ops")


@dataclass
class Sessions:
    """One row per open-file session, in order of opening."""

    rows: Records  # EPISODE_DT with the parts of threads added up
    parts: Records  # before that: these contain the runs
    open: NDArray[np.int64]  # identifier of each row
    file: NDArray[np.int64]  # identifier of each row's file
    files: Records  # the row of each file's first session; file id = position + 1
    wall_end: NDArray[np.int64]  # close time, 0: not closed
    last: NDArray[np.int64]  # time of the last operation; if there is none, before the open


def dev_of(kernel: Records) -> NDArray[np.int64]:
    """Convert the kernel's device number (20 bits of minor) to stat's st_dev."""
    major, minor = kernel.astype(np.int64) >> 20, kernel.astype(np.int64) & 0xFFFFF
    return (minor & 0xFF) | (major & 0xFFF) << 8 | (minor & ~0xFF) << 12 | (major & ~0xFFF) << 32


def load_sessions(spool: Spool) -> Sessions:
    """Return the final record of each session, parts of threads added up, files identified."""
    parts = _last_per(spool.records["episodes"], ("open_id", "tid", "fd"))
    # the descriptor's own record first: negative numbers, viewed as unsigned, sort after it
    parts = take_records(
        parts, np.lexsort((parts["fd"].view(np.uint32), parts["tid"], parts["open_id"]))
    )
    ids, first, group = np.unique(parts["open_id"], return_index=True, return_inverse=True)
    rows = take_records(parts, first)
    for name in _SUMS:
        total = np.zeros(len(ids), np.uint64)
        np.add.at(total, group, parts[name])
        rows[name] = total
    for name in ("first_ns",):
        known = np.where(parts[name] == 0, np.iinfo(np.uint64).max, parts[name])
        least = np.full(len(ids), np.iinfo(np.uint64).max, np.uint64)
        np.minimum.at(least, group, known)
        rows[name] = np.where(least == np.iinfo(np.uint64).max, 0, least)
    for name in ("close_ns", "size_close"):
        rows[name] = _find_largest(group, parts[name], len(ids))
    newest = np.maximum(parts["outer"]["last_ns"], parts["inner"]["last_ns"])
    by_time = np.argsort(rows["open_ns"], kind="stable")
    rows, last = take_records(rows, by_time), _find_largest(group, newest, len(ids))[by_time]
    file, firsts = _identify(rows)
    end = np.where(rows["close_ns"] > 0, spool.wall(rows["close_ns"]), 0)
    ids = rows["open_id"].astype(np.int64)
    return Sessions(rows, parts, ids, file, firsts, end, spool.wall(last))


def _find_largest(group: NDArray[np.int64], values: Records, count: int) -> Records:
    """Return the largest value of each group."""
    most = np.zeros(count, values.dtype)
    np.maximum.at(most, group, values)
    return most


def _last_per(records: Records, keys: tuple[str, ...]) -> Records:
    """Return the last final record for each key, else the last snapshot."""
    if not len(records):
        return records
    final = records["kind"] == lay.EPISODE
    order = np.lexsort((np.arange(len(records)), final, *[records[k] for k in reversed(keys)]))
    last = np.ones(len(order), bool)
    last[:-1] = False
    for key in keys:
        last[:-1] |= firsts(records[key][order])[1:]
    return take_records(records, order[last])


def _identify(rows: Records) -> tuple[NDArray[np.int64], Records]:
    """Return each row's file number (from 1) and each file's first row. Rows are in time order."""
    if not len(rows):
        return np.zeros(0, np.int64), rows
    births = _births(rows)
    number = number_rows(rows["dev"], rows["ino"], rows["generation"], births)
    first = np.full(int(number.max()) + 1, len(rows), np.int64)
    np.minimum.at(first, number, np.arange(len(rows)))
    rank = np.argsort(np.argsort(first))  # number files in the order in which they appear
    return rank[number].astype(np.int64) + 1, take_records(rows, np.sort(first))


def _births(rows: Records) -> NDArray[np.uint64]:
    """Count the files created with each row's inode number so far, if generations are unknown."""
    births = np.zeros(len(rows), np.uint64)
    plain = np.flatnonzero((rows["generation"] == 0) & ((rows["state"] & lay.PIPE) == 0))
    if not len(plain):
        return births
    order = plain[np.lexsort((plain, rows["ino"][plain], rows["dev"][plain]))]
    created = (rows["state"][order] & lay.CREATED) > 0
    running = np.cumsum(created)
    new = firsts(rows["ino"][order]) | firsts(rows["dev"][order])
    start = np.maximum.accumulate(np.where(new, np.arange(len(order)), 0))
    before = np.where(start > 0, running[start - 1], 0)
    births[order] = running - before
    return births


def opens_table(spool: Spool, ep: Sessions, paths: pa.Array, ends: NDArray[np.int64]) -> pa.Table:
    """Build the `opens` table; `ends`: end of each row's process epoch, 0 if it still runs."""
    rows = ep.rows
    pipe = (rows["state"] & lay.PIPE) > 0
    inherited = (rows["state"] & lay.INHERITED) > 0
    via = np.where(pipe, "pipe", np.where(inherited, "inherited", "open"))
    close = np.where(ep.wall_end > 0, ep.wall_end, ends)
    first = np.where(rows["first_ns"] > 0, spool.wall(rows["first_ns"]), 0)
    last = np.where(close > 0, np.minimum(ep.last, close), ep.last)
    last = np.maximum(last, first)
    size = rows["size_open"].astype(np.int64)
    columns: dict[str, Any] = {
        "host": pa.array([spool.host]).take(pa.array(np.zeros(len(rows), np.int8))),
        "open": ep.open,
        "proc": rows["epoch"].astype(np.int64),
        "file": ep.file,
        "path": paths,
        "fd": np.maximum(rows["fd"], -1),
        "flags": rows["flags"].astype(np.int32),
        "via": pa.array(via),
        "created": (rows["state"] & lay.CREATED) > 0,
        "truncated": (rows["state"] & lay.TRUNCATED) > 0,
        "size_at_open": _null(size, pipe),
        "open_ns": spool.wall(rows["open_ns"]),
        "close_ns": _null(close, close == 0),
        "first_ns": _null(first, first == 0),
        "last_ns": _null(last, first == 0),
    }
    for name in _SUMS[:-1]:
        columns[name] = rows[name].astype(np.int64)
    return pa.table([_column(columns[n], OPENS.field(n).type) for n in OPENS.names], schema=OPENS)


def extents_table(spool: Spool, ep: Sessions, ends: NDArray[np.int64]) -> pa.Table:
    """Build the `extents` table: runs from the ring buffer, and runs in the session records."""
    sent, parts = spool.records["extents"], ep.parts
    open_id = np.concatenate([sent["open_id"], parts["open_id"], parts["open_id"]])
    runs = concat_records(sent["run"], parts["outer"], parts["inner"])
    keep = (runs["ops"] > 0) & np.concatenate(
        [np.ones(len(sent), bool), _unsent(parts, sent, 0), _unsent(parts, sent, 1)]
    )
    keep &= (runs["op"] < len(lay.OPS)) & (runs["how"] < len(lay.HOWS))
    order = np.argsort(ep.open, kind="stable")
    where = np.searchsorted(ep.open[order], open_id.astype(np.int64))
    where = np.minimum(where, max(len(order) - 1, 0))
    row = order[where] if len(order) else np.zeros(len(open_id), np.int64)
    known = ep.open[row] == open_id.astype(np.int64) if len(order) else np.zeros(len(row), bool)
    lost = int((keep & ~known).sum())
    if lost:
        spool.problems.append(f"spool: {plural(lost, 'run')} without an open file left out")
    at = np.flatnonzero(keep & known)
    at = at[np.argsort(runs["first_ns"][at], kind="stable")]
    return _extent_columns(spool, ep, take_records(runs, at), row[at], ends)


def runs_in_flight(spool: Spool, ep: Sessions, extents: pa.Table) -> pa.Table:
    """Return `losses` of operations whose runs were in a ring when the recorder was killed."""
    moved = extents.filter(pc.is_in(extents.column("op"), pa.array(["read", "write"])))
    at = np.searchsorted(np.sort(ep.open), moved.column("open").to_numpy())
    recorded = np.zeros(len(ep.open), np.int64)
    np.add.at(recorded, at, moved.column("ops").to_numpy())
    recorded = recorded[np.argsort(np.argsort(ep.open, kind="stable"))]
    rows = ep.rows
    counted = (rows["read_ops"] + rows["write_ops"] - rows["lost_ops"]).astype(np.int64)
    missing = np.where((rows["state"] & lay.PIPE) == 0, np.maximum(counted - recorded, 0), 0)
    found = [
        {
            "host": spool.host,
            "proc": int(proc),
            "kind": "extent_records",
            "count": int(missing[rows["epoch"] == proc].sum()),
            "detail": "in the ring when the recorder was killed",
        }
        for proc in distinct(rows["epoch"][missing > 0])
    ]
    return pa.Table.from_pylist(found, schema=LOSSES)


def _unsent(parts: Records, sent: Records, ahead: int) -> NDArray[np.bool_]:
    """Return which parts have runs that did not also arrive through the ring after a snapshot."""
    snapshot = parts["kind"] == lay.SNAPSHOT
    if not snapshot.any() or not len(sent):
        return np.ones(len(parts), bool)
    ids, group = np.unique(sent["open_id"], return_inverse=True)
    highest = np.zeros(len(ids), np.uint32)
    np.maximum.at(highest, group, sent["run_seq"])
    at = np.minimum(np.searchsorted(ids, parts["open_id"]), len(ids) - 1)
    came = (ids[at] == parts["open_id"]) & (highest[at] >= parts["run_seq"] + ahead)
    unsent: NDArray[np.bool_] = ~(snapshot & came)
    return unsent


def _extent_columns(
    spool: Spool, ep: Sessions, runs: Records, row: Any, ends: NDArray[np.int64]
) -> pa.Table:
    first, last = spool.wall(runs["first_ns"]), spool.wall(runs["last_ns"])
    close = np.where(ep.wall_end[row] > 0, ep.wall_end[row], ends[row])
    last = np.maximum(np.where(close > 0, np.minimum(last, close), last), first)
    length = runs["length"].astype(np.int64)
    columns: dict[str, Any] = {
        "host": pa.array([spool.host]).take(pa.array(np.zeros(len(runs), np.int8))),
        "open": ep.open[row],
        "proc": ep.rows["epoch"][row].astype(np.int64),
        "file": ep.file[row],
        "op": pa.array(lay.OPS).take(pa.array(runs["op"])),
        "how": pa.array(lay.HOWS).take(pa.array(runs["how"])),
        "start": runs["start"].astype(np.int64),
        "length": length,
        "stride": np.where(runs["count"] > 1, runs["stride"], length),
        "count": runs["count"].astype(np.int64),
        "ops": runs["ops"].astype(np.int64),
        "bytes": runs["bytes"].astype(np.int64),
        "first_ns": first,
        "last_ns": last,
        "exact": runs["inexact"] == 0,
        "rank": pa.nulls(len(runs), pa.int32()),
    }
    return pa.table(
        [_column(columns[n], EXTENTS.field(n).type) for n in EXTENTS.names], schema=EXTENTS
    )


def _null(values: NDArray[Any], missing: NDArray[np.bool_]) -> pa.Array:
    return pa.array(values, mask=missing)


def _column(values: Any, kind: pa.DataType) -> pa.Array:
    array = values if isinstance(values, pa.Array) else pa.array(values)
    return array.cast(kind)
