"""Recordings with the preload library, from the start of the command to the finished file."""

from __future__ import annotations

import ctypes
import os
import shutil
import signal
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tracehint.collectors.base import RecordRequest, RecordResult
from tracehint.collectors.begin import begin, child_environment, linger_seconds, new_manifest
from tracehint.collectors.node_local import is_local, is_safe
from tracehint.collectors.preload.arena import ArenaFile
from tracehint.collectors.preload.library import BLIND, LIBRARY, refuse_unenterable
from tracehint.collectors.run import Ended, find_command, report_failures, run_child, runnable
from tracehint.errors import CollectorError, TracehintError, UsageError
from tracehint.schemas.arrow import skip_pandas
from tracehint.schemas.losses import losses_of
from tracehint.schemas.manifest import Manifest
from tracehint.schemas.plain import replacing
from tracehint.schemas.recovery import SPOOL_DIR
from tracehint.schemas.spool.packed import write_packed
from tracehint.schemas.writer import BundleWriter, write_bundle

TRIED = "tried"  # internal option: "no" if the C library is not supported
_PR_SET_CHILD_SUBREAPER = 36
_LINGER_S = 1.0
# A job ends with its first program, and its remaining processes are killed then (Makeflow's script
# leaves a `sleep`): a longer wait would only keep the job's slot occupied.
_JOB_LINGER_S = 0.05
# A dynamic program that executes the command: the class of the command (static, setuid ...) is then
# determined as for any other program. It is removed from the recording (forget_launcher).
_LAUNCHER = ("nice", "-n", "0")
_UNFINISHED = "The recorder did not reach its end; the tables come from its spool."
_UNFINISHED_NAMELESS = (
    "The recorder did not reach its end, or is still at work. It writes to this directory at its "
    "end only: if it was killed, everything that was recorded is lost."
)


@dataclass
class Prepared:
    """A recording in progress and its arena."""

    manifest: Manifest
    arena: ArenaFile

    def environment(self, env: Mapping[str, str]) -> dict[str, str]:
        """Return `env` with the variables that make programs record here."""
        return recording_environment(self.arena, env)

    def note_end(self, end: Mapping[str, Any]) -> dict[str, Any]:
        """Note the end of the command; return `end` (facts for end.json) with the arena's facts."""
        self.manifest.ended_ns = time.time_ns()
        self.manifest.exit_status = end["exit_status"]
        self.manifest.notes = []
        return self.arena.note_end(end)


@dataclass
class PreparedBundle(Prepared):
    """A recording that becomes the bundle of a request."""

    request: RecordRequest
    writer: BundleWriter

    @property
    def kept(self) -> str:
        """Message that names the spool of a recording that cannot be converted."""
        return f"The recording is kept in {self.request.output / SPOOL_DIR}."

    def finish(self, end: Mapping[str, Any]) -> dict[str, int]:
        """Write the bundle; `end`: facts for end.json. Returns the losses by kind."""
        facts = self.note_end(end)
        try:
            return self._convert(facts)
        except BaseException:
            if self.arena.folder is None:
                self.arena.keep(self.writer.path.inside / SPOOL_DIR, facts)
            raise
        finally:
            self.arena.close()

    def _convert(self, end: dict[str, Any]) -> dict[str, int]:
        """Convert the arena to Parquet; return the losses by kind."""
        skip_pandas()
        import numpy as np

        from tracehint.schemas.spool.convert import convert_arena

        manifest = self.manifest
        arena = np.frombuffer(self.arena.content(), np.uint8)
        what = str(self.request.output)
        tables = convert_arena(arena, self.arena.start, end, manifest, what)
        manifest.complete = True
        write_bundle(self.writer, tables, manifest)
        if self.arena.folder is not None:
            shutil.rmtree(self.arena.folder, ignore_errors=True)
        return losses_of(tables["losses"])


def recording_environment(arena: ArenaFile, env: Mapping[str, str]) -> dict[str, str]:
    """Return `env` with the variables that make programs record into the arena."""
    before = env.get("LD_PRELOAD", "")
    named = str(LIBRARY) in before.split(":")  # the library is already preloaded for hints
    preload = before if named else ":".join(filter(None, (before, str(LIBRARY))))
    return {**env, "LD_PRELOAD": preload, **arena.environment()}


