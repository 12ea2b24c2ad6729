"""A recording with bpftrace from the first to the last step: attach, run, translate."""

from __future__ import annotations

import ctypes
import os
import secrets
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

from tracehint.collectors import hostinfo
from tracehint.collectors.base import RecordRequest, RecordResult
from tracehint.collectors.begin import begin, new_manifest
from tracehint.collectors.bpftrace import announce
from tracehint.collectors.bpftrace.blind import BLIND
from tracehint.collectors.bpftrace.recover import LOG_NAME
from tracehint.collectors.run import run_child, runnable, told
from tracehint.collectors.session import child_environment
from tracehint.errors import CollectorError
from tracehint.schemas.manifest import Manifest
from tracehint.schemas.recovery import RAW_DIR
from tracehint.schemas.writer import BundleWriter

SCRIPT = Path(__file__).parent / "tracehint.bt"
ATTACH_S = 30.0
DRAIN_S = 0.5  # after the command: what the rings still hold
_ENVIRONMENT = {
    "BPFTRACE_STRLEN": "200",
    "BPFTRACE_MAP_KEYS_MAX": "65536",
    "BPFTRACE_PERF_RB_PAGES": "1024",
}
_PRCTL = 157
_PR_SET_PDEATHSIG = 1


def record(request: RecordRequest) -> RecordResult:
    """Run the command and write the bundle; the log stays if translating it fails.

    Raises CommandError, BundleError, CollectorError before the command was started.
    """
    from tracehint.collectors.strace.live import inherited

    command = runnable(request.command)
    manifest = new_manifest(
        request,
        "bpftrace",
        blind_to=BLIND,
        unfinished="The recorder was stopped before it translated bpftrace's output.",
    )
    writer, log = begin(request, manifest, RAW_DIR, LOG_NAME)
    cookie = 0x40000000 + secrets.randbelow(0x3FFFFFFE)
    facts = inherited()
    tracer = _attach(request, log, cookie)
    try:
        launcher = [sys.executable, "-I", "-S", announce.__file__, str(cookie), *command]
        ended = run_child(launcher, child_environment(request))
        manifest.ended_ns = time.time_ns()
        time.sleep(DRAIN_S)
    finally:
        tracer.send_signal(signal.SIGINT)
        try:
            tracer.wait(10)
        except subprocess.TimeoutExpired:
            tracer.kill()
            tracer.wait()
    manifest.exit_status = ended.status
    losses: dict[str, int] = {}
    with told(f"bpftrace's output is kept in {log}."):
        losses = _convert(writer, manifest, log, facts)
    return RecordResult(ended.status, ended.signal, losses)


def _attach(request: RecordRequest, log: Path, cookie: int) -> subprocess.Popen[bytes]:
    """bpftrace with all probes attached. Raises CollectorError, and nothing was run then."""
    errors = log.with_suffix(".err")
    libc = ctypes.CDLL(None)

    def end_with_me() -> None:
        """Probes on every system call must not outlive a recorder that was killed."""
        libc.prctl(_PR_SET_PDEATHSIG, signal.SIGINT, 0, 0, 0)

    with log.open("wb") as out, errors.open("wb") as err:
        tracer = subprocess.Popen(
            ["bpftrace", "-q", "-B", "line", str(SCRIPT), str(cookie)],
            stdin=subprocess.DEVNULL, stdout=out, stderr=err, start_new_session=True,
            env={**os.environ, **_ENVIRONMENT}, preexec_fn=end_with_me,
        )  # fmt: skip  # a table
    end = time.monotonic() + ATTACH_S
    while time.monotonic() < end and tracer.poll() is None:
        libc.syscall(ctypes.c_long(_PRCTL), ctypes.c_ulong(cookie + 1), 0, 0, 0, 0)
        time.sleep(0.05)
        text = log.read_bytes()
        if b"ready first\n" in text and b"ready last\n" in text:
            return tracer
    tracer.kill()
    tracer.wait()
    said = errors.read_text(errors="replace").strip().splitlines()
    shutil.rmtree(request.output, ignore_errors=True)
    raise CollectorError(
        f"bpftrace could not attach; nothing was run: {said[-1] if said else 'no message'}",
        "See the message; or use --collector ebpf or strace.",
    )


def _convert(
    writer: BundleWriter, manifest: Manifest, log: Path, facts: dict[int, tuple[bytes, int, int]]
) -> dict[str, int]:
    """From the log to the bundle's tables; what was lost, by kind."""
    from tracehint.collectors.bpftrace.translate import lost_in, translate
    from tracehint.collectors.strace.convert import convert_calls
    from tracehint.collectors.strace.lexer import LexStats

    now = hostinfo.clock()  # bpftrace counts since boot
    with log.open("rb") as stream:
        found = translate(stream, now["real_ns"] - now["boot_ns"])
    stats = LexStats(bad=found.bad)
    return convert_calls(
        writer, manifest, log, found.calls, stats, facts=facts, notes=[], losses=lost_in(found)
    )
