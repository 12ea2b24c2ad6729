"""Execution in this process: extents in memory, or spilled to temporary files."""

from __future__ import annotations

import itertools
import pickle
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TypeVar

import numpy as np

from tracehint.analyzer.arrays import Bools, Ints, column, distinct
from tracehint.analyzer.dataflow.accesses import EpochTasks, Raw, read_extents
from tracehint.analyzer.dataflow.model import Access, Objects
from tracehint.analyzer.dataflow.partitions import Batch, Partitions
from tracehint.analyzer.execution.bundle_files import (
    NOT_NEEDED,
    BundleFiles,
    Folder,
    add_problems,
    files_at,
    read,
)
from tracehint.analyzer.execution.resources import Resources, compute_all, temporary_folder
from tracehint.analyzer.memory import give_back
from tracehint.errors import BundleError, UsageError
from tracehint.schemas.footer import rows_of
from tracehint.schemas.store import batches_of
from tracehint.schemas.wording import plural

if TYPE_CHECKING:
    import pyarrow as pa

    from tracehint.analyzer.dataflow.partitions import Execution
    from tracehint.schemas.store import Bundle


# Extents that do not fit into memory are read in batches and written to one file per partition.
#
# The bundle's Parquet files are read three times in batches: for sums, for objects and tasks, and
# to write the accesses of each partition of paths to a temporary file. Then each partition is
# computed. Results are kept in files as well: in memory, between the short-lived arrays of the
# partitions, they would prevent the allocator from reusing freed memory.
# Memory use depends on batch and partition size; temporary space is `ROW_BYTES` per extent.

# Column types of accesses in temporary files, where not int64.
_STORED = {"obj": np.int32, "task": np.int32, "op": np.int8, "exact": np.bool_, "how": np.int32}
_TYPES = [(f.name, np.dtype(_STORED.get(f.name, np.int64))) for f in fields(Access)]
ROW_BYTES = sum(kind.itemsize for _, kind in _TYPES)


def append_rows(path: Path, access: Access, rows: slice) -> None:
    """Append a block of rows to a file: their number, then column by column."""
    with path.open("ab") as stream:
        stream.write(np.int64(rows.stop - rows.start).tobytes())
        for name, kind in _TYPES:
            stream.write(getattr(access, name)[rows].astype(kind).data)


def pop_result(path: Path) -> Any:
    """Read and delete the result of a partition, a pickle written by this process."""
    with path.open("rb") as stream:
        found = pickle.load(stream)
    path.unlink()
    return found


def size_of(path: Path) -> int:
    """Return the size of a file in bytes; 0 if it does not exist."""
    return path.stat().st_size if path.exists() else 0


def read_rows(path: Path) -> Access:
    """Read all rows of a file written by `append_rows`, in the order in which they were added."""
    found = Access.empty()
    if not path.exists():
        return found
    with path.open("rb") as stream:
        # upper bound of the number of rows: each block also has a head of eight bytes
        most = path.stat().st_size // ROW_BYTES
        for name, kind in _TYPES:
            setattr(found, name, np.empty(most, bool if kind.kind == "b" else np.int64))
        at = 0
        while head := stream.read(8):
            count = int(np.frombuffer(head, np.int64)[0])
            for name, kind in _TYPES:
                getattr(found, name)[at : at + count] = np.fromfile(stream, kind, count)
            at += count
    return found if at == most else found.take(np.arange(at))


T = TypeVar("T")
BATCH = 1 << 20  # extents per batch
LARGE_PARTITION = 1 << 27  # partitions with more bytes of accesses are computed one at a time


