"""The eBPF collector: whether it can run here, and recording a command with it."""

from __future__ import annotations

import functools
import os
import platform
import subprocess
from collections.abc import Callable
from pathlib import Path

from tracehint.collectors.base import Availability, RecordRequest, RecordResult
from tracehint.collectors.ebpf.blind import BLIND, LOADER
from tracehint.schemas.spool.version import VERSION

BTF = Path("/sys/kernel/btf/vmlinux")
COST = "about 1.1 times the CPU time on small I/O, nothing measurable on computation"

_CAP_SYS_ADMIN, _CAP_PERFMON, _CAP_BPF = 21, 38, 39
_REBUILD = (
    "Run `make tracer` in the source tree, or install the wheel again. "
    "Until then: --collector strace."
)
_SETCAP = f"setcap cap_bpf,cap_perfmon=ep {LOADER} && chmod 750 {LOADER}"


class EbpfCollector:
    """Records with BTF raw tracepoints through the loader `tracehint-rec`."""

    name = "ebpf"
    blind_to = BLIND

    def check(self) -> Availability:
        """Test each condition, and last by loading the programs."""
        return _all_of(_machine, _loader, _same_version, _btf, _loads)

    def conditions(self) -> Availability:
        """The same without a trial load (0.07 s CPU): `record` raises NotBegunError then."""
        return _all_of(_machine, _loader, _same_version, _btf, _allowed)

    def record(self, request: RecordRequest) -> RecordResult:
        """Run the command below the loader and write the bundle."""
        from tracehint.collectors.ebpf.record import record

        return record(request)


def _all_of(*tests: Callable[[], tuple[str, str]]) -> Availability:
    reason = ""
    for test in tests:
        reason, remedy = test()
        if remedy:
            return Availability(False, reason, remedy, BLIND, COST, broken=test is _same_version)
    return Availability(True, reason, "", BLIND, COST)


def _machine() -> tuple[str, str]:
    if platform.system() != "Linux" or platform.machine() != "x86_64":
        return (
            f"eBPF recording knows x86-64 Linux only, this is {platform.machine()}",
            "Use --collector strace.",
        )
    return "x86-64 Linux", ""


def _loader() -> tuple[str, str]:
    if not LOADER.is_file():
        return (
            f"the tracer is not built ({LOADER.name} is missing)",
            "Run `make tracer` in the source tree, or install a wheel that carries it.",
        )
    if not os.access(LOADER, os.X_OK):
        return (
            f"{LOADER} may not be run by this user",
            "Ask to be added to its group, or to be allowed to run it.",
        )
    return "the tracer is there", ""


def _same_version() -> tuple[str, str]:
    """Whether the loader writes what this program reads; an older one does not know --version."""
    done = _asked("--version", seconds=5)
    if isinstance(done, str):
        return done, _REBUILD
    told = done.stdout.strip() if done.returncode == 0 else ""
    if not told:
        return "the tracer is older than this program", _REBUILD
    if told != str(VERSION):
        return f"the tracer writes version {told:.20}, this program reads {VERSION}", _REBUILD
    return "the tracer is of this version", ""


def _asked(question: str, seconds: float) -> subprocess.CompletedProcess[str] | str:
    """What the loader answers, or why it does not run."""
    try:
        return subprocess.run(
            [LOADER, question],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=seconds,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"the tracer does not run: {error}"


def _btf() -> tuple[str, str]:
    if not BTF.exists():
        return (
            f"the kernel has no type information ({BTF} is missing)",
            "Boot a kernel built with CONFIG_DEBUG_INFO_BTF=y (all current distributions do).",
        )
    return "the kernel has type information", ""


def may_trace() -> bool:
    """Whether this process or the loader has the capabilities."""
    return _has(_effective()) or _has(_file_capabilities())


def _has(caps: int) -> bool:
    return bool(caps >> _CAP_SYS_ADMIN & 1) or all(caps >> c & 1 for c in (_CAP_BPF, _CAP_PERFMON))


def _effective() -> int:
    try:
        lines = Path("/proc/self/status").read_text(encoding="ascii", errors="replace").splitlines()
        return int(next(line for line in lines if line.startswith("CapEff:")).split()[1], 16)
    except (OSError, StopIteration, ValueError):
        return 0


def _file_capabilities() -> int:
    """The permitted set of the loader's file capabilities (version 2 and 3 of the attribute)."""
    try:
        value = os.getxattr(LOADER, "security.capability")
    except OSError:
        return 0
    if len(value) < 20:
        return 0
    low, high = value[4:8], value[12:16]
    return int.from_bytes(low, "little") | int.from_bytes(high, "little") << 32


def _allowed() -> tuple[str, str]:
    if may_trace():
        return "this process may load BPF programs", ""
    return (
        "loading BPF programs needs CAP_BPF and CAP_PERFMON",
        f"As root, once: {_SETCAP}  (or run as root)",
    )


@functools.cache
def _loads() -> tuple[str, str]:
    done = _asked("--check", seconds=20)
    if isinstance(done, str):
        return done, _REBUILD
    if done.returncode == 0:
        return "the programs load and attach", ""
    if not may_trace():
        return _allowed()
    first = done.stderr.strip().splitlines()[0] if done.stderr.strip() else "no message"
    return (
        f"the kernel refuses the programs: {first}",
        "Linux 6.1 or later is needed; in a container also --cap-add=BPF,PERFMON and a seccomp "
        "profile that allows bpf(2).",
    )
