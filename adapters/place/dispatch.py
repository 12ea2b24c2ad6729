"""Where each task of a running workflow starts: on the node that it is planned for, or that holds
its inputs, while that one has a slot, and after a while on any that has.

An engine's child that is about to become a task (place.c knows it by its arguments) asks through a
socket (starter.py) and is answered when there is a slot: with the words that start it there, or
with none, to run here. Its slot is free when its process has ended, however it ended. Nothing here
can fail into the workflow: a task without an answer runs here.

The tasks of a recorded run (`TaskCommands`) are known as their engine started them: by directory
and arguments of the first program.
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
MIN_WAIT_S = 0.3  # for a slot on the node of a task's data
BOUND_WAIT_S = 10.0  # the same of a task that the plan binds to its node
MISSES = 2  # tasks that did not begin on a node: it gets no more
MAX_WAIT_S = 30.0  # for any slot; then a task starts all the same
_TICK_S = 0.1

Key = tuple[bytes, tuple[bytes, ...]]  # working directory and arguments


@dataclass(frozen=True)
class PlacedTask:
    """A task of an earlier run. `part`: of the plan, None: it is bound to none; `inputs`: bytes by
    number of the file, `outputs`: such numbers."""

    part: int | None = None
    inputs: Mapping[int, int] = field(default_factory=dict)
    outputs: tuple[int, ...] = ()


@dataclass
class _Request:
    """A task that waits for a node (`line` is open), or runs on one (`node`)."""

    pid: int
    since: float
    task: PlacedTask
    line: socket.socket | None
    node: int = 0
    mark: Path | None = None  # made when it begins on another node, gone when it has ended


def checksum(argv: Sequence[bytes]) -> int:
    """As place.c computes it: FNV-1a of the arguments, each with its NUL."""
    found = _FNV_START
    for byte in b"".join(word + b"\0" for word in argv):
        found = (found ^ byte) * _FNV_PRIME & _64
    return found or 1


def table(sums: set[int], words: Sequence[bytes]) -> bytes:
    """The table that place.c reads."""
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
    """The nodes, and who runs where. `here`: the node of the engine, None where it is none of them;
    `steal`: whether a task may leave the node of its part; `shared`: a directory of all nodes;
    `environment`: what switches it on."""

    hosts: Sequence[Host]
    tasks: Mapping[Key, PlacedTask]
    shared: Path
    steal: bool = True
    here: int | None = None
    environment: dict[str, str] = field(default_factory=dict)
    running: dict[int, _Request] = field(default_factory=dict)  # by pidfd
    waiting: list[_Request] = field(default_factory=list)
    located: dict[int, int] = field(default_factory=dict)  # file -> node of the task that wrote it
    started: list[int] = field(default_factory=list)  # tasks by node
    most: int = 0  # tasks at one time
    local: int = 0  # tasks that ran here because nothing else could be done
    missed: list[int] = field(default_factory=list)  # by node, tasks that did not begin on it

    def __post_init__(self) -> None:
        self.started = [0] * len(self.hosts)
        self.missed = [0] * len(self.hosts)

    @property
    def slots(self) -> int:
        """Of all nodes."""
        return sum(host.slots for host in self.hosts)

    @property
    def seen(self) -> int:
        """Tasks that came here: those that were recognised."""
        return sum(self.started) + self.local

    @property
    def unrecognised(self) -> bool:
        """Whether no task was recognised."""
        return not self.seen

    def free(self, node: int) -> int:
        """Slots of the node that no task has; none of a node on which tasks do not begin."""
        if self.missed[node] >= MISSES:
            return 0
        return self.hosts[node].slots - sum(r.node == node for r in self.running.values())

    def choose_preferred_node(self, task: PlacedTask) -> tuple[int | None, int]:
        """The node that the task is planned for or that holds most of its inputs, and how many
        bytes of them are there."""
        held = [0] * len(self.hosts)
        for number, size in task.inputs.items():
            if number in self.located and self.missed[self.located[number]] < MISSES:
                held[self.located[number]] += size
        if task.part is not None and self.missed[task.part % len(self.hosts)] < MISSES:
            node = task.part % len(self.hosts)
            return node, max(held[node], 1)
        node = max(range(len(held)), key=lambda i: (held[i], self.free(i)))
        return (node, held[node]) if held[node] else (None, 0)

    def choose(self, request: _Request, now: float) -> int | None:
        """The node that the task starts on now; None: it waits."""
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

    def miss(self, mark: str) -> None:
        """The task of this mark did not begin on its node, and runs here."""
        for request in self.running.values():
            if str(request.mark) == mark:
                self.missed[request.node] += 1
                request.node = self.here if self.here is not None else request.node
                self.located.update(dict.fromkeys(request.task.outputs, request.node))

    def grant(self, now: float) -> list[_Request]:
        """Those of the waiting tasks that start now; their node is set."""
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
        """The words that start a task on its node; none: here."""
        host = self.hosts[request.node]
        if request.node == self.here:
            return b""
        request.mark = self.shared / f"{request.pid}.{sum(self.started)}"
        words = [str(request.mark), *start_words(host, ["{argv}"], "/")]
        return b"".join(os.fsencode(word) + b"\0" for word in words)


class _Server(threading.Thread):
    """Answers until it is closed. It takes no signals: they are for the command."""

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
        self.begun: dict[socket.socket, bytes] = {}  # what came of each request until now

    def run(self) -> None:
        """Until close()."""
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
        """Whoever waits still runs here."""
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
            self.place.miss(os.fsdecode(argv[0]))
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
        messages = (self._accept, self._read)  # what the task sent before it ended is read first
        while ready := [key for key, _ in self.selector.select(0) if key.data in messages]:
            for key in ready:
                key.data(key.fileobj)
        self.selector.unregister(pidfd)
        mark = self.place.running.pop(pidfd).mark
        os.close(pidfd)
        if mark is not None and os.path.lexists(mark):
            _end_step(os.fsencode(mark))


def _end_step(mark: bytes) -> None:
    """End the step of a task whose starter was killed: only it has the task's mark as a word."""
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if mark in (entry / "cmdline").read_bytes().split(b"\0"):
                os.kill(int(entry.name), signal.SIGTERM)


