"""Files that several bundles of one host have seen are one file."""

from __future__ import annotations

from typing import NamedTuple

import duckdb
import numpy as np
import pyarrow as pa

from tracehint.schemas.tables import TABLES

_UNITE = """
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
    """The files, each once, and which number each number stands for; both sorted by `old`."""

    files: pa.Table
    old: np.ndarray
    new: np.ndarray

    def renamed(self, table: pa.Table) -> pa.Table:
        """A table with the new numbers in its column `file`, if it has one."""
        index = table.schema.get_field_index("file")
        if index < 0 or not len(table) or not len(self.old):
            return table
        given = table["file"].to_numpy()
        at = np.clip(np.searchsorted(self.old, given), 0, len(self.old) - 1)
        found = np.where(self.old[at] == given, self.new[at], given)
        return table.set_column(index, table.schema.field(index), [pa.array(found)])


def uses(names: pa.Table, files: pa.Table) -> FileTimes:
    """Of the rows of `files`, in their order; a file without names was used never."""
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
    """Rows of one inode of one host, from several bundles, become one file.

    Inodes are used again: a file that was made after the other had gone is another one.
    """
    none = np.zeros(0, np.int64)
    if not len(files):
        return United(files, none, none)
    same, order = _same(files, used)
    if not same.any():
        return United(files, none, none)
    ids = files["file"].to_numpy()
    leader = np.maximum.accumulate(np.where(same, 0, np.arange(len(ids))))
    target = np.empty(len(ids), np.int64)
    target[order] = ids[order][leader]
    place = np.argsort(ids)
    return United(_united(files, ids, target), ids[place], target[place])


def _same(files: pa.Table, used: FileTimes) -> tuple[np.ndarray, np.ndarray]:
    """Whether each file is the one before it, and the order of rows in which that is said."""
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


def _united(files: pa.Table, ids: np.ndarray, target: np.ndarray) -> pa.Table:
    with duckdb.connect() as db:
        db.register("files", files)
        db.register("targets", pa.table({"file": ids, "target": target}))
        found: pa.Table = db.sql(_UNITE).to_arrow_table()
    schema = TABLES["files"]
    return found.select(schema.names).cast(schema)
