"""What processes did with files, as far as the cutting of tasks needs it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tracehint.analyzer.arrays import Numbers, Shorts, blocks, distinct, ints, positions
from tracehint.analyzer.columns import column, numbers
from tracehint.analyzer.path_rules import data_names
from tracehint.analyzer.tasks.tree import Bools, Ints

if TYPE_CHECKING:
    import pyarrow as pa

    from tracehint.schemas.store import Bundle

_ACCESS_MODE = 3  # of open flags: 0 read, 1 write, 2 both


@dataclass(frozen=True)
class Activity:
    """Per epoch: `wrote` a data file, `opened` one itself and wrote to it (not a descriptor that
    it inherited), `used` one at all. `known` is false without any opens.

    `moved`: bytes that it read and wrote of data files; `made`: without those of descriptors that
    it inherited. Where the collector sees no bytes, each open counts one.

    Pipes: pairs of (epoch, file) that were written and read.
    """

    known: bool
    wrote: Bools
    opened: Bools
    used: Bools
    moved: Ints
    made: Ints
    pipe_writes: tuple[Ints, Ints]
    pipe_reads: tuple[Ints, Ints]


def activity_of(bundle: Bundle, proc: Ints) -> Activity:
    """The activity of the epochs `proc` (identifiers in tree order)."""
    import pyarrow.compute as pc

    opens, files = bundle.tables["opens"], bundle.tables["files"]
    n = len(proc)
    at = positions(proc, numbers(opens, "proc", -1)).astype(np.int32)
    file = numbers(opens, "file", -1)
    position = positions(column(files, "file", -1), file).astype(np.int32)
    kinds = files.column("kind")

    def of_kind(kind: str) -> Bools:
        flags = np.append(pc.equal(kinds, kind).to_numpy(zero_copy_only=False), False)
        return np.asarray(flags[position], bool) & (at >= 0)

    flags = numbers(opens, "flags", 0) & _ACCESS_MODE
    read_ops = numbers(opens, "read_ops", 0) > 0
    write_ops = numbers(opens, "write_ops", 0) > 0
    blind = "bytes" in bundle.manifest.blind_to
    plain = of_kind("file") & ~_own_scratch(files, position, at)
    plain &= data_names(opens.column("path"))
    writes = write_ops | (flags > 0) if blind else write_ops
    reads = read_ops | (flags == 0) if blind else read_ops
    wrote, opened, used = np.zeros(n, bool), np.zeros(n, bool), np.zeros(n, bool)
    wrote[at[plain & writes]] = True
    itself = pc.not_equal(opens.column("via"), "inherited").to_numpy(zero_copy_only=False)
    opened[at[plain & writes & itself]] = True
    used[at[plain & (reads | writes)]] = True
    moved, made = (_bytes(opens, at, which, n, blind=blind) for which in (plain, plain & itself))
    pipe = of_kind("pipe")
    # without any operation on a pipe's side, the mode in which it is open has to do
    w = pipe & (write_ops | ((flags == 1) & ~_seen(file, pipe & write_ops)))
    r = pipe & (read_ops | ((flags == 0) & ~write_ops & ~_seen(file, pipe & read_ops)))
    pipes = (ints(at[w]), ints(file[w])), (ints(at[r]), ints(file[r]))
    return Activity(opens.num_rows > 0, wrote, opened, used, moved, made, *pipes)


def _bytes(opens: pa.Table, at: Shorts, which: Bools, epochs: int, *, blind: bool) -> Ints:
    """Per epoch what these of its opens read and wrote; where that is not seen, how many."""
    total = np.zeros(epochs, np.int64)
    sides = [numbers(opens, name, 0) for name in ("read_bytes", "write_bytes")]
    for some in blocks(len(at)):
        chosen = which[some]
        amount = sum(ints(side[some][chosen]) for side in sides)
        np.add.at(total, at[some][chosen], 1 if blind else np.maximum(amount, 0))
    return total


def _own_scratch(files: pa.Table, position: Shorts, at: Shorts) -> Bools:
    """Opens of files that are gone at the end and that one process alone used: no data of the
    run (Python's tempfile writes one to try out each directory)."""
    gone = np.asarray(files.column("deleted").fill_null(False).to_numpy(zero_copy_only=False), bool)
    uses = np.append(gone, False)[position]  # of such files only: nearly always few
    pairs = np.unique(np.stack((position[uses], at[uses])), axis=1)
    users = np.bincount(pairs[0], minlength=files.num_rows)
    scratch = np.append(gone & (users < 2), False)
    return np.asarray(scratch[position], bool)


def _seen(file: Numbers, which: Bools) -> Bools:
    return np.isin(file, distinct(file[which]))