class SpilledExtents:
    """`Execution` on the Parquet files of a bundle. A context manager that removes the temporary
    files on exit. `problems` lists damaged files, which are omitted entirely."""

    def __init__(self, files: BundleFiles, resources: Resources) -> None:
        self.resources, self.problems = resources, list[str]()
        self._opened = ExitStack()
        self._files, self._names = files, list[str]()
        self._rows = 0
        self._last: int | None = None
        self._opens, self._procs = [np.empty(0, np.int64)], [np.empty((2, 0), np.int64)]
        for name, file in files.open(files.segments("extents")):
            self._add_sums(file, name)

    def __enter__(self) -> SpilledExtents:
        return self

    def __exit__(self, *_: object) -> None:
        self._opened.close()

    def _add_sums(self, file: Path | BinaryIO, name: str) -> None:
        """Add the sums over one file, unless it is damaged."""
        rows, last, opens, procs = 0, [], [], []
        for batch in batches_of("extents", file, name, self.problems, _unneeded_columns(), BATCH):
            if batch is None:
                return
            rows += batch.num_rows
            last.append(int(column(batch, "last_ns").max(initial=np.iinfo(np.int64).min)))
            opens.append(distinct(column(batch, "open")))
            proc = np.sort(column(batch, "proc"))
            first = np.flatnonzero(np.append(True, proc[1:] != proc[:-1])[: len(proc)])
            procs.append(np.stack([proc[first], np.diff(np.append(first, len(proc)))]))
            self.resources.tell("scanning the accesses", self._rows + rows, 0, "accesses")
        self._names.append(name)
        self._rows += rows
        self._opens += opens
        self._procs += procs
        if rows:
            self._last = max(last if self._last is None else [*last, self._last])

    def batches(self) -> Iterator[tuple[int, pa.Table]]:
        """Yield (row of the first extent, extents) per batch."""
        row = 0
        for name, file in self._files.open(self._names):
            changed: list[str] = []
            for batch in batches_of("extents", file, name, changed, _unneeded_columns(), BATCH):
                if batch is None:
                    raise BundleError(
                        f"{changed[0]}: became unreadable during the analysis",
                        "Is a program writing into the bundle? Analyze a copy.",
                    )
                yield row, batch
                row += batch.num_rows

    def look(self, objects: Objects, known: EpochTasks, notes: list[str]) -> SpilledAccesses:
        return SpilledAccesses(self, objects, known, notes)

    def rows(self) -> int:
        return self._rows

    def last_ns(self) -> int | None:
        return self._last

    def opens(self) -> Ints:
        return np.concatenate(self._opens)

    def by_process(self) -> pa.Table:
        import pyarrow as pa

        proc, count = np.concatenate(self._procs, axis=1)
        counted = pa.table({"proc": proc, "count": count}).group_by("proc")
        return counted.aggregate([("count", "sum")]).rename_columns(["proc", "count"])

    def space(self) -> int:
        """Return the temporary space that all accesses need, in bytes."""
        return self._rows * ROW_BYTES

    def folder(self) -> Path:
        """Create a directory for temporary files. Raises BundleError without enough free space."""
        fresh = temporary_folder("tracehint-accesses-", self.resources.folder)
        path = self._opened.enter_context(fresh)
        if shutil.disk_usage(path).free < self.space():
            raise self.space_error(path, "not enough free space")
        return path

    @contextmanager
    def writing(self, folder: Path) -> Iterator[None]:
        """Convert an OSError (full disk) to a BundleError that names a remedy."""
        try:
            yield
        except OSError as error:
            raise self.space_error(folder, error.strerror or str(error)) from None

    def space_error(self, folder: Path, why: str) -> BundleError:
        """Return the error for a directory without space for the temporary files."""
        return BundleError(
            f"{folder.parent}: {self.space() / 2**30:.1f} GiB of temporary space needed: {why}",
            "Set TMPDIR to a directory with more space, or raise --memory-limit.",
        )


def _unneeded_columns() -> tuple[str, ...]:
    return NOT_NEEDED["extents"]


