"""Placement of a running workflow's tasks: each starts on its planned node or the node of its
inputs while that has a free slot, and after a while on any node with a free slot.

An engine's child that is about to become a task (recognised by place.c from its arguments) sends a
request through a socket (starter.py). The answer comes when a slot is free: the words that start
the task on a node, or none, to run here. The slot is free again when the task's process has ended,
however it ended. No failure here can fail the workflow: a task without an answer runs here.

The tasks of a recorded run (`placed_tasks`) are identified by directory and arguments of their
first program, as the engine started it.
"""

from __future__ import annotations

import os
import selectors
import shutil
import signal
import socket
import struct
import sys
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tracehint.adapters.place import starter
from tracehint.adapters.place.allocation import Allocation
from tracehint.adapters.place.hosts import Host, start_words
from tracehint.collectors.preload.jobs import SUBMIT
from tracehint.interrupts import start_without_signals
from tracehint.schemas.commandline.programs import base_name
from tracehint.schemas.manifest import read_manifest

if TYPE_CHECKING:
    from tracehint.analyzer.model import Analysis
    from tracehint.hintgen.hints.model import Plan
    from tracehint.schemas.store import Bundle


SWITCH = "TRACEHINT_PLACE"
MAGIC = b"THPLACE\1"
_HEADER = struct.Struct("<8sII")
_CREDENTIALS = struct.Struct("3i")
_FNV_START, _FNV_PRIME, _64 = 0xCBF29CE484222325, 0x100000001B3, (1 << 64) - 1
MAX_REQUEST = 4 << 20  # bytes of a task's directory and arguments
MIN_WAIT_S = 0.3  # for a slot on the node of a task's inputs
BOUND_WAIT_S = 10.0  # the same for a task that the plan binds to its node
MAX_MISSES = 2  # tasks that failed to start on a node, after which it gets no more
MAX_WAIT_S = 30.0  # for any slot; then a task starts without one
_TICK_S = 0.1

Key = tuple[bytes, tuple[bytes, ...]]  # working directory and arguments


@dataclass(frozen=True)
class PlacedTask:
    """A task of an earlier run. `part`: of the plan, None: not bound to one; `inputs`: file number
    -> bytes; `outputs`: file numbers."""

    part: int | None = None
    inputs: Mapping[int, int] = field(default_factory=dict)
    outputs: tuple[int, ...] = ()


@dataclass
class _Request:
    """A task that waits for a node (`line` is open), or runs on `node`."""

    pid: int
    since: float
    task: PlacedTask
    line: socket.socket | None
    node: int = 0
    mark: Path | None = None  # exists while the task runs on another node


def checksum(argv: Sequence[bytes]) -> int:
    """Return FNV-1a of the arguments, each with its NUL, as place.c computes it."""
    found = _FNV_START
    for byte in b"".join(word + b"\0" for word in argv):
        found = (found ^ byte) * _FNV_PRIME & _64
    return found or 1


def table(sums: set[int], words: Sequence[bytes]) -> bytes:
    """Return the table that place.c reads."""
    buckets = [0] * (1 << (2 * len(sums)).bit_length())
    for number in sums:
        at = number
        while buckets[at % len(buckets)]:
            at += 1
        buckets[at % len(buckets)] = number
    head = _HEADER.pack(MAGIC, len(buckets), len(words))
    return head + struct.pack(f"<{len(buckets)}Q", *buckets) + b"".join(w + b"\0" for w in words)


