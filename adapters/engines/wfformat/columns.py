"""The tables of a WfFormat instance, collected in columns: a million tasks fit into memory.

Texts are stored in Arrow dictionaries, one per batch; at the end these are unified, so that equal
texts have equal numbers. The tables keep the dictionaries (`DeclaredGraph.plain` decodes them).
"""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from tracehint.adapters.engines.graph_base import MAX_WORD, DeclaredGraph, clean
from tracehint.limits import check
from tracehint.schemas.wording import plural

if TYPE_CHECKING:
    import pyarrow as pa

ENGINE = "wfformat"
PLACED = "no start times in the file: tasks are placed where their parents ended"
_MAX_HOSTS = 4096  # a bundle has one folder per host
_EXECUTED = ("start", "length", "read", "written", "cpu")


class WfColumns:
    """Collector of tasks, files and executions, in any order."""

    def __init__(self) -> None:
        self.skipped = 0
        self._tasks, self._types, self._executed = TextColumn(), TextColumn(), TextColumn()
        self._hosts, self._commands, self._files = TextColumn(), TextColumn(), TextColumn()
        self._parents, self._children, self._ins, self._outs = (TextLists() for _ in range(4))
        self._sizes = array("q")
        self._ran = {name: array("q") for name in _EXECUTED}

    @property
    def count(self) -> int:
        """Number of tasks so far."""
        return self._tasks.count

    def task(
        self,
        task: str,
        kind: str,
        parents: list[str],
        children: list[str],
        ins: list[str],
        outs: list[str],
    ) -> None:
        """Add a task with names of other tasks and of files. Raises InputError (limit rows)."""
        self._tasks.extend([task])
        self._types.extend([kind])
        self._parents.add(parents)
        self._children.add(children)
        self._ins.add(list(dict.fromkeys(ins)))
        self._outs.add(list(dict.fromkeys(outs)))

    def size(self, file: str, size: int | None) -> None:
        """Set the size of a file in bytes; the last call for a file applies."""
        self._files.extend([file])
        self._sizes.append(UNKNOWN if size is None or size < 0 else size)

    def ran(
        self,
        task: str,
        *,
        command: str,
        start_ns: int | None,
        length_ns: int | None,
        read_bytes: int | None,
        written_bytes: int | None,
        cpu_ns: int | None,
        host: str,
    ) -> None:
        """Add a task's execution. Negative values count as unknown."""
        self._executed.extend([task])
        self._hosts.extend([host or "unknown"])
        self._commands.extend([command])
        values = (start_ns, length_ns, read_bytes, written_bytes, cpu_ns)
        for column, value in zip(self._ran.values(), values, strict=True):
            column.append(UNKNOWN if value is None or value < 0 else value)

    def graph(self, started_ns: int, ended_ns: int | None) -> DeclaredGraph:
        """Return the tables; this object is empty afterwards. Raises InputError."""
        notes = []
        owners = self._parents.owners(), self._children.owners()
        (task, parent, child, ran), names = unite_texts(
            self._tasks, self._parents.texts, self._children.texts, self._executed
        )
        task_of = np.full(len(names), UNKNOWN, np.int32)  # name -> first task of that name
        task_of[task[::-1]] = np.arange(len(task), dtype=np.int32)[::-1]
        kept = task_of[task] == np.arange(len(task))
        skipped = self.skipped + int((~kept).sum())
        if skipped:
            notes.append(f"{plural(skipped, 'task')} left out: no name, or a name that was used")
        pairs = _edges(task, task_of, kept, (owners[0], parent), (owners[1], child))
        row = np.full(len(task), UNKNOWN)  # last execution of each task
        of = task_of[ran]
        row[of[of >= 0]] = np.flatnonzero(of >= 0)
        seen = {k: _take_values(np.frombuffer(v, np.int64), row) for k, v in self._ran.items()}
        inside = task_of[pairs[1]] >= 0
        begin, end = place(
            task_of[pairs[1][inside]], pairs[0][inside], seen["start"], seen["length"], started_ns
        )
        placed = bool(((begin != seen["start"]) & (begin != UNKNOWN) & kept).any())
        if placed:
            notes.append(PLACED)
        del owners, parent, child, ran, of, inside
        give_back()
        io = self._io(task, names, kept)
        give_back()
        seen |= {"begin": begin, "end": end, "row": row, "name": task}
        tasks = self._table(names, pairs, seen, notes).filter(_mask(kept))
        known = begin[kept & (begin != UNKNOWN)]
        first = started_ns or (int(known.min()) if len(known) else 0)
        give_back()
        return DeclaredGraph(ENGINE, tasks, io, b"/", first, ended_ns, tuple(notes), placed)

    def _io(self, task: Ints, names: pa.Array, kept: npt.NDArray[Any]) -> pa.Table:
        import pyarrow as pa
        import pyarrow.compute as pc

        owner = np.concatenate([self._ins.owners(), self._outs.owners()])
        (ins, outs, files), paths = unite_texts(self._ins.texts, self._outs.texts, self._files)
        size = np.full(len(paths), UNKNOWN)
        size[files] = np.frombuffer(self._sizes, np.int64)
        path = np.concatenate([ins, outs])
        out = np.repeat([False, True], [len(ins), len(outs)])
        wanted = kept[owner]
        owner, path, out = owner[wanted], path[wanted], out[wanted]
        order = np.lexsort((out, owner)).astype(np.int32)
        owner, path, out = owner[order], path[order], out[order]
        del ins, outs, files, order, wanted
        full = pc.binary_join_element_wise("/", paths, "")
        absolute = pc.if_else(pc.starts_with(paths, "/"), paths, full).cast(pa.binary())
        del full, paths
        columns = {
            "host": _repeat_text("unknown", len(path)),
            "task": _dictionary_column(names, task[owner]),
            "path": _dictionary_column(absolute, path),
            "direction": _dictionary_column(pa.array(["in", "out"]), out),
            "size_bytes": _numbers(size[path]),
        }
        return pa.table(columns)

    def _table(
        self, names: pa.Array, pairs: tuple[Ints, Ints], seen: dict[str, Ints], notes: list[str]
    ) -> pa.Table:
        import pyarrow as pa

        count, row = len(seen["name"]), seen["row"]
        ends = np.searchsorted(pairs[0], np.arange(count + 1)).astype(np.int32)
        task = _dictionary_column(names, seen["name"])
        kinds, types = unite_texts(self._types)
        commands, texts = unite_texts(self._commands)
        hosts, machines = unite_texts(self._hosts)
        if len(machines) > _MAX_HOSTS:
            notes.append(f"more than {_MAX_HOSTS:,} machines: their names are left out")
            hosts, machines = [np.zeros_like(hosts[0])], pa.array(["unknown"])
        nothing = pa.nulls(count, pa.int32())
        columns = {
            "host": _default(machines, "unknown", hosts[0], row),
            "task": task,
            "name": task,
            "type": _dictionary_column(types, kinds[0]),
            "command": _default(texts.cast(pa.binary()), b"", commands[0], row),
            "workdir": pa.nulls(count, pa.binary()),
            "pid": nothing,
            "start_ns": _numbers(seen["begin"]),
            "end_ns": _numbers(seen["end"]),
            "exit_status": nothing,
            "attempt": np.ones(count, np.int32),
            "parents": pa.ListArray.from_arrays(ends, names.take(pa.array(pairs[1]))),
            "read_bytes": _numbers(seen["read"]),
            "written_bytes": _numbers(seen["written"]),
            "engine": _repeat_text(ENGINE, count),
            "cpu_ns": _numbers(seen["cpu"]),
            "cores": nothing,
            **dict.fromkeys(("memory_bytes", "peak_bytes"), nothing),
        }
        return pa.table(columns)


