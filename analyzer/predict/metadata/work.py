"""Metadata operations of a run, from its graph and from the calls that a collector counted."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tracehint.analyzer.arrays import Ints, column, finder, order_by
from tracehint.analyzer.predict.metadata.model import COMPUTING, LOOKUP, UPDATE, MetaWork
from tracehint.analyzer.predict.model import COMPUTE, READ, Workload
from tracehint.errors import InputError

if TYPE_CHECKING:
    import pyarrow as pa

    from tracehint.analyzer.model import Analysis
    from tracehint.schemas.store import Bundle

MAX_OPERATIONS = 1 << 27
# call that a collector counts (schemas/tables.py) -> operation on a registry
CALLS = {
    "stat": LOOKUP,
    "access": LOOKUP,
    "failed_open": LOOKUP,
    "readdir": LOOKUP,
    "unlink": UPDATE,
    "rename": UPDATE,
    "mkdir": UPDATE,
    "chmod": UPDATE,
    "xattr": UPDATE,
}
_ONE_EACH = (
    "a task looks a file up once before it first reads it (its location included), and enters it "
    "once after it last wrote it; opening it again is not counted"
)


def metadata_work(analysis: Analysis, work: Workload, bundle: Bundle | None) -> MetaWork:
    """Return the metadata operations of `work`, a workload of this analysis; the bundle adds the
    counted calls. Raises InputError for too many."""
    task = np.repeat(np.arange(work.tasks), np.diff(work.op_begin))
    kind = np.where(work.op_kind == READ, LOOKUP, UPDATE)
    kind[work.op_kind == COMPUTE] = COMPUTING
    keep = _one_each(task, kind, np.asarray(work.op_file, np.int64))
    task, kind = task[keep], kind[keep]
    entry = np.asarray(work.op_file, np.int64)[keep]
    place = np.flatnonzero(keep)
    paths, notes = _paths(analysis, work), [_ONE_EACH]
    calls = _calls(analysis, work, bundle, notes)
    if calls is not None:
        c_task, c_kind, c_dir, directories = calls
        first = np.where(c_kind == LOOKUP, -1, len(work.op_kind))
        task = np.concatenate([task, c_task])
        kind = np.concatenate([kind, c_kind])
        entry = np.concatenate([entry, c_dir + len(paths)])
        place = np.concatenate([place, first])
        paths = paths + directories
    order = order_by(task, place)
    seconds = np.concatenate([work.op_seconds[keep], np.zeros(len(task) - int(keep.sum()))])
    known = np.ones(len(paths), np.int32)
    known[: work.files] = work.produced == 0
    return MetaWork(
        op_begin=np.searchsorted(task[order], np.arange(work.tasks + 1)).astype(np.int64),
        op_kind=kind[order].astype(np.int32),
        op_entry=np.where(kind == COMPUTING, -1, entry)[order].astype(np.int32),
        op_seconds=np.ascontiguousarray(seconds[order]),
        dep_begin=work.dep_begin,
        dep=work.dep,
        known=known,
        paths=paths,
        site=_sites(analysis, work),
        recorded=calls is not None,
        notes=notes,
    )


def _one_each(task: Ints, kind: Ints, file: Ints) -> np.ndarray:
    """Mark the operations that count: first read, last write per task and file, and computing."""
    keep = np.zeros(len(task), bool)
    keep[kind == COMPUTING] = True
    for what, last in ((LOOKUP, False), (UPDATE, True)):
        at = np.flatnonzero(kind == what)
        at = at[::-1] if last else at
        pairs = np.stack([task[at], file[at]], axis=1)
        _, first = np.unique(pairs, axis=0, return_index=True)
        keep[at[first]] = True
    return keep


def _paths(analysis: Analysis, work: Workload) -> list[bytes]:
    at = finder(column(analysis.files, "file"))(work.file_id)
    found: list[bytes | None] = analysis.files.column("path").take(at).to_pylist()
    return [path or b"" for path in found]


def _sites(analysis: Analysis, work: Workload) -> list[str]:
    at = finder(column(analysis.tasks, "task"))(work.task_id)
    found: list[str | None] = analysis.tasks.column("site").take(at).to_pylist()
    return [site or "" for site in found]


def _calls(
    analysis: Analysis, work: Workload, bundle: Bundle | None, notes: list[str]
) -> tuple[Ints, Ints, Ints, list[bytes]] | None:
    """Return (task, kind, directory) of each counted call below a data root, and directories."""
    counted = bundle is not None and bundle.tables.get("metadata_ops")
    if not counted or bundle is None or analysis.proc_task is None:
        notes.append("stat, rename, unlink and the like are not known: the graph alone counts")
        return None
    roots = [root.encode("utf-8", "surrogateescape") for root in analysis.run["data_roots"]]
    rows = _rows(counted, roots)
    find = finder(column(analysis.proc_task, "proc"))
    proc = find(column(rows, "proc"))
    owner = column(analysis.proc_task, "task")[proc]
    task = np.where(proc >= 0, finder(work.task_id)(owner), -1)
    keep = np.flatnonzero(task >= 0)
    rows, task = rows.take(keep), task[keep]
    times = np.maximum(column(rows, "count"), 0)
    if int(times.sum()) > MAX_OPERATIONS:
        raise InputError(
            f"{int(times.sum()):,} metadata calls are too many to simulate",
            f"The limit is {MAX_OPERATIONS:,}.",
        )
    names = rows.column("op").to_pylist()
    kind = np.array([CALLS[name] for name in names], np.int64)
    folders = rows.column("dir").combine_chunks().dictionary_encode()
    codes = folders.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    notes.append(
        "other calls (stat, access, readdir; rename, unlink, mkdir ...) ask for their directory "
        "when the task begins, and change it when it ends"
    )
    found = (np.repeat(values, times) for values in (task, kind, codes))
    return (*found, folders.dictionary.to_pylist())


def _rows(table: pa.Table, roots: list[bytes]) -> pa.Table:
    """Return the calls of known kinds in directories at or below a data root."""
    import pyarrow as pa
    import pyarrow.compute as pc

    wanted = pc.is_in(table.column("op"), value_set=pa.array(list(CALLS), pa.string()))
    inside = pa.chunked_array([pa.repeat(pa.scalar(not roots), len(table))])
    folder = pc.fill_null(table.column("dir"), b"")
    for root in roots:
        plain = root.rstrip(b"/")
        below = pc.starts_with(folder, pattern=plain + b"/")
        inside = pc.or_(inside, pc.or_(below, pc.equal(folder, pa.scalar(plain, pa.binary()))))
    return table.filter(pc.and_(pc.and_(wanted, inside), pc.is_valid(table.column("dir"))))
