"""A recording with the preload library from the first to the last step."""

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
from tracehint.collectors.begin import begin, linger_seconds, new_manifest
from tracehint.collectors.preload.arena import SITES, ArenaFolder
from tracehint.collectors.preload.blind import BLIND, BLIND_UNENTERED, LIBRARY
from tracehint.collectors.preload.programs import refuse_unenterable
from tracehint.collectors.preload.sites import NAMED_BY
from tracehint.collectors.run import Ended, find_command, run_child, runnable, told
from tracehint.collectors.session import ARENA, child_environment
from tracehint.errors import CollectorError, TracehintError, UsageError
from tracehint.schemas.arrow import skip_pandas
from tracehint.schemas.losses import losses_of
from tracehint.schemas.manifest import Manifest
from tracehint.schemas.recovery import SPOOL_DIR
from tracehint.schemas.writer import BundleWriter
from tracehint.schemas.writing import write_bundle

_PR_SET_CHILD_SUBREAPER = 36
_LINGER_S = 1.0
# A dynamic program that becomes the command: so what the command is (static, setuid ...) is found
# out where it is for all others. It is no part of the recording (forget_launcher).
_LAUNCHER = ("nice", "-n", "0")


def environment(folder: Path, env: Mapping[str, str]) -> dict[str, str]:
    """The environment that makes programs record to the arena in `folder`."""
    before = env.get("LD_PRELOAD", "")
    named = str(LIBRARY) in before.split(":")  # for hints already
    preload = before if named else ":".join(filter(None, (before, str(LIBRARY))))
    own = {"LD_PRELOAD": preload, ARENA: str(folder)}
    return {**env, **own, NAMED_BY: str(folder / SITES)}


@dataclass
class Prepared:
    """A bundle that was begun, with its arena."""

    request: RecordRequest
    manifest: Manifest
    writer: BundleWriter
    arena: ArenaFolder

    @property
    def folder(self) -> Path:
        """Where the arena is."""
        return self.arena.folder

    def finish(self, end: Mapping[str, Any]) -> dict[str, int]:
        """Convert what was recorded; `end`: facts for end.json. Returns what was lost, by kind."""
        self.manifest.ended_ns = time.time_ns()
        self.manifest.exit_status = end["exit_status"]
        self.manifest.notes = []
        self.arena.write("end.json", {**end, **self.arena.sample()})
        if not end["outlived"]:
            self.arena.cut()
        return _convert(self.request, self.writer, self.manifest)


def prepare(request: RecordRequest, *, launched: bool) -> Prepared:
    """Begin the bundle. launched: the first program is not the command but becomes it.

    Raises BundleError, CollectorError.
    """
    manifest = new_manifest(
        request, "preload", blind_to=BLIND,
        unfinished="The recorder did not reach its end; the tables come from its spool.",
    )  # fmt: skip  # a table
    writer, spool = begin(request, manifest, SPOOL_DIR)
    arena = ArenaFolder(spool)
    try:
        arena.make(launched=launched)
    except TracehintError:
        shutil.rmtree(request.output, ignore_errors=True)
        raise
    return Prepared(request, manifest, writer, arena)


def record(request: RecordRequest) -> RecordResult:
    """Run the command and write the bundle; the spool stays if converting fails.

    Raises CommandError, BundleError, CollectorError before the command was started. Afterwards
    problems are notes or messages, and the command's own status is returned.
    """
    if request.follow is not None:
        raise CollectorError(
            "preload: can only record what it starts", "Use --collector ebpf to follow others."
        )
    command = runnable(request.command)
    follow = _follows(request)
    refuse_unenterable(find_command(command[0]), follow=bool(follow))
    linger_s = linger_seconds(request, _LINGER_S)
    prepared = prepare(request, launched=True)
    env = environment(prepared.folder, child_environment(request)) | follow
    try:
        ended, end = _run(command, env, linger_s)
    except TracehintError:
        shutil.rmtree(request.output, ignore_errors=True)
        raise
    losses: dict[str, int] = {}
    with told(f"What was recorded is in {prepared.folder}."):
        losses = prepared.finish(end)
    return RecordResult(ended.status, ended.signal, losses)


def _follows(request: RecordRequest) -> dict[str, str]:
    """Option `follow`: what makes static programs be followed (record/follow.h), or nothing."""
    text = request.options.get("follow", "no")
    if text not in ("yes", "no"):
        raise UsageError(f"follow={text}: neither yes nor no", "Give --option follow=yes")
    return {"TRACEHINT_FOLLOW": "1"} if text == "yes" else {}


def _run(
    command: tuple[str, ...], env: Mapping[str, str], linger_s: float
) -> tuple[Ended, dict[str, Any]]:
    """The command, and what end.json says of it. Orphans become our children."""
    libc = ctypes.CDLL(None)
    libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    root: list[int] = []
    try:
        ended = run_child((*_LAUNCHER, *command), env, started=root.append)
        ended_boot_ns = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
        left = _wait_for_orphans(linger_s)
    finally:
        libc.prctl(_PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)
    status = ended.signal if ended.signal else ended.status << 8
    return ended, {
        "exit_status": ended.status, "root": root[0] if root else 0, "wait_status": status,
        "ended_boot_ns": ended_boot_ns, "outlived": left,
    }  # fmt: skip  # a table


def _wait_for_orphans(linger_s: float) -> int:
    """How many processes are left after that time: those that were waited for have ended."""
    deadline = time.monotonic() + linger_s
    old = signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    try:
        while True:
            pid, _ = os.waitpid(-1, os.WNOHANG)
            if not pid:
                if time.monotonic() >= deadline:
                    return _children()
                time.sleep(0.01)
    except ChildProcessError:
        return 0
    finally:
        signal.signal(signal.SIGCHLD, old)


def _children() -> int:
    """Our children that run."""
    me = os.getpid()
    try:
        text = Path(f"/proc/{me}/task/{me}/children").read_text(encoding="ascii")
    except OSError:
        return 1
    return len(text.split())


def _convert(request: RecordRequest, writer: BundleWriter, manifest: Manifest) -> dict[str, int]:
    """From the arena to Parquet; what was lost, by kind."""
    skip_pandas()
    from tracehint.schemas.spool.convert import convert_spool

    tables = convert_spool(request.output, manifest)
    losses = losses_of(tables["losses"])
    if losses.get("unentered_programs"):
        manifest.blind_to.append(BLIND_UNENTERED)
    manifest.complete = True
    write_bundle(writer, tables, manifest)
    shutil.rmtree(request.output / SPOOL_DIR, ignore_errors=True)
    return losses
