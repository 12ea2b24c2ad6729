"""Choice of a node for each job that a running workflow submits: its task's planned node, or the
node that produced most of its inputs.

A process that is about to become `sbatch` (place.c) sends a request through a socket
(submitter.py). Slurm has no preference for a node, only `--nodelist`, for which a job waits. So no
more jobs wait for a node than it will start soon, and a job is released from its node if it waits
longer than moving its inputs would take while another node has a free processor, or when `run` ends
or is killed. No failure here can fail the workflow: a job without an answer is submitted unchanged.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from tracehint.adapters.place import submitter
from tracehint.adapters.place.dispatch import SWITCH, PlacedTask, checksum, table
from tracehint.adapters.place.hosts import Host
from tracehint.adapters.place.job_commands import KnownJobs
from tracehint.adapters.place.submitter import ASK, TELL
from tracehint.interrupts import start_without_signals

SUBMIT = b"sbatch"
MAX_NODES = 64
PER_SLOT = 3  # maximum jobs waiting for a node, per processor
MIN_WAIT_S = 2.0  # for a node while others are free
MAX_WAIT_S = 30.0  # for a node in any case
_CHECK_S = 1.0  # interval of checks while jobs wait
_IDLE_CHECK_S = 10.0  # interval if none waits: a job may be requeued and wait again
_RELEASE_S = 10.0  # for Slurm to release the jobs that still wait at the end
_MAX_AGE_S = 0.5  # age up to which the state of full nodes is reused
_TIMEOUT_S = 5.0  # of Slurm commands, while a job may wait for an answer
_MAX_REQUEST = 4 << 20  # of a request
_SCRIPT = """import os, sys
sys.path[:] = {path!r}
try:
    from {module} import main
except Exception:
    os.execv(sys.argv[2], sys.argv[3:])