def _edges(
    name: Ints,
    task_of: Ints,
    kept: npt.NDArray[Any],
    parents: tuple[Ints, Ints],
    children: tuple[Ints, Ints],
) -> tuple[Ints, Ints]:
    """Return unique (task, name of its parent), sorted by task; a task's own list comes first."""
    own = kept[parents[0]]
    given = kept[children[0]] & (task_of[children[1]] >= 0)
    task = np.concatenate([parents[0][own], task_of[children[1][given]]])
    parent = np.concatenate([parents[1][own], name[children[0][given]]])
    key = task.astype(np.int64) * len(task_of) + parent
    _, once = np.unique(key, return_index=True)
    once.sort()
    order = once[np.argsort(task[once], kind="stable")]
    return task[order], parent[order]


def _take_values(values: Ints, at: Ints) -> Ints:
    """Return values[at], or UNKNOWN if `at` is UNKNOWN."""
    if not len(values):
        return np.full(len(at), UNKNOWN)
    return np.where(at >= 0, values[at], UNKNOWN)


def _mask(wanted: npt.NDArray[Any]) -> pa.Array:
    import pyarrow as pa

    return pa.array(wanted)


def _numbers(values: Ints) -> pa.Array:
    import pyarrow as pa

    return pa.array(values, pa.int64(), mask=values == UNKNOWN)


def _dictionary_column(texts: pa.Array, at: npt.NDArray[Any]) -> pa.Array:
    import pyarrow as pa

    return pa.DictionaryArray.from_arrays(pa.array(at.astype(np.int32)), texts)


def _repeat_text(text: str, count: int) -> pa.Array:
    import pyarrow as pa

    return _dictionary_column(pa.array([text]), np.zeros(count, np.int32))


def _default(texts: pa.Array, other: Any, numbers: Ints, row: Ints) -> pa.Array:
    """Return the text of each row, or `other` for tasks without a row."""
    import pyarrow as pa

    both = pa.concat_arrays([texts, pa.array([other], texts.type)])
    at = np.where(row >= 0, numbers[row], len(texts)) if len(numbers) else np.zeros(len(row))
    return _dictionary_column(both, at)


