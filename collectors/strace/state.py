"""State while a log is parsed: threads, names, files, and the rows created so far."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pyarrow as pa

from tracehint.collectors.strace.model import (
    AccessRun,
    Epoch,
    FdTable,
    FileRec,
    Fs,
    Group,
    MaybeCreation,
    Ofd,
    OpenRow,
    Runs,
    StraceSettings,
    Thread,
)
from tracehint.schemas.tables import ENV_MARKERS, TABLES

BATCH = 1 << 16


class Columns:
    """Row buffers of one host's tables; rows are in the order of the schema without `host`."""

    def __init__(self, host: str) -> None:
        self._host = host
        self._rows: dict[str, list[tuple[Any, ...]]] = {name: [] for name in TABLES}
        self._batches: dict[str, list[pa.RecordBatch]] = {name: [] for name in TABLES}
        self.extents = self._rows["extents"]  # the two tables that grow with the run
        self.opens = self._rows["opens"]

    def add(self, table: str, row: tuple[Any, ...]) -> None:
        """Append one row."""
        rows = self._rows[table]
        rows.append(row)
        if len(rows) >= BATCH:
            self._flush(table)

    def spill(self) -> None:
        """Convert full row buffers to record batches."""
        for table in ("extents", "opens"):
            if len(self._rows[table]) >= BATCH:
                self._flush(table)

    def _flush(self, table: str) -> None:
        rows = self._rows[table]
        if not rows:
            return
        schema = TABLES[table]
        columns = [pa.array([self._host] * len(rows), schema.field(0).type)]
        for field, values in zip(list(schema)[1:], zip(*rows, strict=True), strict=True):
            columns.append(pa.array(values, field.type))
        self._batches[table].append(pa.RecordBatch.from_arrays(columns, schema=schema))
        rows.clear()

    def tables(self) -> dict[str, pa.Table]:
        """Return all tables. The row buffers are empty afterwards."""
        for name in TABLES:
            self._flush(name)
        return {
            name: pa.Table.from_batches(self._batches[name], schema=schema)
            for name, schema in TABLES.items()
        }


_MAX_LINKS = 40  # as in the kernel
MAX_DEPTH = 2048  # components of a path; a 4096-byte path cannot have more


class Node:
    """One name. `fresh`: a directory created in this run, so unknown names below are absent."""

    __slots__ = ("absent", "children", "file", "fresh", "link", "stat")

    def __init__(self) -> None:
        self.children: dict[bytes, Node] = {}
        self.file: FileRec | None = None
        self.link: bytes | None = None  # target of a symbolic link created in this run
        self.fresh = False
        self.absent = False  # a call failed with ENOENT here
        self.stat: tuple[int, int, int] | None = None  # dev, ino, size from stat


def normal(path: bytes) -> bytes:
    """Remove `//`, `.` and `..` from an absolute path lexically."""
    if b"//" not in path and b"/." not in path and (path[-1:] != b"/" or path == b"/"):
        return path
    parts: list[bytes] = []
    for part in path.split(b"/"):
        if part == b"..":
            if parts:
                parts.pop()
        elif part and part != b".":
            parts.append(part)
    return b"/" + b"/".join(parts)


class NameTree:
    """The tree of names. All paths are absolute and normalised."""

    def __init__(self) -> None:
        self.root = Node()
        self.links = 0

    def node(self, path: bytes) -> Node:
        """Return the path's node, created if new. Symbolic links are not followed."""
        node = self.root
        for part in path[1:].split(b"/", MAX_DEPTH) if path != b"/" else ():
            fresh = node.fresh
            child = node.children.get(part)
            if child is None:
                child = node.children[part] = Node()
                child.absent = fresh
            node = child
        return node

    def find(self, path: bytes) -> Node | None:
        """Return the path's node; None if the path is not in the tree."""
        node = self.root
        for part in path[1:].split(b"/", MAX_DEPTH) if path != b"/" else ():
            child = node.children.get(part)
            if child is None:
                return None
            node = child
        return node

    def resolve(self, path: bytes, *, follow: bool) -> bytes:
        """Resolve symbolic links created in this run. `follow`: also the last component."""
        if not self.links:
            return path
        for _ in range(_MAX_LINKS):
            step = self._first_link(path, follow)
            if step is None:
                return path
            path = step
        return path

    def _first_link(self, path: bytes, follow: bool) -> bytes | None:
        node, parts = self.root, path[1:].split(b"/", MAX_DEPTH)
        for i, part in enumerate(parts):
            child = node.children.get(part)
            if child is None:
                return None
            last = i == len(parts) - 1
            if child.link is not None and (follow or not last):
                base = b"/" + b"/".join(parts[:i])
                rest = b"/".join(parts[i + 1 :])
                target = child.link if child.link[:1] == b"/" else base + b"/" + child.link
                return normal(target + (b"/" + rest if rest else b""))
            node = child
        return None

    def parent(self, path: bytes) -> tuple[Node, bytes]:
        """Return the directory's node and the last component."""
        folder, _, name = path.rpartition(b"/")
        return self.node(folder or b"/"), name

    def detach(self, path: bytes) -> Node | None:
        """Remove the name (unlink, rename); return the old node with all nodes below it."""
        folder, name = self.parent(path)
        old = folder.children.get(name)
        gone = folder.children[name] = Node()
        gone.absent = True
        if old is not None and old.link is not None:
            self.links -= 1
        return old

    def attach(self, path: bytes, node: Node) -> Node | None:
        """Put a node at the path; return the node that it replaces."""
        folder, name = self.parent(path)
        old = folder.children.get(name)
        folder.children[name] = node
        node.absent = False
        if node.link is not None:
            self.links += 1
        if old is not None and old.link is not None:
            self.links -= 1
        return old


