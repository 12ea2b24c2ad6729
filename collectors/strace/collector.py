"""The strace collector: needs no privileges and is complete for system calls, but slow."""

from __future__ import annotations

import functools
import os
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

from tracehint.collectors.base import Availability, RecordRequest, RecordResult
from tracehint.collectors.begin import begin, child_environment, linger_seconds, new_manifest
from tracehint.collectors.blind_spots import STRACE_BLIND, STRACE_LIGHT_BLIND
from tracehint.collectors.hostinfo import process_status
from tracehint.collectors.run import report_failures, runnable
from tracehint.collectors.strace.convert import LOG_NAME
from tracehint.collectors.strace.live import LINGER_S, LiveLog, inherited_descriptors, run_traced
from tracehint.errors import TracehintError
from tracehint.schemas.arrow import skip_pandas
from tracehint.schemas.manifest import Manifest
from tracehint.schemas.recovery import RAW_DIR
from tracehint.schemas.wording import agree
from tracehint.schemas.writer import BundleWriter


def record(request: RecordRequest, *, light: bool) -> RecordResult:
    """Run the command and write the bundle; strace's log is kept if the conversion fails.

    Raises CommandError, BundleError, CollectorError before the command is
    started. Later problems become notes in the bundle or a message, and the
    command's own status is returned.
    """
    command = runnable(request.command)
    linger_s = linger_seconds(request, LINGER_S)
    manifest = new_manifest(
        request,
        "strace-light" if light else "strace",
        blind_to=STRACE_LIGHT_BLIND if light else STRACE_BLIND,
        unfinished="The recorder was stopped before it converted strace's log. "
        "The tables come from what is there.",
    )
    writer, log = begin(request, manifest, RAW_DIR, LOG_NAME)
    facts = inherited_descriptors()
    try:
        env = child_environment(replace(request, environment={}))
        given = request.environment
        run = run_traced(command, env, log, light=light, linger_s=linger_s, given=given)
    except (TracehintError, OSError):
        writer.discard()
        raise
    manifest.started_ns, manifest.ended_ns = run.started_ns, run.ended_ns
    manifest.exit_status = run.ended.status
    losses = {"spool_write": run.lost_lines} if run.lost_lines else {}
    with report_failures(_note_of_kept_log(writer.path)):
        losses = convert(writer, manifest, log, run, facts)
    return RecordResult(run.ended.status, run.ended.signal, losses, writer.path)


def _note_of_kept_log(bundle: Path) -> str:
    return f"strace's log is kept in {shlex.quote(str(bundle))}; every command reads it from there."


def convert(
    writer: BundleWriter,
    manifest: Manifest,
    log: Path,
    run: LiveLog,
    facts: dict[int, tuple[bytes, int, int]],
) -> dict[str, int]:
    """Convert the log to the bundle's tables; return the losses by kind.

    Raises BundleError when the tables cannot be written; the log is then kept.
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
    return [agree(run.lost_lines, "The disk was full: {n} [line|lines] of strace's log missing.")]


COST = "5 to 20 times slower on small I/O (about 30 us per read, 80 us per open and close)"
COST_LIGHT = "no overhead on reads and writes, about 70 us per open and close"
_OLDEST = (5, 6)  # for --absolute-timestamps; --seccomp-bpf is in 5.3


class StraceCollector:
    """Records with `strace --seccomp-bpf`; `light`: open, exec, rename only, no byte counts."""

    def __init__(self, *, light: bool = False) -> None:
        self.light = light
        self.name = "strace-light" if light else "strace"
        self.blind_to = STRACE_LIGHT_BLIND if light else STRACE_BLIND

    def check(self) -> Availability:
        """Try to run `true` under strace: this covers Yama, containers and seccomp."""
        reason, remedy = _trial()
        cost = COST_LIGHT if self.light else COST
        return Availability(not remedy, reason, remedy, self.blind_to, cost)

    def record(self, request: RecordRequest) -> RecordResult:
        """Run the command under strace and write the bundle."""
        light = self.light or request.options.get("light") == "1"
        if not request.quiet:
            print(_announcement(light), file=sys.stderr)
        return record(request, light=light)


def _announcement(light: bool) -> str:
    if light:
        return (
            "tracehint: strace, light mode: only open, exec and rename are recorded; no byte "
            "counts, so patterns have lower confidence."
        )
    return (
        f"tracehint: strace: the run will be {COST}.\n"
        "  Low overhead, without byte counts: --collector strace-light"
    )


def version_of(text: str) -> tuple[int, int] | None:
    """Parse `strace -- version 6.1` to (6, 1); None if there is no version."""
    found = re.search(r"version (\d+)\.(\d+)", text)
    return (int(found[1]), int(found[2])) if found else None


@functools.cache
def _trial() -> tuple[str, str]:
    """Return (reason, remedy); the remedy is empty if strace is usable."""
    program = shutil.which("strace")
    if program is None:
        return "strace is not installed", "install the package strace (apt, dnf or conda)"
    try:
        text = subprocess.run(
            [program, "--version"], capture_output=True, text=True, timeout=5, check=False
        ).stdout
        version = version_of(text)
        if version is not None and version < _OLDEST:
            return (
                f"strace {version[0]}.{version[1]} is too old",
                f"Install strace {_OLDEST[0]}.{_OLDEST[1]} or later.",
            )
        done = subprocess.run(
            [program, "-f", "--seccomp-bpf", "-e", "trace=close", "-o", "/dev/null", "true"],
            capture_output=True,
            text=True,
            timeout=5,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"strace does not run: {error}", "Reinstall strace."
    if done.returncode == 0:
        number = ".".join(map(str, version)) if version else "of unknown version"
        return f"strace {number} can trace children", ""
    first = done.stderr.strip().splitlines()[0] if done.stderr.strip() else "no message"
    return f"strace cannot trace: {first}", _remedy()


def _remedy() -> str:
    """Return why ptrace is not permitted here, and what to do."""
    tracer = process_status().get("TracerPid", ["0"])[0]
    if tracer != "0":
        return f"This process is already traced (by pid {tracer}): run outside that tracer."
    try:
        scope = Path("/proc/sys/kernel/yama/ptrace_scope").read_text(encoding="ascii").strip()
    except OSError:
        scope = "0"
    if scope == "3":
        return "kernel.yama.ptrace_scope is 3: ptrace is off until reboot; ask the administrator."
    if scope == "2" and os.geteuid() != 0:
        return "kernel.yama.ptrace_scope is 2: ask for `sysctl kernel.yama.ptrace_scope=1`."
    return "In a container: start it with --cap-add=SYS_PTRACE."
