"""A recording with strace from the first to the last step: prepare, run, convert, clean up."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from functools import lru_cache
from pathlib import Path

from tracehint import __version__
from tracehint.collectors import hostinfo
from tracehint.collectors.base import RecordRequest, RecordResult
from tracehint.collectors.run import runnable
from tracehint.collectors.session import child_environment
from tracehint.collectors.strace.collector import BLIND, BLIND_LIGHT
from tracehint.collectors.strace.live import LINGER_S, LiveLog, inherited, initial_table, run_traced
from tracehint.errors import BundleError, TracehintError, UsageError
from tracehint.schemas.arrow import skip_pandas
from tracehint.schemas.manifest import Manifest
from tracehint.schemas.redact import redact_argv
from tracehint.schemas.store import RAW_DIR, BundleWriter

LOG_NAME = "strace.log"


def record(request: RecordRequest, *, light: bool) -> RecordResult:
    """Run the command and write the bundle; what strace wrote stays if the rest fails.

    Raises CommandError, BundleError, CollectorError before the command was
    started; later problems are notes in the bundle or a message, and the
    command's own status is returned.
    """
    command = runnable(request.command)
    linger_s = _linger(request)
    writer = BundleWriter(request.output, force=request.force)
    raw = request.output / RAW_DIR
    manifest = _manifest(request, light=light)
    try:
        raw.mkdir(mode=0o700, exist_ok=True)
        log = raw / LOG_NAME
        log.touch(mode=0o600)
    except OSError as error:
        raise BundleError(
            f"{raw}: cannot be written: {error.strerror}", "Choose another place with -o."
        ) from None
    writer.write_manifest(manifest)
    facts = inherited()
    try:
        run = run_traced(command, child_environment(request), log, light=light, linger_s=linger_s)
    except TracehintError:
        shutil.rmtree(request.output, ignore_errors=True)
        raise
    manifest.started_ns, manifest.ended_ns = run.started_ns, run.ended_ns
    manifest.exit_status = run.ended.status
    lost = run.lost_lines
    try:
        lost = convert(request, writer, manifest, log, run, facts)
    except (TracehintError, OSError, MemoryError, KeyboardInterrupt) as error:
        # The run is over: its status must not change, and the log is kept.
        print(f"tracehint: {error or type(error).__name__}\n{_later(log)}", file=sys.stderr)
    return RecordResult(run.ended.status, run.ended.signal, lost)


def _linger(request: RecordRequest) -> float:
    """Option `linger`: milliseconds to follow processes that outlive the command."""
    text = request.options.get("linger", "")
    if text and not text.isdigit():
        raise UsageError(
            f"linger={text}: not a number of milliseconds", "Give --option linger=5000"
        )
    return int(text) / 1000 if text else LINGER_S


def _later(log: Path) -> str:
    bundle = shlex.quote(str(log.parent.parent))
    return f"  strace's log is kept. To convert it: tracehint import {bundle} -o NEW.trace"


def _manifest(request: RecordRequest, *, light: bool) -> Manifest:
    raw = [os.fsencode(a) for a in request.command]
    argv, hits = (raw, 0) if request.keep_args else redact_argv(raw)
    return Manifest(
        program=f"tracehint {__version__}",
        collector="strace-light" if light else "strace",
        command=[os.fsdecode(a) for a in argv],
        cwd=str(Path.cwd()),
        hosts=[hostinfo.this_host(request.host)],
        data_roots=list(request.data_roots),
        blind_to=list(BLIND_LIGHT if light else BLIND),
        redacted_args=hits,
        notes=[
            "The recorder was stopped before it converted strace's log. "
            f"`tracehint import {request.output.name} -o NEW` converts what is there."
        ],
    )


def convert(
    request: RecordRequest, writer: BundleWriter, manifest: Manifest, log: Path, run: LiveLog,
    facts: dict[int, tuple[bytes, int, int]],
) -> int:  # fmt: skip
    """From the log to the bundle's tables; the number of events lost.

    Raises BundleError when the tables cannot be written: the log stays where it is.
    """
    skip_pandas()
    from tracehint.collectors.strace.finish import finish, look_at
    from tracehint.collectors.strace.lexer import MAX_LINE, LexStats, lex
    from tracehint.collectors.strace.parse import Parser
    from tracehint.collectors.strace.state import Settings

    table, files = initial_table(facts)
    settings = Settings(
        host=manifest.hosts[0].name, uid=os.getuid(), cwd=os.fsencode(Path.cwd()),
        started_ns=run.started_ns, initial=table, initial_files=files,
        redact=None if request.keep_args else redact_argv,
        real_dir=lru_cache(65536)(_real), complete=True,
    )  # fmt: skip
    stats = LexStats()
    parser = Parser(settings, stats)
    with log.open("rb") as stream:
        state = parser.feed(lex(iter(lambda: stream.readline(MAX_LINE), b""), stats))
    if run.lost_lines:
        state.losses["spool_write", "the disk was full"] += run.lost_lines
    tables = finish(state, stats, look=look_at, started_ns=run.started_ns)
    manifest.redacted_args += state.redacted
    manifest.notes = _notes(run)
    manifest.complete = True
    for name, rows in tables.items():
        if len(rows):
            writer.write_table(name, rows)
    writer.write_manifest(manifest)
    shutil.rmtree(log.parent, ignore_errors=True)
    return stats.bad + run.lost_lines


def _notes(run: LiveLog) -> list[str]:
    notes = []
    if run.left_running:
        notes.append("Processes outlived the command; what they did later was not recorded.")
    if run.lost_lines:
        notes.append(f"The disk was full: {run.lost_lines} lines of strace's log are missing.")
    return notes


def _real(folder: bytes) -> bytes:
    try:
        return os.path.realpath(folder)
    except (OSError, ValueError):
        return folder
