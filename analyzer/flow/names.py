"""The names of each file over time: which one it is called by, which others it had.

A gain is a name that an object gets (create, open, link, rename), a loss one that it gives up
(unlink, rename) or that another object takes over. Directory renames move every name below.
"""

from __future__ import annotations

import bisect
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tracehint.analyzer.arrays import Bools, Ints, ints, order_by, starts_of
from tracehint.analyzer.flow.model import Rows

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass
class Turns(Rows):
    """Names gained and lost: `path` is an index into the distinct paths."""

    obj: Ints
    path: Ints
    t: Ints
    seq: Ints
    gain: Bools


@dataclass
class Held(Rows):
    """Distinct (object, path): when it was gained last, and until when (or still) held."""

    obj: Ints
    path: Ints
    gained: Ints  # nanoseconds
    gained_seq: Ints
    lost: Ints  # nanoseconds; meaningless while `held`
    held: Bools


@dataclass
class NameRows:
    """Rows of the bundle's `names`, in order: objects (UNKNOWN: not a data file) and names."""

    obj: Ints
    directory: Bools
    t: Ints
    seq: Ints
    op: list[str]  # op names by code
    code: Ints
    path: pa.Array
    new_path: pa.Array


def history(rows: NameRows, scope: Ints) -> tuple[Held, pa.Array]:
    """Who held which name until when, and the distinct names (binary).

    `scope` is per object: names are compared within one scope only (a host, a shared mount).
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    two = pa.concat_arrays([rows.path, pc.fill_null(rows.new_path, b"")]).dictionary_encode()
    codes = ints(two.indices.to_numpy(zero_copy_only=False))
    distinct = two.dictionary
    old, new = codes[: len(rows.obj)], codes[len(rows.obj) :]
    turns = _turns(rows, old, new)
    moves = _directory_moves(rows)
    if moves:
        turns, distinct = _move_below(turns, distinct, moves)
    return _held(turns, scope), distinct


def _turns(rows: NameRows, old: Ints, new: Ints) -> Turns:
    def is_op(*names: str) -> Bools:
        wanted = [i for i, name in enumerate(rows.op) if name in names]
        return np.isin(rows.code, wanted) & (rows.obj >= 0)

    def part(where: Bools, path: Ints, gain: bool) -> Turns:
        at = np.flatnonzero(where)
        return Turns(
            rows.obj[at], path[at], rows.t[at], 2 * rows.seq[at] + gain, np.full(len(at), gain)
        )

    return Turns.joined(
        [
            part(is_op("open", "create"), old, True),
            part(is_op("rename", "exchange"), old, False),
            part(is_op("rename", "exchange", "link"), new, True),
            part(is_op("unlink"), old, False),
            *_partners(rows, old, new),
        ]
    )


def _partners(rows: NameRows, old: Ints, new: Ints) -> list[Turns]:
    """An exchange moves the other file too; one row may stand for both."""
    parts = []
    for i in np.flatnonzero(rows.code == _code(rows.op, "exchange")).tolist():
        before = (old == new[i]) | ((new == new[i]) & (rows.new_path.is_valid().to_numpy(False)))
        before &= (rows.obj >= 0) & (rows.obj != rows.obj[i]) & (rows.seq < rows.seq[i])
        found = np.flatnonzero(before)
        if len(found):
            other = rows.obj[found[np.argmax(rows.seq[found])]]
            both = ints([new[i], old[i]])
            seq = 2 * rows.seq[i] + ints([0, 1])
            t = np.repeat(rows.t[i], 2)
            parts.append(Turns(np.repeat(other, 2), both, t, seq, np.array([False, True])))
    return parts


def _code(ops: list[str], name: str) -> int:
    return ops.index(name) if name in ops else -1


def _directory_moves(rows: NameRows) -> list[tuple[int, int, bytes, bytes]]:
    """(t, seq, old, new) of every directory that was renamed, in order."""
    moved = np.isin(rows.code, [_code(rows.op, "rename"), _code(rows.op, "exchange")])
    at = np.flatnonzero(moved & rows.directory)
    found = []
    for i in at[np.lexsort((rows.seq[at], rows.t[at]))].tolist():
        old, new = rows.path[i].as_py(), rows.new_path[i].as_py()
        if old and new and old != new:
            found.append((int(rows.t[i]), int(rows.seq[i]), old, new))
    return found


def _holders(turns: Turns) -> dict[int, list[tuple[int, int, int, bool]]]:
    """Per name when which object gained or lost it."""
    holders: dict[int, list[tuple[int, int, int, bool]]] = {}
    columns = (turns.obj, turns.path, turns.t, turns.seq, turns.gain)
    for obj, path, t, seq, gain in zip(*(c.tolist() for c in columns), strict=True):
        holders.setdefault(path, []).append((t, seq, obj, gain))
    return holders


def _move_below(
    turns: Turns, distinct: pa.Array, moves: list[tuple[int, int, bytes, bytes]]
) -> tuple[Turns, pa.Array]:
    """Names below renamed directories, as further losses and gains.

    Only the names below one of the directories are looked at, by bisection.
    """
    import pyarrow as pa

    paths: list[bytes] = distinct.to_pylist()
    known = {path: i for i, path in enumerate(paths)}
    holders = _holders(turns)
    ordered = sorted(paths)
    added: list[tuple[int, int, int, int, bool]] = []
    for t, seq, old, new in moves:
        low = bisect.bisect_left(ordered, old + b"/")
        high = bisect.bisect_left(ordered, old + b"0")  # "0" follows "/"
        for name in ordered[low:high]:
            past = [h for h in holders.get(known[name], ()) if h[:2] < (t, 2 * seq)]
            if not past or not max(past)[3]:
                continue
            target = new + name[len(old) :]
            if target not in known:
                known[target] = len(paths)
                paths.append(target)
                bisect.insort(ordered, target)
            obj = max(past)[2]
            for path, gain in ((known[name], False), (known[target], True)):
                added.append((obj, path, t, 2 * seq + gain, gain))
                holders.setdefault(path, []).append((t, 2 * seq + gain, obj, gain))
    columns = np.array(added, np.int64).reshape(-1, 5).T
    more = Turns(columns[0], columns[1], columns[2], columns[3], columns[4].astype(bool))
    return Turns.joined([turns, more]), pa.array(paths, pa.binary())


def _held(turns: Turns, scope: Ints) -> Held:
    """One row per (object, path) from the turns of every name."""
    turns = turns.take(order_by(scope[turns.obj], turns.path, turns.t, turns.seq))
    # an unlink that is reported after another object took the name ends nothing
    stale = ~turns.gain
    stale[1:] &= turns.gain[:-1] & (turns.obj[1:] != turns.obj[:-1])
    stale[1:] &= turns.path[1:] == turns.path[:-1]
    stale[:1] = False
    turns = turns.take(~stale)
    place, n = scope[turns.obj], len(turns)
    followed = np.zeros(n, bool)
    followed[:-1] = (place[1:] == place[:-1]) & (turns.path[1:] == turns.path[:-1])
    # per pair the last gain, or the last loss if it never had a gain
    pairs = order_by(turns.obj, turns.path, turns.gain.astype(np.int64), np.arange(n))
    first = starts_of(turns.obj[pairs], turns.path[pairs])
    at = pairs[np.append(first[1:], n)[: len(first)] - 1]
    lost = turns.t[np.minimum(at + 1, n - 1)] if n else at
    held = turns.gain[at] & ~followed[at]
    lost = np.where(turns.gain[at] & followed[at], lost, turns.t[at])
    return Held(turns.obj[at], turns.path[at], turns.t[at], turns.seq[at], lost, held)