class SpilledAccesses:
    """`Accesses` of spilled extents."""

    def __init__(
        self, extents: SpilledExtents, objects: Objects, known: EpochTasks, notes: list[str]
    ) -> None:
        self._extents, self._objects, self._known = extents, objects, known
        self._number: Ints | None = None
        self._folder: Path | None = None
        count = len(objects)
        self._per_object, self._touched = np.zeros(count, np.int64), np.zeros(count + 1, bool)
        self._per_task = np.zeros(0, np.int64)
        lost = 0
        for _, raw, damaged in self._scan("reading the accesses"):
            lost += damaged
            self._per_object += np.bincount(raw.obj[raw.rows], minlength=count)
            self._touched[raw.obj] = True
            mine = np.bincount(raw.task[raw.rows], minlength=len(self._per_task))
            mine[: len(self._per_task)] += self._per_task
            self._per_task = mine
        if lost:
            notes.append(f"{plural(lost, 'damaged access record')} left out")

    def _scan(self, stage: str) -> Iterator[tuple[int, Raw, int]]:
        """Yield (first row, extents with objects and tasks, number of damaged rows) per batch."""
        done, total = 0, self._extents.rows()
        for row, batch in self._extents.batches():
            raw, damaged = read_extents(batch, self._objects, self._known)
            if self._number is not None:
                raw.obj = np.append(self._number, -1).astype(np.int32)[raw.obj]
            yield row, raw, damaged
            done += batch.num_rows
            self._extents.resources.tell(stage, done, total, "accesses")

    def _select_accesses(self, chosen: Callable[[Raw], Bools]) -> Access:
        found = [Access.empty()]
        for row, raw, _ in self._scan("reading the accesses"):
            access = raw.access(raw.rows[chosen(raw)])
            access.seq = access.seq + row
            found.append(access)
        return Access.concat_parts(found)

    def of_tasks(self, chosen: Bools) -> Access:
        if not self._per_task[chosen[: len(self._per_task)].nonzero()].any():
            return Access.empty()
        return self._select_accesses(lambda raw: chosen[raw.task[raw.rows]])

    def of_objects(self, chosen: Bools) -> Access:
        return self._select_accesses(lambda raw: chosen[raw.obj[raw.rows]])

    def per_object(self) -> Ints:
        return self._per_object

    def find_touched(self) -> Bools:
        return self._touched[:-1]

    def renumber(self, number: Ints) -> None:
        self._number = number if self._number is None else number[self._number]
        order = np.argsort(number)
        self._per_object = self._per_object[order]
        self._touched = np.append(self._touched[:-1][order], self._touched[-1])

    def compute(
        self, partitions: Partitions, work: Callable[[Batch], T], only: Ints | None = None
    ) -> list[T]:
        folder = self._folder = self._folder or self._spill(partitions)

        def solve(i: int) -> None:
            found = work(partitions.frame(i).fill_batch(read_rows(folder / str(i))))
            with self._extents.writing(folder), (folder / f"{i}.result").open("wb") as stream:
                pickle.dump(found, stream, protocol=5)

        chosen = range(len(partitions)) if only is None else only.tolist()
        sizes = {i: size_of(folder / str(i)) for i in chosen}
        many = [i for i in chosen if sizes[i] <= LARGE_PARTITION]
        given = self._extents.resources
        compute_all(solve, many, given, "computing the data flow")
        # large partitions one at a time, to limit memory
        alone = [i for i in chosen if sizes[i] > LARGE_PARTITION]
        compute_all(
            solve, alone, replace(given, threads=1), "computing the data flow of large files"
        )
        return [pop_result(folder / f"{i}.result") for i in chosen]

    def _spill(self, partitions: Partitions) -> Path:
        """Write the accesses of each partition to a file named by its number."""
        folder, of_object = self._extents.folder(), partitions.of_object()
        stage = f"writing {self._extents.space() / 2**30:.1f} GiB of temporary files"
        for row, raw, _ in self._scan(stage):
            number = of_object[raw.obj[raw.rows]]
            order = np.argsort(number, kind="stable")
            access = raw.access(raw.rows[order])
            access.seq = access.seq + row
            first = np.flatnonzero(np.append(True, np.diff(number[order]) != 0)[: len(order)])
            with self._extents.writing(folder):
                for low, high in itertools.pairwise([*first.tolist(), len(order)]):
                    append_rows(folder / str(number[order[low]]), access, slice(low, high))
        return folder


EXTENT_BYTES = 200  # bytes of memory per extent during the data flow analysis