@contextmanager
def dispatching(
    nodes: Allocation, tasks: Mapping[Key, PlacedTask], folder: Path, *, steal: bool
) -> Iterator[Dispatcher]:
    """Place the tasks of what gets the environment. `folder`: one that all nodes see.

    Raises OSError where that cannot be begun.
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


# These start their work on another node themselves.
_REMOTE = frozenset({*SUBMIT, "ssh", "mpirun", "mpiexec", "pbsdsh", "blaunch"})


def placed_tasks(
    bundle: Bundle, path: Path, analysis: Analysis, plan: Plan | None, folder: Path
) -> dict[Key, PlacedTask]:
    """By directory and arguments, as they will be in a run in `folder`.

    Left out: tasks of several first programs (a pipeline), ranks of MPI, what has no program, and
    commands of which one text stands for several tasks of different parts.
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
    """Each task of a run as a plan has it; not those of the engine, and no ranks of MPI."""
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
    """Bytes by file, by task; all versions of a path are one file."""
    files = analysis.files.select(["file", "lineage"])
    lineage = dict(zip(*files.to_pydict().values(), strict=True))
    found: defaultdict[int, dict[int, int]] = defaultdict(dict)
    for row in rows.select(["task", "file", "unique_bytes"]).to_pylist():
        number = lineage[row["file"]]
        found[row["task"]][number] = found[row["task"]].get(number, 0) + (row["unique_bytes"] or 0)
    return found


def _heads(bundle: Bundle, analysis: Analysis) -> dict[int, tuple[bytes, tuple[bytes, ...]]]:
    """Directory and arguments of each task's only process that another task started."""
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
