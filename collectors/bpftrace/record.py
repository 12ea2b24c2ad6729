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
from functools import lru_cache
from pathlib import Path
from typing import IO

from tracehint import __version__
from tracehint.collectors import hostinfo
from tracehint.collectors.base import RecordRequest, RecordResult
from tracehint.collectors.bpftrace import announce
from tracehint.collectors.bpftrace.collector import BLIND
from tracehint.collectors.run import run_child, runnable
from tracehint.collectors.session import child_environment
from tracehint.errors import BundleError, CollectorError, TracehintError
from tracehint.schemas.manifest import Manifest
from tracehint.schemas.redact import redact_argv
from tracehint.schemas.store import RAW_DIR, BundleWriter

SCRIPT = Path(__file__).parent / "tracehint.bt"
ATTACH_S = 30.0
DRAIN_S = 0.5  # after the command: what the rings still hold
_ENVIRONMENT = {
    "BPFTRACE_STRLEN": "200", "BPFTRACE_MAP_KEYS_MAX": "65536", "BPFTRACE_PERF_RB_PAGES": "1024",
}  # fmt: skip
_PRCTL = 157


def record(request: RecordRequest) -> RecordResult:
    """Run the command and write the bundle; the log stays if translating it fails.

    Raises CommandError, BundleError, CollectorError before the command was started.
    """
    from tracehint.collectors.strace.live import inherited

    command = runnable(request.command)
    writer = BundleWriter(request.output, force=request.force)
    raw = request.output / RAW_DIR
    manifest = _manifest(request)
    try:
        raw.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise BundleError(
            f"{raw}: cannot be written: {error.strerror}", "Choose another place with -o."
        ) from None
    writer.write_manifest(manifest)
    log = raw / "bpftrace.log"
    cookie = 0x40000000 + secrets.randbelow(0x3FFFFFFE)
    facts = inherited()
    tracer = _attach(request, log, cookie)
    manifest.started_ns = time.time_ns()
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
    lost = 0
    try:
        lost = _convert(request, writer, manifest, log, facts)
    except (TracehintError, OSError, MemoryError) as error:
        print(f"tracehint: {error}\n  bpftrace's output is kept in {log}.", file=sys.stderr)
    return RecordResult(ended.status, ended.signal, lost)


def _manifest(request: RecordRequest) -> Manifest:
    raw = [os.fsencode(a) for a in request.command]
    argv, hits = (raw, 0) if request.keep_args else redact_argv(raw)
    return Manifest(
        program=f"tracehint {__version__}", collector="bpftrace",
        command=[os.fsdecode(a) for a in argv], cwd=str(Path.cwd()),
        hosts=[hostinfo.this_host(request.host)], data_roots=list(request.data_roots),
        blind_to=list(BLIND), redacted_args=hits,
        notes=["The recorder was stopped before it translated bpftrace's output."],
    )  # fmt: skip


def _attach(request: RecordRequest, log: Path, cookie: int) -> subprocess.Popen[bytes]:
    """bpftrace with all probes attached. Raises CollectorError, and nothing was run then."""
    errors = log.with_suffix(".err")
    with log.open("wb") as out, errors.open("wb") as err:
        log.chmod(0o600)
        tracer = subprocess.Popen(
            ["bpftrace", "-q", "-B", "line", str(SCRIPT), str(cookie)],
            stdin=subprocess.DEVNULL, stdout=out, stderr=err, start_new_session=True,
            env={**os.environ, **_ENVIRONMENT},
        )  # fmt: skip
    libc = ctypes.CDLL(None)
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


def _offset_ns() -> int:
    """What to add to bpftrace's clock (since boot) for the time of day: the tightest of several."""
    best, offset = 1 << 62, 0
    for _ in range(16):
        a = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
        real = time.time_ns()
        b = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
        if b - a < best:
            best, offset = b - a, real - (a + b) // 2
    return offset


def _convert(
    request: RecordRequest, writer: BundleWriter, manifest: Manifest, log: Path,
    facts: dict[int, tuple[bytes, int, int]],
) -> int:  # fmt: skip
    """From the log to the bundle's tables; the number of events lost."""
    from tracehint.collectors.bpftrace.translate import translate
    from tracehint.collectors.strace.finish import finish, look_at
    from tracehint.collectors.strace.lexer import LexStats
    from tracehint.collectors.strace.live import initial_table
    from tracehint.collectors.strace.parse import Parser
    from tracehint.collectors.strace.state import Settings

    with log.open("rb") as stream:
        found = translate(_lines(stream), _offset_ns())
    table, files = initial_table(facts)
    settings = Settings(
        host=manifest.hosts[0].name, uid=os.getuid(), cwd=os.fsencode(Path.cwd()),
        started_ns=manifest.started_ns, initial=table, initial_files=files,
        redact=None if request.keep_args else redact_argv,
        real_dir=lru_cache(65536)(_real), complete=True,
    )  # fmt: skip
    stats = LexStats(bad=found.bad)
    state = Parser(settings, stats).feed(found.calls)
    for kind, detail, count in (
        ("lifecycle_records", "bpftrace's buffers were full", found.lost),
        ("path_cut", "longer than 199 bytes", found.cut),
        *(("unknown_calls", name, n) for name, n in found.unseen.items()),
    ):
        if count:
            state.losses[kind, detail] += count
    tables = finish(state, stats, look=look_at, started_ns=manifest.started_ns)
    manifest.redacted_args += state.redacted
    manifest.notes = []
    manifest.complete = True
    for name, rows in tables.items():
        if len(rows):
            writer.write_table(name, rows)
    writer.write_manifest(manifest)
    shutil.rmtree(log.parent, ignore_errors=True)
    return found.lost + stats.bad


def _lines(stream: IO[bytes]) -> list[bytes]:
    return stream.readlines()


def _real(folder: bytes) -> bytes:
    try:
        return os.path.realpath(folder)
    except (OSError, ValueError):
        return folder