def run_at(
    where: str,
    work: Callable[[Bundle, Execution | None], T],
    master: str | None = None,
    resources: Resources | None = None,
) -> T:
    """Call `work` on the bundle at a path or URL, and on its extents if they are spilled."""
    resources = resources or Resources()
    if master is not None:
        raise UsageError("--master: the local backend runs in one process", "Add --backend spark.")
    files = files_at(where)
    if _too_large(files, resources.memory):
        return _in_batches(files, work, resources)
    # No reference to the bundle is kept here, so that `work` can free it before the labelling.
    return work(_release_reading_memory(read(files)), None)


def _release_reading_memory(bundle: Bundle) -> Bundle:
    """Return the memory used for reading to the system, and the bundle."""
    give_back()
    return bundle


def _too_large(files: BundleFiles, memory: int | None) -> bool:
    """Whether the extents would need more than half of the memory limit. Bundles of a killed
    recorder are always converted in memory."""
    if memory is None or (isinstance(files, Folder) and files.was_killed()):
        return False
    found = (file for _, file in files.open(files.segments("extents")))
    return rows_of(found) * EXTENT_BYTES > memory // 2


def _in_batches(
    files: BundleFiles, work: Callable[[Bundle, Execution | None], T], resources: Resources
) -> T:
    from tracehint.analyzer.execution.local import SpilledExtents

    bundle = read(files, without=("extents",))
    with SpilledExtents(files, resources) as extents:
        add_problems(bundle, extents.problems)
        return work(bundle, extents)


class LocalExtents:
    """`Execution` on the Arrow table `extents`."""

    def __init__(self, table: pa.Table, resources: Resources | None = None) -> None:
        self._table, self._resources = table, resources or Resources()

    def look(self, objects: Objects, known: EpochTasks, notes: list[str]) -> LocalAccesses:
        raw, damaged = read_extents(self._table, objects, known)
        # the other columns are in `raw` or no longer needed
        self._table = self._table.select(["open", "proc", "last_ns"])
        raw.table = raw.table.schema.empty_table()
        give_back()
        if damaged:
            notes.append(f"{plural(damaged, 'damaged access record')} left out")
        return LocalAccesses(raw, len(objects), self._resources)

    def rows(self) -> int:
        return int(self._table.num_rows)

    def last_ns(self) -> int | None:
        import pyarrow.compute as pc

        last: int | None = pc.max(self._table.column("last_ns")).as_py()
        return last

    def opens(self) -> Ints:
        return column(self._table, "open")

    def by_process(self) -> pa.Table:
        counted = self._table.select(["proc"]).group_by("proc").aggregate([([], "count_all")])
        return counted.rename_columns(["proc", "count"])


class LocalAccesses:
    """`Accesses` of extents in memory, with their objects and tasks in `raw`."""

    def __init__(self, raw: Raw, objects: int, resources: Resources) -> None:
        self._raw, self._objects, self._resources = raw, objects, resources

    def of_tasks(self, chosen: Bools) -> Access:
        rows = self._raw.rows
        return self._raw.access(rows[chosen[self._raw.task[rows]]])

    def of_objects(self, chosen: Bools) -> Access:
        rows = self._raw.rows
        return self._raw.access(rows[chosen[self._raw.obj[rows]]])

    def per_object(self) -> Ints:
        return np.bincount(self._raw.obj[self._raw.rows], minlength=self._objects)

    def find_touched(self) -> Bools:
        touched = np.zeros(self._objects + 1, bool)
        touched[self._raw.obj] = True
        return touched[:-1]

    def renumber(self, number: Ints) -> None:
        self._raw.obj = np.append(number, -1).astype(np.int32)[self._raw.obj]

    def compute(
        self, partitions: Partitions, work: Callable[[Batch], T], only: Ints | None = None
    ) -> list[T]:
        raw = self._raw
        number = partitions.of_object()[raw.obj[raw.rows]]
        order = np.argsort(number, kind="stable")
        cuts = np.searchsorted(number[order], np.arange(len(partitions) + 1))
        chosen = range(len(partitions)) if only is None else only.tolist()

        def solve(i: int) -> T:
            return work(
                partitions.frame(i).fill_batch(raw.access(raw.rows[order[cuts[i] : cuts[i + 1]]]))
            )

        return compute_all(solve, chosen, self._resources, "computing the data flow")
