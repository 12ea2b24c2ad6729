"""Task names given by the user (TRACEHINT_TASK, `tracehint task`), which take precedence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tracehint.analyzer.arrays import column, positions
from tracehint.analyzer.tasks.tree import NEVER, Bools, Ints, Tree, jump

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class GivenNames:
    """Per epoch the index of its given name in `texts`, -1 for none.

    `attempt` and `top` are per name: one entry of `texts` is one attempt of one name.
    """

    of: Ints
    texts: tuple[str, ...]
    attempt: tuple[int, ...]
    top: Ints  # first epoch of each


def environment(processes: pa.Table, variable: str) -> tuple[Ints, list[bytes]]:
    """Return the code of each epoch's own value of the variable (-1: not set), and the values."""
    import pyarrow as pa
    import pyarrow.compute as pc

    result = np.full(processes.num_rows, -1, np.int64)
    env = processes.column("env").combine_chunks()
    if isinstance(env, pa.ChunkedArray):
        return result, []
    rows = pc.list_parent_indices(env).to_numpy(zero_copy_only=False)
    flat = env.flatten()
    hit = np.flatnonzero(
        pc.fill_null(pc.equal(flat.field("name"), variable), False).to_numpy(zero_copy_only=False)
    )
    if not len(hit):
        return result, []
    values = flat.field("value").take(pa.array(hit)).dictionary_encode()
    result[rows[hit]] = values.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    return result, values.dictionary.to_pylist()


def given_names(processes: pa.Table, marks: pa.Table, tree: Tree) -> GivenNames | None:
    """Return the names by TRACEHINT_TASK and marks, inherited downwards; None if there are none."""
    value, values = environment(processes, "TRACEHINT_TASK")
    texts = [v.decode("utf-8", "backslashreplace") for v in values]
    _add_marks(value, texts, marks, tree)
    if not texts or not (value >= 0).any():
        return None
    empty = np.array([not t.strip() for t in texts])
    value[(value >= 0) & empty[np.maximum(value, 0)]] = -1
    resolved = value[jump(tree.up, value >= 0)]
    up = tree.up
    top = np.flatnonzero((resolved >= 0) & ((up < 0) | (resolved[np.maximum(up, 0)] != resolved)))
    if not len(top):  # links in a cycle: a damaged bundle
        return None
    return _attempts(tree, processes, resolved, top, texts)


def _add_marks(value: Ints, texts: list[str], marks: pa.Table, tree: Tree) -> None:
    """Apply marks in place: the only mark of an epoch names it; several marks (a worker that runs
    one task after another) name the children that start while each is open."""
    begins: dict[int, list[tuple[int, str]]] = {}
    ends: dict[int, list[int]] = {}
    rows = zip(
        positions(tree.proc, column(marks, "proc", -1)).tolist(),
        column(marks, "t_ns", 0).tolist(),
        marks.column("kind").to_pylist(),
        marks.column("name").to_pylist(),
        strict=True,
    )
    for epoch, t, kind, name in rows:
        if epoch >= 0 and kind == "task_begin":
            begins.setdefault(epoch, []).append((t, name))
        elif epoch >= 0:
            ends.setdefault(epoch, []).append(t)
    codes = {text: i for i, text in reversed(list(enumerate(texts)))}
    for epoch, opened in begins.items():
        for _, name in opened:
            if name not in codes:
                codes[name] = len(texts)
                texts.append(name)
        if len(opened) == 1:
            value[epoch] = codes[opened[0][1]] if value[epoch] < 0 else value[epoch]
            continue
        kids, _ = tree.kids(np.array([epoch]))
        _name_kids(value, kids, sorted(opened), sorted(ends.get(epoch, [])), codes, tree)


def _name_kids(
    value: Ints,
    kids: Ints,
    opened: list[tuple[int, str]],
    ends: list[int],
    codes: dict[str, int],
    tree: Tree,
) -> None:
    times = np.array([t for t, _ in opened])
    closed = np.array([next((e for e in ends if e >= t), NEVER) for t, _ in opened])
    at = np.searchsorted(times, tree.start[kids], side="right") - 1
    inside = (at >= 0) & (tree.start[kids] <= closed[np.maximum(at, 0)])
    names = np.array([codes[name] for _, name in opened])
    free = inside & (value[kids] < 0)
    value[kids[free]] = names[at[free]]


def _attempts(
    tree: Tree, processes: pa.Table, resolved: Ints, top: Ints, texts: list[str]
) -> GivenNames:
    """Split each name into attempts: a new one starts after the previous one ended in failure."""
    failed = failed_processes(processes, tree)
    order = top[np.lexsort((tree.start[top], resolved[top]))]
    number = np.empty(len(order), np.int64)
    names: list[str] = []
    attempts: list[int] = []
    tops: list[int] = []
    last_end, last_failed, last_name = 0, False, -1
    for i, epoch in enumerate(order.tolist()):
        name, start = int(resolved[epoch]), int(tree.start[epoch])
        again = name == last_name and last_failed and last_end <= start
        if name != last_name or again:
            names.append(texts[name])
            attempts.append(attempts[-1] + 1 if again else 1)
            tops.append(epoch)
            last_end, last_failed = 0, False
        number[i] = len(names) - 1
        last_name = name
        last_end = max(last_end, int(tree.end[_last_epoch(tree, epoch)]))
        last_failed |= bool(failed[epoch])
    per_epoch = np.full(len(tree.proc), -1, np.int64)
    per_epoch[order] = number
    of = np.where(resolved >= 0, per_epoch[jump(tree.up, per_epoch >= 0)], -1)
    return GivenNames(of, tuple(names), tuple(attempts), np.array(tops, np.int64))


def _last_epoch(tree: Tree, epoch: int) -> int:
    for _ in range(10_000):
        if tree.next[epoch] < 0:
            break
        epoch = int(tree.next[epoch])
    return epoch


def failed_processes(processes: pa.Table, tree: Tree) -> Bools:
    """Return per epoch whether its process ended with a code other than 0 or by a signal."""
    code = column(processes, "exit_code", 0)
    signal = column(processes, "exit_signal", 0)
    last = jump(tree.next)
    return np.asarray((code[last] != 0) | (signal[last] != 0), bool)