@dataclass
class Dispatcher:
    """Nodes, and waiting and running tasks. `here`: the engine's node, None if it is not in
    `hosts`; `steal`: whether a task may leave its part's node; `shared`: a directory visible on all
    nodes; `environment`: variables that enable placement."""

    hosts: Sequence[Host]
    tasks: Mapping[Key, PlacedTask]
    shared: Path
    steal: bool = True
    here: int | None = None
    environment: dict[str, str] = field(default_factory=dict)
    running: dict[int, _Request] = field(default_factory=dict)  # by pidfd
    waiting: list[_Request] = field(default_factory=list)
    located: dict[int, int] = field(default_factory=dict)  # file -> node of its writer
    started: list[int] = field(default_factory=list)  # tasks per node
    most: int = 0  # largest number of waiting and running tasks
    missed: list[int] = field(default_factory=list)  # per node, tasks that failed to start on it

    def __post_init__(self) -> None:
        self.started = [0] * len(self.hosts)
        self.missed = [0] * len(self.hosts)

    @property
    def slots(self) -> int:
        """Number of slots of all nodes."""
        return sum(host.slots for host in self.hosts)

    @property
    def seen(self) -> int:
        """Number of recognised tasks."""
        return sum(self.started)

    @property
    def unrecognised(self) -> bool:
        """Whether no task was recognised."""
        return not self.seen

    def free(self, node: int) -> int:
        """Return the node's free slots; none if tasks fail to start on it."""
        if self.missed[node] >= MAX_MISSES:
            return 0
        return self.hosts[node].slots - sum(r.node == node for r in self.running.values())

    def choose_preferred_node(self, task: PlacedTask) -> tuple[int | None, int]:
        """Return the node of the task's part or of most of its inputs, and the bytes of its inputs
        on it."""
        held = [0] * len(self.hosts)
        for number, size in task.inputs.items():
            if number in self.located and self.missed[self.located[number]] < MAX_MISSES:
                held[self.located[number]] += size
        if task.part is not None and self.missed[task.part % len(self.hosts)] < MAX_MISSES:
            node = task.part % len(self.hosts)
            return node, max(held[node], 1)
        node = max(range(len(held)), key=lambda i: (held[i], self.free(i)))
        return (node, held[node]) if held[node] else (None, 0)

    def choose(self, request: _Request, now: float) -> int | None:
        """Return the node on which the task starts now; None: it waits."""
        node, held = self.choose_preferred_node(request.task)
        waited = now - request.since
        if node is not None:
            link = self.hosts[node].link_mbit * 1e6 / 8
            if self.free(node) > 0:
                return node
            bound = not self.steal and request.task.part is not None
            least = BOUND_WAIT_S if bound else MIN_WAIT_S
            if waited < min(max(least, held / link), MAX_WAIT_S):
                return None
        best = max(range(len(self.hosts)), key=lambda i: (self.free(i), i == node, i == self.here))
        return best if self.free(best) > 0 or waited > MAX_WAIT_S else None

    def record_miss(self, mark: str) -> None:
        """Record that the task of this mark failed to start on its node, and runs here."""
        for request in self.running.values():
            if str(request.mark) == mark:
                self.missed[request.node] += 1
                request.node = self.here if self.here is not None else request.node
                self.located.update(dict.fromkeys(request.task.outputs, request.node))

    def grant(self, now: float) -> list[_Request]:
        """Return the waiting tasks that start now, with their nodes set."""
        granted = []
        self.most = max(self.most, len(self.waiting) + len(self.running))
        for request in list(self.waiting):
            node = self.choose(request, now)
            if node is None:
                continue
            request.node = node
            self.waiting.remove(request)
            try:
                self.running[os.pidfd_open(request.pid)] = request
            except OSError:
                continue  # it has ended
            self.started[node] += 1
            self.located.update(dict.fromkeys(request.task.outputs, node))
            granted.append(request)
        return granted

    def answer(self, request: _Request) -> bytes:
        """Return the words that start a task on its node; empty: here."""
        host = self.hosts[request.node]
        if request.node == self.here:
            return b""
        request.mark = self.shared / f"{request.pid}.{sum(self.started)}"
        words = [str(request.mark), *start_words(host, ["{argv}"], "/")]
        return b"".join(os.fsencode(word) + b"\0" for word in words)


