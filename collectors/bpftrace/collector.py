"""The bpftrace collector: whether it can run here, and recording a command with it."""

from __future__ import annotations

import os
import platform
import shutil
from pathlib import Path

from tracehint.collectors.base import Availability, RecordRequest, RecordResult
from tracehint.collectors.blind_spots import BPFTRACE_BLIND

COST = "12 to 16 us per call of the followed processes; 1 to 3 s to attach"
TRACEFS = (Path("/sys/kernel/tracing"), Path("/sys/kernel/debug/tracing"))


class BpftraceCollector:
    """Records with `tracehint.bt`; its blind spots are in `blind_to` and on its page."""

    name = "bpftrace"
    blind_to = BPFTRACE_BLIND

    def check(self) -> Availability:
        """Test each condition; attaching itself takes too long for a check."""
        for wrong, reason, remedy in (
            (
                platform.system() != "Linux" or platform.machine() != "x86_64",
                "the script supports only x86-64 Linux",
                "Use --collector strace.",
            ),
            (
                shutil.which("bpftrace") is None,
                "bpftrace is not installed",
                "Install the package bpftrace.",
            ),
            (bool(os.geteuid()), "bpftrace needs root", "Run as root, or use --collector strace."),
            (
                not any((path / "events/raw_syscalls").is_dir() for path in TRACEFS),
                "kernel tracepoints are not accessible: tracefs is not mounted, or the "
                "kernel has no CONFIG_FTRACE_SYSCALLS",
                "As root: mount -t tracefs tracefs /sys/kernel/tracing",
            ),
        ):
            if wrong:
                return Availability(False, reason, remedy, BPFTRACE_BLIND, COST)
        return Availability(
            True, "bpftrace and the tracepoints are available", "", BPFTRACE_BLIND, COST
        )

    def record(self, request: RecordRequest) -> RecordResult:
        """Run the command while bpftrace traces it, and write the bundle."""
        from tracehint.collectors.bpftrace.record import record

        return record(request)
