"""Process epochs of the spool: tables `processes`, `metadata_ops`, `losses`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tracehint.schemas.spool import layout as lay
from tracehint.schemas.spool.kinds import LOSSES as KINDS
from tracehint.schemas.spool.read import Records, Spool
from tracehint.schemas.spool.rows import distinct, is_in, kept, picked
from tracehint.schemas.tables import LOSSES, METADATA_OPS, METADATA_OPS_KINDS, PROCESSES

LAUNCHER = 1


@dataclass
class Processes:
    """One record per epoch, sorted by epoch."""

    rows: Records
    start: NDArray[np.int64]
    end: NDArray[np.int64]  # 0: still running

    def end_of(self, epochs: Records) -> NDArray[np.int64]:
        """The end of each given epoch; 0 when it goes on or is not known."""
        if not len(self.rows):
            return np.zeros(len(epochs), np.int64)
        at = np.minimum(np.searchsorted(self.rows["epoch"], epochs), len(self.rows) - 1)
        return np.where(self.rows["epoch"][at] == epochs, self.end[at], 0)


def forget_launcher(spool: Spool) -> None:
    """Leave out what a command was before it became the command: epochs of our own programs.

    That is the recorder's child or, of a node's recorder, each process that asked to be followed.
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
    spool.records["processes"] = kept(records, ~is_in(records["epoch"], ours))
    episodes = spool.records["episodes"]
    spool.records["episodes"] = kept(episodes, ~is_in(episodes["epoch"], ours))
    extents = spool.records["extents"]
    epochs = (extents["open_id"] >> np.uint64(32)).astype(np.uint32)
    spool.records["extents"] = kept(extents, ~is_in(epochs, ours))


def load_processes(spool: Spool) -> Processes:
    """The last word on each epoch: its end if it was seen, else the last snapshot."""
    records = spool.records["processes"]
    final = records["kind"] != lay.ALIVE
    order = np.lexsort((np.arange(len(records)), final, records["epoch"]))
    epochs = records["epoch"][order]
    last = epochs > 0
    last[:-1] &= epochs[1:] != epochs[:-1]
    rows = picked(records, order[last])
    ended = (rows["kind"] != lay.ALIVE) & (rows["end_ns"] > 0)
    return Processes(
        rows, spool.wall(rows["start_ns"]), np.where(ended, spool.wall(rows["end_ns"]), 0)
    )


def processes_table(spool: Spool, proc: Processes) -> pa.Table:
    """The `processes` table."""
    from tracehint.schemas.spool.paths import path_lookup

    rows = proc.rows
    n = len(rows)
    paths = path_lookup(spool)
    argv, env = _arguments(spool, rows["epoch"])
    exited = (rows["kind"] == lay.EXIT) & ((rows["flags"] & lay.STOPPED) == 0)
    status = rows["exit_status"]
    signal = status & 0x7F
    # who asked to be followed belongs to no other: a number may be used again in a long recording
    parent = rows["parent"].copy() if spool.joined else _parents(rows)
    columns = {
        "host": pa.array([spool.host] * n, pa.string()),
        "proc": pa.array(rows["epoch"]),
        "parent": pa.array(parent, mask=parent == 0),
        "prev": pa.array(rows["prev"], mask=rows["prev"] == 0),
        "pid": pa.array(rows["pid"]), "uid": pa.array(rows["uid"].astype(np.int32)),
        "start_ns": pa.array(proc.start), "end_ns": pa.array(proc.end, mask=proc.end == 0),
        "exit_code": pa.array((status >> 8) & 0xFF, mask=~exited | (signal != 0)),
        "exit_signal": pa.array(signal, mask=~exited | (signal == 0)),
        "exe": paths(rows["exe"]), "argv": pa.array(argv, PROCESSES.field("argv").type),
        "cwd": paths(rows["cwd"]), "env": pa.array(env, PROCESSES.field("env").type),
        "cpu_ns": _processor_time(rows), "io_ns": pa.nulls(n, pa.int64()),
    }  # fmt: skip  # a table
    return pa.table(
        [columns[c].cast(PROCESSES.field(c).type) for c in PROCESSES.names], schema=PROCESSES
    )


def _processor_time(rows: Records) -> pa.Array:
    """Nanoseconds of each epoch. Of a process that ran before it was followed the threads that
    were there are not all known."""
    used = rows["cpu_ns"].astype(np.int64) - rows["cpu_from"].astype(np.int64)
    ended = (rows["kind"] != lay.ALIVE) & ((rows["flags"] & lay.ADOPTED) == 0)
    return pa.array(used, mask=~ended | (rows["cpu_ns"] == 0) | (used < 0))


def _parents(rows: Records) -> Records:
    """The epoch of each parent; 0 where it was not followed.

    Processes that ran already are let in one by one, a child perhaps before its parent.
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
    """Arguments and markers of each epoch, empty where it began with a fork."""
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
    """Counters of stat, failed open ... per epoch."""
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


def _call_name(number: int) -> str:
    """What the kernel side calls by number: a system call, or an operation of io_uring."""
    if number >= lay.UNKNOWN_URING:
        return f"io_uring operation {number - lay.UNKNOWN_URING}"
    return f"call {number}"


_Loss = tuple[int | None, str, int, str | None]  # epoch, kind, count, detail


def losses_table(spool: Spool, proc: Processes, parts: Records) -> pa.Table:
    """Losses per epoch where that is known; the rest of the totals without one."""
    rows = [*_of_processes(proc), *_of_ranges(parts)]
    rows += list(_without_process(spool, rows))
    rows += [(epoch, "unentered_programs", 1, what) for epoch, what in spool.unentered]
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
    lossy = kept(parts, parts["lost_ops"] > 0)
    for epoch in distinct(lossy["epoch"]).tolist():
        lost = int(lossy["lost_ops"][lossy["epoch"] == epoch].sum())
        yield epoch, KINDS[lay.LOST_EXTENTS], lost, None


def _without_process(spool: Spool, known: list[_Loss]) -> Iterator[_Loss]:
    """What the totals have more than the processes."""
    for row in spool.records["losses"]:
        name = KINDS.get(int(row["kind"]))
        rest = int(row["count"]) - sum(n for epoch, kind, n, _ in known if epoch and kind == name)
        if name and rest > 0:
            yield None, name, rest, None