class _Server(threading.Thread):
    """Answers requests until it is closed. Signals are blocked: they are for the command."""

    def __init__(self, place: Dispatcher, address: Path) -> None:
        super().__init__(name="tracehint-place", daemon=True)
        self.place, self.folder = place, address.parent
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.bind(os.fspath(address))
        self.socket.listen(1024)
        self.stop, self.stopped = socket.socketpair()
        self.selector = selectors.DefaultSelector()
        self.selector.register(self.socket, selectors.EVENT_READ, self._accept)
        self.selector.register(self.stopped, selectors.EVENT_READ, None)
        self.begun: dict[socket.socket, bytes] = {}  # bytes received of each request

    def run(self) -> None:
        """Serve until close()."""
        while True:
            waits = _TICK_S if self.place.waiting else None
            events = [key for key, _ in self.selector.select(waits)]
            for key in sorted(events, key=lambda key: key.data == self._end_task):  # ends last
                if key.data is None:
                    return
                key.data(key.fileobj)
            for request in self.place.grant(time.monotonic()):
                self._reply(request)

    def close(self) -> None:
        """Stop; tasks that still wait run here."""
        self.stop.close()
        self.join(timeout=5)
        for line in [*self.begun, *(r.line for r in self.place.waiting if r.line is not None)]:
            line.close()
        for pidfd in self.place.running:
            os.close(pidfd)
        self.socket.close()
        self.stopped.close()
        self.selector.close()

    def _accept(self, _: socket.socket) -> None:
        with suppress(OSError):
            line, _address = self.socket.accept()
            line.setblocking(False)
            self.begun[line] = b""
            self.selector.register(line, selectors.EVENT_READ, self._read)

    def _read(self, line: socket.socket) -> None:
        try:
            part = line.recv(1 << 16)
        except OSError:
            part, self.begun[line] = b"", b""
        self.begun[line] += part
        if part and len(self.begun[line]) <= MAX_REQUEST:
            return
        self.selector.unregister(line)
        cwd, *argv = self.begun.pop(line).split(b"\0")[:-1] or [b""]
        if not cwd and len(argv) == 1:
            self.place.record_miss(os.fsdecode(argv[0]))
        task = self.place.tasks.get((cwd, tuple(argv)))
        if task is None or part:
            line.close()
            return
        pid = _CREDENTIALS.unpack(
            line.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
        )[0]
        self.place.waiting.append(_Request(pid, time.monotonic(), task, line))

    def _reply(self, request: _Request) -> None:
        pidfd = next(fd for fd, other in self.place.running.items() if other is request)
        self.selector.register(pidfd, selectors.EVENT_READ, self._end_task)
        assert request.line is not None
        with suppress(OSError), request.line as line:
            line.setblocking(True)
            line.sendall(self.place.answer(request))
        request.line = None

    def _end_task(self, pidfd: int) -> None:
        messages = (self._accept, self._read)  # messages sent before the task ended are read first
        while ready := [key for key, _ in self.selector.select(0) if key.data in messages]:
            for key in ready:
                key.data(key.fileobj)
        self.selector.unregister(pidfd)
        mark = self.place.running.pop(pidfd).mark
        os.close(pidfd)
        if mark is not None and os.path.lexists(mark):
            _end_step(os.fsencode(mark))


def _end_step(mark: bytes) -> None:
    """Terminate the step of a task whose starter was killed, identified by the task's mark."""
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if mark in (entry / "cmdline").read_bytes().split(b"\0"):
                os.kill(int(entry.name), signal.SIGTERM)


@contextmanager
def dispatching(
    nodes: Allocation, tasks: Mapping[Key, PlacedTask], folder: Path, *, steal: bool
) -> Iterator[Dispatcher]:
    """Place the tasks of a command that gets the environment. `folder`: visible on all nodes.

    Raises OSError if this cannot be started.
    """
    with ExitStack() as stack:
        own = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="tracehint-")))
        shared = Path(tempfile.mkdtemp(prefix="place-", dir=folder)).resolve()
        stack.callback(shutil.rmtree, shared, ignore_errors=True)
        address = own / "socket"
        words = [sys.executable, "-I", "-S", str(Path(starter.__file__).resolve()), str(address)]
        sums = {checksum(argv) for _, argv in tasks}
        (own / "table").write_bytes(table(sums, [os.fsencode(word) for word in words]))
        place = Dispatcher(nodes.hosts, tasks, shared, steal, nodes.here)
        place.environment[SWITCH] = str(own / "table")
        server = _Server(place, address)
        start_without_signals(server)
        stack.callback(server.close)
        yield place