class State:
    """All state that handlers read and modify."""

    def __init__(self, settings: StraceSettings) -> None:
        self.settings = settings
        self.out = Columns(settings.host)
        self.names = NameTree()
        self.threads: dict[int, Thread] = {}
        self.by_inode: dict[tuple[int, int], FileRec] = {}
        self.files: list[FileRec] = list(settings.initial_files)
        self.undecided_opens: list[MaybeCreation] = []
        self.alias: dict[int, int] = {}  # file id -> id of the file it was merged into
        self.meta: Counter[tuple[int, bytes | None, str]] = Counter()
        self.meta_errors: Counter[tuple[int, bytes | None, str]] = Counter()
        self.losses: Counter[tuple[str, str]] = Counter()
        self.pipes: dict[bytes, FileRec] = {}
        self.truncated: set[int] = set()  # opens found at the end to have truncated the file
        self.in_flight: list[list[Ofd | None]] = []  # descriptors sent over sockets
        self.cloning: dict[int, tuple[bytes, int]] = {}  # unfinished forks: tid -> args, time
        self.early: dict[int, int] = {}  # parent -> child that ran before the fork returned
        self.replaced: set[int] = set()  # threads that ended when another one called exec
        self.sending: dict[int, list[list[Ofd | None]]] = {}  # unfinished calls: tid -> sent
        self.running = 0  # processes whose end is not in the log
        self.unseen_fds = False  # descriptors may be created in ways that the log does not show
        self.env_names = frozenset(ENV_MARKERS)
        self.seen: set[bytes] = set()  # names of the calls in the log
        self.next_proc = 1
        self.next_open = 1
        self.next_name = 1
        self.last_ns = 0
        for ofd in settings.initial.values():
            node = self.names.node(ofd.path) if ofd.path[:1] == b"/" else None
            if node is not None and node.file is None:
                node.file = ofd.file
                ofd.file.links += 1
                self.name_row(None, ofd.file, "open", ofd.path, None, settings.started_ns)

    # --- processes -------------------------------------------------------------------

    def pending_forks(self) -> set[int]:
        """Return the threads in a fork whose child is not known yet."""
        return self.cloning.keys() - self.early.keys()

    def thread(self, tid: int, t_ns: int) -> Thread:
        """Return the thread; a thread without a logged fork becomes a root process."""
        found = self.threads.get(tid)
        return found if found is not None else self.new_root(tid, t_ns)

    def new_root(self, tid: int, t_ns: int) -> Thread:
        """Add a process without a known parent: the command, or one that strace attached to."""
        if self.threads and self.settings.complete:
            self.losses["unknown_calls", "the fork of a process was not seen"] += 1
        epoch = self.new_epoch(tid, None, None, t_ns, self.settings.cwd)
        table = FdTable(dict(self.settings.initial) if not self.threads else {})
        thread = Thread(tid, Group(tid, epoch, {tid}), table, Fs(self.settings.cwd))
        self.threads[tid] = thread
        return thread

    def new_epoch(
        self, pid: int, parent: int | None, prev: int | None, t_ns: int, cwd: bytes
    ) -> Epoch:
        """Begin a row of `processes`, written when the epoch ends."""
        epoch = Epoch(self.next_proc, pid, parent, prev, t_ns, cwd)
        self.next_proc += 1
        return epoch

    def end_epoch(
        self, epoch: Epoch, t_ns: int | None, code: int | None = None, signal: int | None = None
    ) -> None:
        """Close the epoch's open-file sessions and write its row."""
        for row in epoch.rows.values():
            self.write_row(row, t_ns)
        epoch.rows.clear()
        self.out.add(
            "processes",
            (
                epoch.proc,
                epoch.parent,
                epoch.prev,
                epoch.pid,
                self.settings.uid,
                epoch.start_ns,
                t_ns,
                code,
                signal,
                epoch.exe,
                epoch.argv,
                epoch.cwd or None,
                [{"name": n, "value": v} for n, v in epoch.env],
                *(None, None),  # no CPU time, no time in calls
            ),
        )

    # --- open-file sessions ---------------------------------------------------------------

    def row(self, thread: Thread, ofd: Ofd, fd: int, t_ns: int) -> OpenRow:
        """Return the process epoch's session of an open description, created at first use."""
        epoch = thread.group.epoch
        row = epoch.rows.get(ofd)
        if row is None:
            via = "pipe" if ofd.file.kind == "pipe" else "inherited"
            row = self.new_row(epoch, ofd, fd, via, epoch.start_ns)
        return row

    def new_row(self, epoch: Epoch, ofd: Ofd, fd: int, via: str, open_ns: int) -> OpenRow:
        """Add a session to this process epoch."""
        row = OpenRow(self.next_open, epoch.proc, ofd, fd, via, open_ns)
        self.next_open += 1
        epoch.rows[ofd] = row
        return row

    def write_row(self, row: OpenRow, close_ns: int | None) -> None:
        """Write the rows of a session that ended (close, exec, exit; None: with the log)."""
        self.write_runs(row, row.reads)
        self.write_runs(row, row.writes)
        self.out.opens.append(
            (
                row.number,
                row.proc,
                row.file.id,
                row.path,
                row.fd,
                row.flags,
                row.via,
                row.created,
                row.truncated,
                row.size_at_open,
                row.open_ns,
                close_ns,
                row.first,
                row.last,
                row.read_ops,
                row.read_bytes,
                row.write_ops,
                row.write_bytes,
                row.seq_ops,
                row.small_ops,
            )
        )
        if len(self.out.opens) >= BATCH:
            self.out.spill()

    def write_runs(self, row: OpenRow, runs: Runs) -> None:
        """Write all unfinished runs of one direction."""
        for run in runs.aside.values():
            self.write_run(row, runs.op, run)
        if runs.current is not None:
            self.write_run(row, runs.op, runs.current)
        runs.current = runs.before = None
        runs.aside.clear()

    def write_run(self, row: OpenRow, op: str, run: AccessRun) -> None:
        """Write one run of accesses."""
        self.out.extents.append(
            (
                row.number,
                row.proc,
                row.file.id,
                op,
                run.how,
                run.start,
                run.length,
                run.stride,
                run.count,
                run.ops,
                run.bytes,
                run.first,
                run.last,
                run.exact,
                None,
            )
        )
        if len(self.out.extents) >= BATCH:
            self.out.spill()

    def extent(
        self,
        proc: int,
        file: FileRec,
        op: str,
        how: str,
        start: int,
        length: int,
        t_ns: int,
        open_id: int | None = None,
    ) -> None:
        """Write a single truncation or deallocation."""
        self.out.extents.append(
            (
                open_id,
                proc,
                file.id,
                op,
                how,
                start,
                length,
                length,
                1,
                1,
                0,
                t_ns,
                t_ns,
                True,
                None,
            )
        )

    def count(self, proc: int, path: bytes | None, op: str, failed: bool) -> None:
        """Count a metadata call, per process and directory."""
        folder = None if path is None else (path.rpartition(b"/")[0] or b"/")
        key = (proc, folder, op)
        self.meta[key] += 1
        if failed:
            self.meta_errors[key] += 1

    def unknown_fd(self) -> None:
        """Count I/O on a descriptor whose open is not in the log."""
        if self.unseen_fds or not self.settings.complete:
            self.losses["unknown_calls", "I/O on a descriptor that was not seen opened"] += 1

    def name_row(
        self, proc: int | None, file: FileRec, op: str, path: bytes, new: bytes | None, t_ns: int
    ) -> None:
        """Write one row of `names`."""
        self.out.add("names", (self.next_name, t_ns, proc, file.id, op, path, new))
        self.next_name += 1