main()
"""
# Reads the numbers of jobs with a node; end of input means that `run` was killed, and waiting jobs
# are released from their nodes. It is not a child of `run`, which waits for its children. Input is
# passed as descriptor 3, because the shell redirects stdin of background processes.
_RELEASE_SCRIPT = """exec 3<&0
{
    while read -r job; do
        [ "$job" != end ] || exit 0
        jobs="$jobs $job"
    done
    for job in $(squeue -h -u "$1" -t PD -o %i); do
        case "$jobs " in *" $job "*) scontrol update "JobId=$job" ReqNodeList= ;; esac
    done
} <&3 3<&- &
"""
_USABLE = ("idle", "mixed", "allocated", "completing")
_WAITING = ("PENDING", "CONFIGURING", "REQUEUED")
_RUNNING, _ENDED_WELL = ("RUNNING", "COMPLETING", "SUSPENDED"), "COMPLETED"


def batch_nodes() -> tuple[Host, ...]:
    """Return nodes with free processors for jobs from here, at most the MAX_NODES freest; empty if
    there are none or this runs in a job itself."""
    if "SLURM_JOB_ID" in os.environ:
        return ()
    free = _free()
    order = sorted(free, key=lambda name: (-free[name], name))[:MAX_NODES]
    return tuple(Host(name=name, slots=free[name]) for name in sorted(order))


def _free() -> dict[str, int]:
    """Return the number of free processors per node, without full nodes."""
    found: dict[str, int] = {}
    for line in (_ask("sinfo", "-h", "-N", "-o", "%N|%T|%C") or "").splitlines():
        name, state, counts = (*line.split("|"), "", "")[:3]
        idle = counts.split("/")[1:2]
        if state in _USABLE and idle and idle[0].isdigit() and int(idle[0]):
            found[name] = int(idle[0])
    return found


def _ask(*words: str) -> str | None:
    """Return the output of a Slurm command; None if it fails."""
    try:
        done = subprocess.run(
            words, capture_output=True, text=True, timeout=_TIMEOUT_S, stdin=subprocess.DEVNULL
        )
    except (OSError, subprocess.TimeoutExpired, UnicodeDecodeError):
        return None
    return None if done.returncode else done.stdout


@dataclass
class SubmittedJob:
    """A submitted job. `node`: its requested node, or None; `waits`: not started, or requeued;
    `ended`: final state."""

    task: PlacedTask
    node: int | None
    since: float
    number: bytes = b""
    waits: bool = True
    ended: bool = False
    kept: int = 0  # failed attempts to release it from its node


@dataclass
class Submissions:
    """Nodes and submitted jobs; `steal`: whether a job may leave the node of its part."""

    hosts: Sequence[Host]
    jobs: KnownJobs
    steal: bool = True
    environment: dict[str, str] = field(default_factory=dict)
    sent: list[SubmittedJob] = field(default_factory=list)  # index: ticket
    located: dict[int, int] = field(default_factory=dict)  # file -> node of the job that wrote it
    looked: float = 0.0
    unknown: int = 0  # jobs that were not recognised
    afterwards: int | None = None  # descriptor for numbers of jobs with a node
    released: int = 0  # jobs released from their node

    def __str__(self) -> str:
        counts = {
            "for the node of their data": sum(
                job.node is not None and job.number != b"" for job in self.sent
            ),
            "released because it was full": self.released,
            "unknown from the last run": self.unknown,
        }
        return ", ".join(f"{count:,} {words}" for words, count in counts.items() if count)

    @property
    def seen(self) -> int:
        """Number of jobs in requests."""
        return len(self.sent) + self.unknown

    @property
    def unrecognised(self) -> bool:
        """Whether most jobs were not recognised."""
        return self.unknown > len(self.sent)

    @property
    def bound(self) -> list[SubmittedJob]:
        """Jobs that wait for their node."""
        waiting = (job for job in self.sent if job.number and job.waits and not job.ended)
        return [job for job in waiting if job.node is not None]

    @property
    def problem(self) -> str:
        """Message about jobs that Slurm did not release, with the command for it; empty: none."""
        numbers = ",".join(os.fsdecode(job.number) for job in self.bound)
        command = f"scontrol update JobId={numbers} ReqNodeList="
        return (
            f"jobs wait for their node because Slurm did not answer: {command}" if numbers else ""
        )

    def answer(self, text: bytes) -> bytes:
        """Return ticket and node (empty: any) of a job; empty if the job is unknown."""
        task = self.jobs.find(text)
        if task is None:
            self.unknown += 1
            return b""
        now = time.monotonic()
        if self.made_by_running(task):
            self.look(now)
        node = self.choose_preferred_node(task)
        if node is not None and self.is_full(node):
            if now - self.looked > _MAX_AGE_S:
                self.look(now)
            node = None if self.is_full(node) else node
        self.sent.append(SubmittedJob(task, node, now))
        name = self.hosts[node].name if node is not None else ""
        return b"%d\0%s" % (len(self.sent) - 1, os.fsencode(name))

    def made_by_running(self, task: PlacedTask) -> bool:
        """Whether a producer of inputs is not known to have ended, so its node is uncertain."""
        return any(
            not job.ended and not task.inputs.keys().isdisjoint(job.task.outputs)
            for job in self.sent
        )

    def choose_preferred_node(self, task: PlacedTask) -> int | None:
        """Return the node of the task's part, or the node with most of its inputs."""
        if task.part is not None:
            return task.part % len(self.hosts)
        held = [0] * len(self.hosts)
        for number, size in task.inputs.items():
            if number in self.located:
                held[self.located[number]] += size
        node = max(range(len(held)), key=held.__getitem__)
        return node if held[node] else None

    @property
    def pause(self) -> float | None:
        """Seconds until the next check of the jobs; None: all have ended."""
        going = [job.waits and job.node is not None for job in self.sent if not job.ended]
        return (_CHECK_S if any(going) else _IDLE_CHECK_S) if going else None

    def is_full(self, node: int) -> bool:
        """Whether the maximum number of jobs waits for the node."""
        waiting = sum(job.node == node and job.waits and not job.ended for job in self.sent)
        return waiting >= PER_SLOT * self.hosts[node].slots

    def note_submission(self, ticket: bytes, number: bytes) -> None:
        """Record a job's number; without one it was not submitted, or not as requested."""
        if ticket.isdigit() and int(ticket) < len(self.sent):
            job = self.sent[int(ticket)]
            job.number, job.ended = number, not number
            if self.afterwards is not None and number and job.node is not None:
                with suppress(OSError):
                    os.write(self.afterwards, number + b"\n")

    def look(self, now: float) -> None:
        """Update where the jobs run and which of them wait."""
        rows = _ask("squeue", "-h", "-u", str(os.getuid()), "-t", "all", "-o", "%i|%T|%N")
        if not rows:
            return  # Slurm did not answer
        self.looked = now
        names = {host.name: at for at, host in enumerate(self.hosts)}
        found = {row.split("|")[0]: row.split("|")[1:] for row in rows.splitlines()}
        for job in self.sent:
            if job.ended or not job.number:
                job.ended = job.ended or now - job.since > MAX_WAIT_S  # it was not submitted
                continue
            state, node = (*found.get(os.fsdecode(job.number), ()), "", "")[:2]
            job.waits = state in _WAITING
            job.ended = not job.waits and state not in _RUNNING
            if node in names and (state in _RUNNING or state == _ENDED_WELL):
                self.located.update(dict.fromkeys(job.task.outputs, names[node]))

    def release(self, *, every: bool = False) -> None:
        """Release jobs that wait too long for their node, or all, until one release fails: failed
        jobs are last in the next call."""
        now = time.monotonic()
        self.look(now)
        late = [job for job in self.bound if every or self.is_late(job, now)]
        if late and not every:
            overdue = [job for job in late if now - job.since >= MAX_WAIT_S]
            others = [job for job in late if now - job.since < MAX_WAIT_S]
            late = overdue + others[: sum(_free().values()) if others else 0]
        for job in sorted(late, key=lambda job: job.kept):
            number = os.fsdecode(job.number)
            if _ask("scontrol", "update", f"JobId={number}", "ReqNodeList=") is None:
                job.kept += 1
                break
            job.node = None
            self.released += 1

    def release_all(self) -> None:
        """Release all jobs from their nodes; retry for some time if Slurm fails to."""
        end = time.monotonic() + _RELEASE_S
        self.release(every=True)
        while self.bound and time.monotonic() < end:
            time.sleep(_CHECK_S)
            self.release(every=True)

    def is_late(self, job: SubmittedJob, now: float) -> bool:
        """Whether moving the job's inputs would take less time than it has waited."""
        if not self.steal and job.task.part is not None:
            return now - job.since > MAX_WAIT_S
        assert job.node is not None
        link = self.hosts[job.node].link_mbit * 1e6 / 8
        return now - job.since > max(MIN_WAIT_S, sum(job.task.inputs.values()) / link)


