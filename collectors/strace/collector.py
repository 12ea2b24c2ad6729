"""The strace collector: for people without privileges. Complete for system calls, but slow."""

from __future__ import annotations

import functools
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from tracehint.collectors.base import Availability, RecordRequest, RecordResult
from tracehint.collectors.strace.blind import BLIND, BLIND_LIGHT

COST = "5 to 20 times slower on small I/O (about 30 us per read, 80 us per open and close)"
COST_LIGHT = "nothing on reads and writes, about 70 us per open and close"
_OLDEST = (5, 6)  # --absolute-timestamps; --seccomp-bpf is in 5.3


class StraceCollector:
    """Records by `strace --seccomp-bpf`; `light`: open, exec, rename only, no byte counts."""

    def __init__(self, *, light: bool = False) -> None:
        self.light = light
        self.name = "strace-light" if light else "strace"
        self.blind_to = BLIND_LIGHT if light else BLIND

    def check(self) -> Availability:
        """Run `true` under strace: the one test that covers Yama, containers and seccomp."""
        reason, remedy = _trial()
        cost = COST_LIGHT if self.light else COST
        return Availability(not remedy, reason, remedy, self.blind_to, cost)

    def record(self, request: RecordRequest) -> RecordResult:
        """Run the command under strace and write the bundle."""
        from tracehint.collectors.strace.record import record

        light = self.light or request.options.get("light") == "1"
        if not request.quiet:
            print(_announcement(light), file=sys.stderr)
        return record(request, light=light)


def _announcement(light: bool) -> str:
    if light:
        return (
            "tracehint: strace, light mode: only open, exec and rename are seen; no byte counts, "
            "so patterns have lower confidence."
        )
    return (
        f"tracehint: strace: the run will be {COST}.\n"
        "  Nearly free instead, without byte counts: --collector strace-light"
    )


def version_of(text: str) -> tuple[int, int] | None:
    """`strace -- version 6.1` as (6, 1)."""
    found = re.search(r"version (\d+)\.(\d+)", text)
    return (int(found[1]), int(found[2])) if found else None


@functools.cache
def _trial() -> tuple[str, str]:
    """(reason, remedy); no remedy: usable."""
    program = shutil.which("strace")
    if program is None:
        return "strace is not installed", "apt install strace (or conda install strace)"
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
            capture_output=True, text=True, timeout=5, check=False,
        )  # fmt: skip  # a table
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"strace does not run: {error}", "Reinstall strace."
    if done.returncode == 0:
        number = ".".join(map(str, version)) if version else "of unknown version"
        return f"strace {number} can trace children", ""
    first = done.stderr.strip().splitlines()[0] if done.stderr.strip() else "no message"
    return f"strace cannot trace: {first}", _remedy()


def _remedy() -> str:
    """What forbids ptrace here."""
    try:
        status = Path("/proc/self/status").read_text(encoding="ascii", errors="replace")
    except OSError:
        status = ""
    tracer = re.search(r"^TracerPid:\s*(\d+)", status, re.MULTILINE)
    if tracer and tracer[1] != "0":
        return f"This process is traced already (by pid {tracer[1]}): run outside of it."
    try:
        scope = Path("/proc/sys/kernel/yama/ptrace_scope").read_text(encoding="ascii").strip()
    except OSError:
        scope = "0"
    if scope == "3":
        return "kernel.yama.ptrace_scope is 3: ptrace is off until reboot; ask the administrator."
    if scope == "2" and os.geteuid() != 0:
        return "kernel.yama.ptrace_scope is 2: ask for `sysctl kernel.yama.ptrace_scope=1`."
    return "In a container: start it with --cap-add=SYS_PTRACE."
