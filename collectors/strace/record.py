"""A recording with strace from the first to the last step: prepare, run, convert, clean up."""

from __future__ import annotations

import shlex
import shutil
from dataclasses import replace
from pathlib import Path

from tracehint.collectors.base import RecordRequest, RecordResult
from tracehint.collectors.begin import begin, linger_seconds, new_manifest
from tracehint.collectors.run import runnable, told
from tracehint.collectors.session import child_environment
from tracehint.collectors.strace.blind import BLIND, BLIND_LIGHT
from tracehint.collectors.strace.live import LINGER_S, LiveLog, inherited, run_traced
from tracehint.collectors.strace.recover import LOG_NAME
from tracehint.errors import TracehintError
from tracehint.schemas.arrow import skip_pandas
from tracehint.schemas.manifest import Manifest
from tracehint.schemas.recovery import RAW_DIR
from tracehint.schemas.writer import BundleWriter


def record(request: RecordRequest, *, light: bool) -> RecordResult:
    """Run the command and write the bundle; what strace wrote stays if the rest fails.

    Raises CommandError, BundleError, CollectorError before the command was
    started; later problems are notes in the bundle or a message, and the
    command's own status is returned.
    """
    command = runnable(request.command)
    linger_s = linger_seconds(request, LINGER_S)
    manifest = new_manifest(
        request,
        "strace-light" if light else "strace",
        blind_to=BLIND_LIGHT if light else BLIND,
        unfinished="The recorder was stopped before it converted strace's log. "
        "The tables come from what is there.",
    )
    writer, log = begin(request, manifest, RAW_DIR, LOG_NAME)
    facts = inherited()
    try:
        env = child_environment(replace(request, environment={}))
        given = request.environment
        run = run_traced(command, env, log, light=light, linger_s=linger_s, given=given)
    except (TracehintError, OSError):
        shutil.rmtree(request.output, ignore_errors=True)
        raise
    manifest.started_ns, manifest.ended_ns = run.started_ns, run.ended_ns
    manifest.exit_status = run.ended.status
    losses = {"spool_write": run.lost_lines} if run.lost_lines else {}
    with told(_later(log)):
        losses = convert(writer, manifest, log, run, facts)
    return RecordResult(run.ended.status, run.ended.signal, losses)


def _later(log: Path) -> str:
    bundle = shlex.quote(str(log.parent.parent))
    return f"strace's log is kept in {bundle}; every command reads it from there."


def convert(
    writer: BundleWriter,
    manifest: Manifest,
    log: Path,
    run: LiveLog,
    facts: dict[int, tuple[bytes, int, int]],
) -> dict[str, int]:
    """From the log to the bundle's tables; what was lost, by kind.

    Raises BundleError when the tables cannot be written: the log stays where it is.
    """
    skip_pandas()
    from tracehint.collectors.strace.convert import convert_calls
    from tracehint.collectors.strace.lexer import LexStats, lex
    from tracehint.limits import limit

    stats, most = LexStats(), limit("strace-line")
    with log.open("rb") as stream:
        return convert_calls(
            writer,
            manifest,
            log,
            lex(iter(lambda: stream.readline(most), b""), stats),
            stats,
            facts=facts,
            notes=_notes(run),
            losses={
                ("spool_write", "the disk was full"): run.lost_lines,
                ("outliving_processes", "at least one"): int(run.left_running),
                ("killed_recorder", "what writes the log was killed"): int(run.drain_killed),
            },
            ends_known=not (run.left_running or run.lost_lines),
        )


def _notes(run: LiveLog) -> list[str]:
    if not run.lost_lines:
        return []
    return [f"The disk was full: {run.lost_lines} lines of strace's log are missing."]