class SubmissionServer(threading.Thread):
    """Answers requests until it is closed. Signals are blocked: they are for the command."""

    def __init__(self, jobs: Submissions, address: Path) -> None:
        super().__init__(name="tracehint-submit", daemon=True)
        self.jobs = jobs
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.bind(os.fspath(address))
        self.socket.listen(1024)
        self.socket.settimeout(_CHECK_S)
        self.closing = threading.Event()

    def run(self) -> None:
        """Serve until close(); after a failure, clients get a connection error at once."""
        looked = time.monotonic()
        try:
            while not self.closing.is_set():
                with suppress(OSError):
                    line, _ = self.socket.accept()
                    with line:
                        line.settimeout(_CHECK_S)
                        self._serve(line)
                pause = self.jobs.pause
                if pause is not None and time.monotonic() - looked >= pause:
                    self.jobs.release()
                    looked = time.monotonic()
        finally:
            self.socket.close()

    def close(self) -> None:
        """Stop, and release all jobs from their nodes."""
        self.closing.set()
        self.join(timeout=30)
        if self.jobs.pause is not None:
            self.jobs.release_all()

    def _serve(self, line: socket.socket) -> None:
        request = b""
        while (part := line.recv(1 << 16)) and len(request) <= _MAX_REQUEST:
            request += part
        kind, _, rest = request.partition(b"\0")
        if kind == ASK and not part:
            answer = self.jobs.answer(rest)
            try:
                line.sendall(answer)
            except OSError:  # the client has submitted the job unchanged
                self.jobs.note_submission(answer.partition(b"\0")[0], b"")
        elif kind == TELL:
            self.jobs.note_submission(*rest.partition(b"\0")[::2])


@contextmanager
def _release_if_killed() -> Iterator[int]:
    """Yield a descriptor for the numbers of jobs to release if this process is killed. Raises
    OSError."""
    read, write = os.pipe()
    try:
        with os.fdopen(read) as numbers:
            words = ["/bin/sh", "-c", _RELEASE_SCRIPT, "sh", str(os.getuid())]
            subprocess.run(
                words,
                stdin=numbers,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd="/",
                start_new_session=True,
                check=False,
            )
        yield write
        with suppress(OSError):
            os.write(write, b"end\n")
    finally:
        os.close(write)


@contextmanager
def submitting(nodes: Sequence[Host], jobs: KnownJobs, *, steal: bool) -> Iterator[Submissions]:
    """Choose the nodes of jobs that the command with the environment submits. Raises OSError if
    this cannot be started."""
    with (
        tempfile.TemporaryDirectory(prefix="tracehint-") as name,
        _release_if_killed() as afterwards,
    ):
        own = Path(name)
        path = [os.path.abspath(entry) for entry in sys.path if entry]  # noqa: PTH100
        script = own / os.fsdecode(SUBMIT)  # recordings count it as sbatch
        script.write_text(_SCRIPT.format(path=path, module=submitter.__name__))
        words = [sys.executable, "-I", "-S", str(script), str(own / "socket")]
        known = {checksum((b"", SUBMIT))}
        (own / "table").write_bytes(table(known, [os.fsencode(word) for word in words]))
        found = Submissions(nodes, jobs, steal, afterwards=afterwards)
        found.environment[SWITCH] = str(own / "table")
        server = SubmissionServer(found, own / "socket")
        start_without_signals(server)
        try:
            yield found
        finally:
            server.close()
