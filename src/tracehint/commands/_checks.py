"""The conditions that `doctor` tests, one function each, listed in CHECKS."""

from __future__ import annotations

import os
import platform
import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tracehint.collectors.hostinfo import mounts

_CAPABILITIES = {"CAP_SYS_PTRACE": 19, "CAP_SYS_ADMIN": 21, "CAP_PERFMON": 38, "CAP_BPF": 39}
# Mounts on which file capabilities (setcap on the loader) have no effect.
_NO_CAPABILITIES = ("nfs", "lustre", "beegfs", "fuse", "9p", "cifs", "smb3", "gpfs", "afs")


@dataclass(frozen=True)
class Condition:
    """One condition. `state`: ok, missing, note; `needed_by`: what does not work without it."""

    name: str
    state: str
    text: str
    remedy: str = ""
    needed_by: str = ""


def kernel() -> Condition:
    """The kernel's version."""
    release = platform.release()
    found = re.match(r"(\d+)\.(\d+)", release)
    version = (int(found[1]), int(found[2])) if found else (0, 0)
    if version < (6, 1):
        return Condition(
            "kernel",
            "missing",
            f"{release}: older than 6.1",
            "Use --collector strace, or a newer kernel.",
            "ebpf",
        )
    return Condition("kernel", "ok", release, needed_by="ebpf")


def btf() -> Condition:
    """Type information of the running kernel."""
    path = Path("/sys/kernel/btf/vmlinux")
    if path.exists():
        return Condition("BTF", "ok", str(path), needed_by="ebpf")
    return Condition(
        "BTF",
        "missing",
        f"{path} is not there",
        "Use a kernel with CONFIG_DEBUG_INFO_BTF=y (Debian's and Ubuntu's have it).",
        "ebpf",
    )


def capabilities() -> Condition:
    """What this process, or the loader by its file capabilities, may do."""
    from tracehint.collectors.ebpf.collector import may_trace

    held = _effective()
    have = [name for name, bit in _CAPABILITIES.items() if held >> bit & 1]
    text = "root" if os.geteuid() == 0 else f"uid {os.geteuid()}"
    text += f", {', '.join(have)}" if have else ", no capabilities of interest"
    if may_trace():
        return Condition("capabilities", "ok", text, needed_by="ebpf")
    return Condition(
        "capabilities",
        "missing",
        text,
        "Run as root, or give the loader CAP_BPF and CAP_PERFMON (docs: privileges).",
        "ebpf",
    )


def _effective() -> int:
    try:
        text = Path("/proc/self/status").read_text(encoding="ascii", errors="replace")
    except OSError:
        return 0
    found = re.search(r"^CapEff:\s*([0-9a-f]+)", text, re.MULTILINE)
    return int(found[1], 16) if found else 0


def loader() -> Condition:
    """Whether file capabilities would work where the tracer's loader lies."""
    from tracehint.collectors.ebpf.blind import LOADER

    path = LOADER
    if not path.is_file():
        return Condition(
            "tracer",
            "missing",
            "the eBPF loader is not part of this installation",
            "Install a wheel with the tracer, or build it: make tracer",
            "ebpf",
        )
    mount = mount_of(path)
    problem = no_file_capabilities(mount)
    if problem and os.geteuid() != 0:
        return Condition(
            "tracer",
            "missing",
            f"{path}: {problem}: file capabilities have no effect there",
            "Copy the loader to a local file system without nosuid.",
            "ebpf",
        )
    note = f" ({problem}: setcap would have no effect there)" if problem else ""
    return Condition("tracer", "ok", f"{path}{note}", needed_by="ebpf")


def mount_of(path: Path) -> dict[str, Any]:
    """The mount that the path lies on; the later one where several cover it."""
    real = os.path.realpath(path)
    best: dict[str, Any] = {}
    for mount in mounts():
        point = str(mount["path"])
        inside = real == point or real.startswith(point.rstrip("/") + "/")
        if inside and len(point) >= len(str(best.get("path", ""))):
            best = mount
    return best


def no_file_capabilities(mount: dict[str, Any]) -> str:
    """Why file capabilities do not work on this mount; empty: they do."""
    if "nosuid" in str(mount.get("options", "")).split(","):
        return f"{mount.get('path')} is mounted nosuid"
    fstype = str(mount.get("fstype", ""))
    if fstype.startswith(_NO_CAPABILITIES):
        return f"{mount.get('path')} is {fstype}"
    return ""


def ptrace_scope() -> Condition:
    """Yama's limit on tracing."""
    path = Path("/proc/sys/kernel/yama/ptrace_scope")
    try:
        scope = path.read_text(encoding="ascii").strip()
    except OSError:
        return Condition("ptrace", "ok", "Yama does not limit it", needed_by="strace")
    if scope in ("0", "1"):
        return Condition("ptrace", "ok", f"ptrace_scope {scope}", needed_by="strace")
    return Condition(
        "ptrace",
        "missing",
        f"ptrace_scope {scope}",
        "sysctl kernel.yama.ptrace_scope=1 (3 cannot be lowered before a reboot)",
        "strace",
    )


def _program(name: str, package: str, needed_by: str) -> Callable[[], Condition]:
    def check() -> Condition:
        path = shutil.which(name)
        if path:
            return Condition(name, "ok", path, needed_by=needed_by)
        return Condition(name, "missing", "not installed", f"apt install {package}", needed_by)

    return check


def working_directory() -> Condition:
    """Where bundles go by default."""
    here = Path.cwd()
    mount = mount_of(here)
    text = f"{here} on {mount.get('fstype', 'unknown')}"
    if not os.access(here, os.W_OK):
        return Condition(
            "bundle place",
            "missing",
            f"{here}: not writable",
            "Give -o or TRACEHINT_BUNDLE_DIR.",
            "record",
        )
    free = shutil.disk_usage(here).free
    if free < 100 << 20:
        return Condition(
            "bundle place",
            "missing",
            f"{text}, {free >> 20} MiB free",
            "Free some space or give -o.",
            "record",
        )
    return Condition("bundle place", "ok", f"{text}, {free >> 30} GiB free", needed_by="record")


CHECKS: tuple[Callable[[], Condition], ...] = (
    kernel,
    btf,
    capabilities,
    loader,
    ptrace_scope,
    _program("strace", "strace", "strace"),
    _program("dot", "graphviz", "graph, report"),
    _program("setfattr", "attr", "the script of emit --store xattr"),
    working_directory,
)
