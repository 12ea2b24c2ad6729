"""The state of one log being read: threads, names, files, and the rows made so far."""

from __future__ import annotations

from collections import Counter

from tracehint.collectors.strace.columns import BATCH, Columns
from tracehint.collectors.strace.model import (
    AccessRun,
    Epoch,
    FdTable,
    FileRec,
    Fs,
    Group,
    Ofd,
    OpenRow,
    Runs,
    Thread,
)
from tracehint.collectors.strace.names import NameTree
from tracehint.collectors.strace.settings import Maybe, StraceSettings
from tracehint.schemas.tables import ENV_MARKERS


class State:
    """Everything that handlers read and change."""

    def __init__(self, settings: StraceSettings) -> None:
        self.settings = settings
        self.out = Columns(settings.host)
        self.names = NameTree()
        self.threads: dict[int, Thread] = {}
        self.by_inode: dict[tuple[int, int], FileRec] = {}
        self.files: list[FileRec] = list(settings.initial_files)
        self.maybes: list[Maybe] = []
        self.alias: dict[int, int] = {}  # file id -> the id that it turned out to be
        self.meta: Counter[tuple[int, bytes | None, str]] = Counter()
        self.meta_errors: Counter[tuple[int, bytes | None, str]] = Counter()
        self.losses: Counter[tuple[str, str]] = Counter()
        self.pipes: dict[bytes, FileRec] = {}
        self.truncated: set[int] = set()  # opens that turn out to have truncated
        self.in_flight: list[list[Ofd | None]] = []  # descriptors sent over sockets
        self.cloning: dict[int, tuple[bytes, int]] = {}  # unfinished forks: tid -> args, time
        self.early: dict[int, int] = {}  # child that ran before its parent's fork returned
        self.replaced: set[int] = set()  # threads that ended by another one's exec
        self.sending: dict[int, list[list[Ofd | None]]] = {}  # unfinished calls: tid -> sent
        self.running = 0  # processes whose end is not in the log
        self.unseen_fds = False  # descriptors may come about in ways that the log does not show
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

    def childless(self) -> set[int]:
        """Threads within a fork whose child is not known yet."""
        return self.cloning.keys() - self.early.keys()

    def thread(self, tid: int, t_ns: int) -> Thread:
        """The thread; one that the log did not introduce becomes a root process."""
        found = self.threads.get(tid)
        return found if found is not None else self.new_root(tid, t_ns)

    def new_root(self, tid: int, t_ns: int) -> Thread:
        """A process without a known parent: the command, or one that strace attached to."""
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
        """A new row of `processes`, written when it ends."""
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
                *(None, None),  # no time of processors, none in calls
            ),
        )

    # --- open-file sessions ---------------------------------------------------------------

    def row(self, thread: Thread, ofd: Ofd, fd: int, t_ns: int) -> OpenRow:
        """The process epoch's session of an open description; made at its first use."""
        epoch = thread.group.epoch
        row = epoch.rows.get(ofd)
        if row is None:
            via = "pipe" if ofd.file.kind == "pipe" else "inherited"
            row = self.new_row(epoch, ofd, fd, via, epoch.start_ns)
        return row

    def new_row(self, epoch: Epoch, ofd: Ofd, fd: int, via: str, open_ns: int) -> OpenRow:
        """A new session of this process epoch."""
        row = OpenRow(self.next_open, epoch.proc, ofd, fd, via, open_ns)
        self.next_open += 1
        epoch.rows[ofd] = row
        return row

    def write_row(self, row: OpenRow, close_ns: int | None) -> None:
        """The session ended (close, exec, exit; None: the log ended first): write its rows."""
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
        """Write all runs of one direction that still grow."""
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
        """I/O on a descriptor whose opening the log does not show."""
        if self.unseen_fds or not self.settings.complete:
            self.losses["unknown_calls", "I/O on a descriptor that was not seen opened"] += 1

    def name_row(
        self, proc: int | None, file: FileRec, op: str, path: bytes, new: bytes | None, t_ns: int
    ) -> None:
        """Write one row of `names`."""
        self.out.add("names", (self.next_name, t_ns, proc, file.id, op, path, new))
        self.next_name += 1
