"""The preload collector: whether it can run here, and recording a command with it."""

from __future__ import annotations

import functools
import os
import platform
import subprocess
import tempfile
from pathlib import Path

from tracehint.collectors.base import Availability, RecordRequest, RecordResult
from tracehint.collectors.preload.blind import BLIND, LIBRARY
from tracehint.collectors.preload.named import can_be_named

COST = (
    "about 20 ns per read or write, 0.7 us per open, 0.15 to 0.25 ms per program; of static and "
    "setuid programs only that they ran"
)
_FLAGS = {"constant_tsc", "nonstop_tsc"}


class PreloadCollector:
    """Records with libtracehint.so, which every dynamic program of the command loads."""

    name = "preload"
    blind_to = BLIND

    def check(self) -> Availability:
        """Test each condition, and last by a trial: `true` below the library."""
        for test in (_machine, can_be_named, _version, _clock, _trial):
            reason, remedy = test()
            if remedy:
                return Availability(False, reason, remedy, BLIND, COST, broken=test is _version)
        return Availability(True, reason, "", BLIND, COST)

    def record(self, request: RecordRequest) -> RecordResult:
        """Run the command with the library and write the bundle."""
        from tracehint.collectors.preload.record import record

        return record(request)


def _machine() -> tuple[str, str]:
    if platform.system() != "Linux" or platform.machine() != "x86_64":
        machine = f"the library knows x86-64 Linux only, this is {platform.machine()}"
        return machine, "Use --collector strace."
    return "x86-64 Linux", ""


def _version() -> tuple[str, str]:
    """What the library writes must be what this code reads."""
    from tracehint.collectors.preload.arena import ARENA_VERSION

    if b"tracehint arena %d;" % ARENA_VERSION in LIBRARY.read_bytes():
        return "the library is of this version", ""
    return (
        f"{LIBRARY.name} is of another version of tracehint",
        "Run `make tracer` in the source tree, or install the wheel again.",
    )


def _clock() -> tuple[str, str]:
    """Times are the processor's counter: it must run on, at one speed."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="ascii", errors="replace")
    except OSError:
        text = ""
    line = next((line for line in text.splitlines() if line.startswith("flags")), "")
    if not set(line.split()) >= _FLAGS:
        return "the processor's time stamp counter does not run evenly", "Use --collector strace."
    return "the processor has an even clock", ""


@functools.cache
def _trial() -> tuple[str, str]:
    """Whether a program below the library finds its arena and writes to it."""
    from tracehint.collectors.preload.arena import ArenaFolder, used_epochs
    from tracehint.collectors.preload.record import environment

    try:
        with tempfile.TemporaryDirectory(prefix="tracehint-") as folder:
            ArenaFolder(Path(folder)).make(measured_s=0)  # nobody reads its times
            done = subprocess.run(
                ["true"], env=environment(Path(folder), os.environ), capture_output=True,
                timeout=20, check=False,
            )  # fmt: skip  # a table
            begun = used_epochs(Path(folder))
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"a trial failed: {error}", "See that the directory for temporary files has room."
    if done.returncode or not begun:
        return (
            "a program with the library was not recorded",
            "The C library must be glibc, and its code must be writable by its own process "
            "(SELinux: execmod). Use --collector strace.",
        )
    return "programs can load the library", ""