def prepare(request: RecordRequest, *, launched: bool) -> PreparedBundle:
    """Begin the bundle. launched: the first program is not the command but executes it.

    While the command runs, nothing is written over the network or, as root, to a directory that
    other users can change: the arena is an unnamed file on this node then. Raises BundleError,
    CollectorError.
    """
    named = is_local(request.output) and is_safe(request.output)
    unfinished = _UNFINISHED if named else _UNFINISHED_NAMELESS
    manifest = new_manifest(request, "preload", blind_to=BLIND, unfinished=unfinished)
    writer, _ = begin(request, manifest, SPOOL_DIR if named else "")
    arena = ArenaFile(request.output / SPOOL_DIR if named else None)
    try:
        arena.make(launched=launched, tried=request.options.get(TRIED) != "no")
    except TracehintError:
        arena.close()
        shutil.rmtree(request.output, ignore_errors=True)
        raise
    return PreparedBundle(manifest, arena, request, writer)


def record(request: RecordRequest) -> RecordResult:
    """Run the command and write the bundle; the spool is kept if the conversion fails.

    Raises CommandError, BundleError or CollectorError before the command is started. Later
    problems become notes or messages, and the command's own status is returned.
    """
    if request.follow is not None:
        raise CollectorError(
            "preload: can only record programs it starts",
            "Use --collector ebpf for running processes.",
        )
    if "follow" in request.options:
        raise UsageError(
            "follow: static programs are no longer followed",
            "Use --collector ebpf or strace, which record them.",
        )
    command = runnable(request.command)
    refuse_unenterable(find_command(command[0]))
    linger_s = linger_seconds(request, _LINGER_S)
    prepared = prepare(request, launched=True)
    env = prepared.environment(child_environment(request))
    try:
        ended, end = _run_command(command, env, linger_s)
    except TracehintError:
        prepared.arena.close()
        shutil.rmtree(request.output, ignore_errors=True)
        raise
    losses: dict[str, int] = {}
    with report_failures(prepared.kept):
        losses = prepared.finish(end)
    return RecordResult(ended.status, ended.signal, losses)


def record_job(command: tuple[str, ...], place: Path) -> Ended:
    """Run the command of a batch job, then replace the empty file `place` by its recording in one
    step.

    Raises CommandError or CollectorError before the command is started.
    """
    request = RecordRequest(command=runnable(command), output=place)
    refuse_unenterable(find_command(command[0]))
    job = Prepared(new_manifest(request, "preload", blind_to=BLIND), ArenaFile())
    try:
        job.arena.make()
        env = job.environment(child_environment(request))
        ended, end = _run_command(request.command, env, _JOB_LINGER_S)
        # the signals that end a job must not interrupt the writing of its recording
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGINT, signal.SIGHUP})
        with report_failures(f"The recording of the job is lost ({place})."):
            _write_recording(job, job.note_end(end), place)
    finally:
        job.arena.close()
    return ended


def _write_recording(job: Prepared, end: dict[str, Any], place: Path) -> None:
    job.manifest.complete = True
    with replacing(place, 0o600) as fd, os.fdopen(os.dup(fd), "wb", buffering=1 << 20) as out:
        write_packed(out, job.manifest, job.arena.start, end, job.arena.content())


def _run_command(
    command: tuple[str, ...], env: Mapping[str, str], linger_s: float
) -> tuple[Ended, dict[str, Any]]:
    """Run the command; return its end and the facts for end.json. Orphans are adopted."""
    libc = ctypes.CDLL(None)
    libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    root: list[int] = []
    own = _children()
    try:
        ended = run_child((*_LAUNCHER, *command), env, started=root.append)
        ended_boot_ns = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
        left = _wait_for_orphans(linger_s, own)
    finally:
        libc.prctl(_PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)
    status = ended.signal if ended.signal else ended.status << 8
    return ended, {
        "exit_status": ended.status,
        "root": root[0] if root else 0,
        "wait_status": status,
        "ended_boot_ns": ended_boot_ns,
        "outlived": left,
    }


_UNKNOWN = frozenset({0})  # children, if /proc does not list them


def _wait_for_orphans(linger_s: float, own: frozenset[int]) -> int:
    """Reap orphans for at most `linger_s`; return how many still run. `own`: children from before
    the command."""
    deadline = time.monotonic() + linger_s
    old = signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    try:
        while True:
            pid, _ = os.waitpid(-1, os.WNOHANG)
            if not pid:
                left = _children()
                if left != _UNKNOWN:
                    left -= own
                if not left or time.monotonic() >= deadline:
                    return len(left)
                time.sleep(0.01)
    except ChildProcessError:
        return 0
    finally:
        signal.signal(signal.SIGCHLD, old)


def _children() -> frozenset[int]:
    """Return the PIDs of this process's children."""
    me = os.getpid()
    try:
        text = Path(f"/proc/{me}/task/{me}/children").read_text(encoding="ascii")
    except OSError:
        return _UNKNOWN
    return frozenset(map(int, text.split()))