# Programs that start their work on another node themselves.
_REMOTE = frozenset({*SUBMIT, "ssh", "mpirun", "mpiexec", "pbsdsh", "blaunch"})


def placed_tasks(
    bundle: Bundle, path: Path, analysis: Analysis, plan: Plan | None, folder: Path
) -> dict[Key, PlacedTask]:
    """Return tasks by directory and arguments, as they will be in a run in `folder`.

    Left out: tasks with several first programs (a pipeline), MPI ranks, tasks without a program,
    and commands that occur in several tasks of different parts.
    """
    planned = planned_by_task(analysis, plan)
    was, now = os.fsencode(read_manifest(path).cwd), os.fsencode(folder)
    heads = _heads(bundle, analysis)
    found: dict[Key, PlacedTask] = {}
    twice: set[Key] = set()
    for number, task in planned.items():
        first = heads.get(number)
        if first is None:
            continue
        cwd, argv = first
        if base_name(argv[0]) in _REMOTE or not (cwd == was or cwd.startswith(was + b"/")):
            continue
        key = now + cwd[len(was) :], argv
        if key in found and found[key].part != task.part:
            twice.add(key)
        found[key] = task
    return {key: task for key, task in found.items() if key not in twice}


def planned_by_task(analysis: Analysis, plan: Plan | None) -> dict[int, PlacedTask]:
    """Return each task of a run with its part and files, without engine tasks and MPI ranks."""
    parts = {task.name: task.part for task in plan.tasks} if plan is not None else {}
    reads = _by_task(analysis.consumers, analysis)
    writes = _by_task(analysis.producers, analysis)
    return {
        row["task"]: PlacedTask(
            parts.get(row["name"]), reads[row["task"]], tuple(writes[row["task"]])
        )
        for row in analysis.tasks.select(["task", "name", "engine", "group"]).to_pylist()
        if not row["engine"] and row["group"] is None
    }


def _by_task(rows: Any, analysis: Analysis) -> defaultdict[int, dict[int, int]]:
    """Return bytes per file for each task; all versions of a path count as one file."""
    files = analysis.files.select(["file", "lineage"])
    lineage = dict(zip(*files.to_pydict().values(), strict=True))
    found: defaultdict[int, dict[int, int]] = defaultdict(dict)
    for row in rows.select(["task", "file", "unique_bytes"]).to_pylist():
        number = lineage[row["file"]]
        found[row["task"]][number] = found[row["task"]].get(number, 0) + (row["unique_bytes"] or 0)
    return found


def _heads(bundle: Bundle, analysis: Analysis) -> dict[int, tuple[bytes, tuple[bytes, ...]]]:
    """Return directory and arguments of each task's first process, if there is only one."""
    columns = ["proc", "parent", "prev", "argv", "cwd"]
    rows = {row["proc"]: row for row in bundle.tables["processes"].select(columns).to_pylist()}
    assert analysis.proc_task is not None
    tasks = analysis.proc_task.select(["proc", "task"])
    task_of = dict(zip(*tasks.to_pydict().values(), strict=True))
    following = {row["prev"]: proc for proc, row in rows.items() if row["prev"] is not None}
    heads: defaultdict[int, list[Any]] = defaultdict(list)
    for proc, row in rows.items():
        before = row["prev"] if row["prev"] is not None else row["parent"]
        task = task_of.get(proc)
        if task is None or before is None or task_of.get(before) == task:
            continue
        while not row["argv"] and following.get(row["proc"]) in rows:
            row = rows[following[row["proc"]]]
        heads[task].append(row)
    return {
        task: (first[0]["cwd"], tuple(first[0]["argv"]))
        for task, first in heads.items()
        if len(first) == 1 and first[0]["argv"] and first[0]["cwd"]
    }