# Columns of texts, each stored once, in Arrow dictionaries that are unified at the end.


Ints = npt.NDArray[Any]  # text and task numbers have 32 bits, times and sizes 64
_BATCH = 1 << 15
_RELEASE = 64  # batches after which freed memory is returned


class TextColumn:
    """A column of texts."""

    def __init__(self) -> None:
        self.count = 0
        self._batch: list[str] = []
        self._chunks: list[pa.Array] = []

    def extend(self, texts: list[str]) -> None:
        """Append texts. Raise InputError beyond the limit rows."""
        self._batch += texts
        self.count += len(texts)
        if len(self._batch) >= _BATCH:
            self._pack()
            check("rows", "the workflow", self.count)

    def _pack(self) -> None:
        import pyarrow as pa

        texts = self._batch
        self._batch = []
        if max(map(len, texts), default=0) > MAX_WORD:
            texts = [clean(t) for t in texts]
        try:
            packed = pa.array(texts, pa.string())
        except UnicodeEncodeError:  # surrogates from escapes in JSON
            packed = pa.array([clean(t) for t in texts], pa.string())
        self._chunks.append(packed.dictionary_encode())
        if len(self._chunks) % _RELEASE == 0:
            give_back()

    def chunks(self) -> list[pa.Array]:
        """Return the dictionary-encoded batches; the column is empty afterwards."""
        if self._batch or not self._chunks:
            self._pack()
        chunks, self._chunks = self._chunks, []
        return chunks


def unite_texts(*columns: TextColumn) -> tuple[list[Ints], pa.Array]:
    """Return one dictionary for all columns, and each column's text numbers in it."""
    import pyarrow as pa

    counts = [c.count for c in columns]
    whole = pa.chunked_array([chunk for c in columns for chunk in c.chunks()])
    whole = whole.unify_dictionaries()
    numbers = np.concatenate([c.indices.to_numpy(zero_copy_only=False) for c in whole.chunks])
    texts = whole.chunk(0).dictionary
    del whole
    give_back()
    return np.split(numbers, np.cumsum(counts)[:-1]), texts


def give_back() -> None:
    """Return freed memory to the system before the next step allocates more."""
    import pyarrow as pa

    pa.default_memory_pool().release_unused()


class TextLists:
    """One list of texts per task."""

    def __init__(self) -> None:
        self.texts, self.ends = TextColumn(), array("q")

    def add(self, texts: list[str]) -> None:
        self.texts.extend(texts)
        self.ends.append(self.texts.count)

    def owners(self) -> Ints:
        """Return the task of every entry."""
        ends = np.frombuffer(self.ends, np.int64)
        counts = ends - np.concatenate([[0], ends[:-1]])
        return np.repeat(np.arange(len(ends), dtype=np.int32), counts)


# Placement in time of tasks with a known runtime and order only.


UNKNOWN = -1
_LAST = 2**63 - 1


def place(parent: Ints, child: Ints, start: Ints, length: Ints, origin: int) -> tuple[Ints, Ints]:
    """Return (start, end) of each task in ns, UNKNOWN if neither given nor derivable.

    parent, child: pairs of task numbers. start, length: ns, UNKNOWN if unknown. A task without a
    start begins when its last parent has ended, a task without parents at `origin`: no real start
    can be earlier if the runtimes are right. Tasks of a cycle are not placed. Time is linear in
    tasks and pairs.
    """
    count = len(start)
    order = np.argsort(parent, kind="stable")
    below = _number_array(child[order])
    first = _number_array(np.searchsorted(parent[order], np.arange(count + 1)))
    waiting = _number_array(np.bincount(child, minlength=count))
    ready, ends = _number_array(np.full(count, origin)), _number_array(np.full(count, UNKNOWN))
    starts, lengths = _number_array(start), _number_array(length)
    todo = array("q", [task for task in range(count) if not waiting[task]])
    while todo:
        task = todo.pop()
        begin = starts[task]
        if begin == UNKNOWN and lengths[task] != UNKNOWN:
            begin = starts[task] = ready[task]
        end = ready[task] if begin == UNKNOWN else min(begin + max(0, lengths[task]), _LAST)
        if lengths[task] != UNKNOWN:
            ends[task] = end
        for at in range(first[task], first[task + 1]):
            other = below[at]
            if ready[other] < end:
                ready[other] = end
            waiting[other] -= 1
            if not waiting[other]:
                todo.append(other)
    return np.frombuffer(starts, np.int64), np.frombuffer(ends, np.int64)


def _number_array(values: Ints) -> array[int]:
    """Return an array: access by index is faster than in numpy, and it is smaller than a list."""
    found = array("q")
    found.frombytes(values.astype(np.int64).tobytes())
    return found
