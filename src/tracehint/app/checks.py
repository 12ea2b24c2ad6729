"""The checks of `doctor` (one function each, listed in CHECKS), and the programs of a workflow.

Programs are searched in the workflow's command and in the scripts that it names; nothing is run. A
word counts as a program if an executable file of that name exists. Plain words can match by
accident; programs whose names are composed at run time are missed.
"""

from __future__ import annotations

import os
import platform
import re
import shlex
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tracehint.adapters.engines.registry import ENGINES, engine_of_program
from tracehint.collectors.hostinfo import mounts
from tracehint.collectors.registry import check

_WORD = re.compile(r"[\w./+~-]+", re.ASCII)
_COMMENT = re.compile(r"^\s*(#|//).*$", re.MULTILINE)
_MOST_BYTES = 1 << 20  # of one script
_MOST_FILES, _MOST_WORDS = 200, 50_000


def programs_named(command: Sequence[str], folder: Path) -> dict[str, str]:
    """Map each program's path to the place that names it first; `folder`: working directory."""
    found: dict[str, str] = {}
    seen = set[Path]()
    waiting = [(word, "the command") for word in command]
    engine = engine_of_program(Path(command[0]).name)
    if engine:
        waiting += [(name, "the command") for name in ENGINES[engine].reads_unnamed]
    for _ in range(_MOST_WORDS):
        if not waiting:
            break
        word, where = waiting.pop(0)
        for path in _files(word, folder):
            if path in seen:
                continue
            seen.add(path)
            if os.access(path, os.X_OK):
                found.setdefault(str(path), where)
            if len(seen) <= _MOST_FILES:
                waiting += [(w, str(path)) for w in dict.fromkeys(_words(path))]
    return found


def _files(word: str, folder: Path) -> Iterator[Path]:
    """Yield the files that the word can name: the program in PATH, and the file in `folder`."""
    program = None if "/" in word else shutil.which(word)
    if program:
        yield Path(program)
    path = folder / Path(word).expanduser() if word.startswith("~/") else folder / word
    try:
        if path.is_file():
            yield path
    except (OSError, ValueError):
        return


def _words(path: Path) -> list[str]:
    """Return the words of a script; none for a binary, unreadable or larger file."""
    try:
        if path.stat().st_size > _MOST_BYTES:
            return []
        data = path.read_bytes()
    except OSError:
        return []
    if b"\0" in data[:4096]:
        return []
    text = data.decode(errors="replace")
    first = text.partition("\n")[0]
    rest = _COMMENT.sub("", text)
    return _WORD.findall(first) + _WORD.findall(rest) if first[:2] == "#!" else _WORD.findall(rest)


_VOLUMES = (
    '-v "$TRACEHINT_RECORD:$TRACEHINT_RECORD" -v "$LD_PRELOAD:$LD_PRELOAD:ro" '
    "-e LD_PRELOAD -e TRACEHINT_RECORD -e TRACEHINT_SITES"
)
_BINDS = '--bind "$TRACEHINT_RECORD,$LD_PRELOAD"'
# Program that starts containers -> options that make the library visible inside them.
_CONTAINERS = {
    "bwrap": '--bind "$TRACEHINT_RECORD" "$TRACEHINT_RECORD" --ro-bind "$LD_PRELOAD" "$LD_PRELOAD"',
    "podman": _VOLUMES,
    "docker": _VOLUMES,
    "apptainer": _BINDS,
    "singularity": _BINDS,
}


@dataclass(frozen=True)
class SeenProgram:
    """One program, and how the preload library treats it."""

    program: str
    kind: str
    recorded: bool
    becomes: str
    named_in: str = ""


def inspect_program(program: str) -> SeenProgram:
    """Return how the library treats the program, which is looked up in PATH."""
    path = shutil.which(program)
    if path is None:
        return SeenProgram(program, "not found", False, "cannot be looked at")
    try:
        from tracehint.collectors.preload.library import CLASSES, class_of, enters

        number = class_of(path)
    except (OSError, AttributeError):
        return SeenProgram(
            program, "unknown", False, "cannot be looked at: the library is not built"
        )
    kind, becomes = CLASSES.get(number, ("unknown", "is not recorded"))
    binds = _CONTAINERS.get(Path(path).name)
    if binds:
        becomes += f"; what runs in its containers is recorded with {binds}"
    return SeenProgram(program, kind, enters(number), becomes)


def inspect_programs(command: Sequence[str]) -> list[SeenProgram]:
    """Return each program that the command and its scripts name, unrecorded ones first."""
    named = programs_named(command, Path.cwd()) if command else {}
    rows = [replace(inspect_program(path), named_in=where) for path, where in named.items()]
    # a script has the class of its interpreter, which has a row of its own
    return sorted((r for r in rows if r.kind != "unreadable"), key=lambda r: r.recorded)


def workflow_lines(command: Sequence[str]) -> list[str]:
    """Return the section on the command's programs; empty without a command."""
    if not command:
        return []
    rows = inspect_programs(command)
    escape = [row for row in rows if not row.recorded]
    lines = [
        f"\nPrograms named by `{shlex.join(command)}` and its scripts, under the preload library\n"
    ]
    lines.append(f"  {len(rows) - len(escape)} are recorded, {len(escape)} are not\n")
    incomplete = check("preload").incomplete
    if incomplete:
        lines.append(f"  recorded only in part: {incomplete}\n")
    for row in [*escape, *(row for row in rows if row.recorded and "containers" in row.becomes)]:
        answer = "yes" if row.recorded else "no "
        lines.append(f"  {answer} {row.program} ({row.kind}; named in {row.named_in})\n")
        lines.append(f"      {row.becomes}\n")
    return lines


def program_lines(programs: Sequence[str]) -> list[str]:
    """Return the section on these programs; empty without programs."""
    if not programs:
        return []
    lines = ["\nPrograms under the preload library\n"]
    for row in map(inspect_program, programs):
        lines.append(f"  {'yes' if row.recorded else 'no ':<4}{row.program} ({row.kind})\n")
        lines.append(f"      {row.becomes}\n")
    return lines


_CAPABILITIES = {"CAP_SYS_PTRACE": 19, "CAP_SYS_ADMIN": 21, "CAP_PERFMON": 38, "CAP_BPF": 39}
# File systems on which file capabilities (setcap on the loader) have no effect.
_NO_CAPABILITIES = ("nfs", "lustre", "beegfs", "fuse", "9p", "cifs", "smb3", "gpfs", "afs")


@dataclass(frozen=True)
class Condition:
    """One condition. `state`: ok, missing, note; `needed_by`: the features that require it."""

    name: str
    state: str
    text: str
    remedy: str = ""
    needed_by: str = ""


def kernel() -> Condition:
    """Return the kernel's release. Its features are checked by loading the tracer, not here."""
    return Condition("kernel", "ok", f"{platform.release()} on {platform.machine()}")


def btf() -> Condition:
    """Check for BTF, the type information of the running kernel."""
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
    """Check the capabilities of this process, or the file capabilities of the loader."""
    from tracehint.collectors.ebpf.collector import effective_capabilities, may_trace

    held = effective_capabilities()
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


def loader() -> Condition:
    """Check that the tracer's loader exists and that file capabilities work on its mount."""
    from tracehint.collectors.ebpf.collector import LOADER

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
    """Return the mount that contains the path; the last one if several share a mount point."""
    real = os.path.realpath(path)
    best: dict[str, Any] = {}
    for mount in mounts():
        point = str(mount["path"])
        inside = real == point or real.startswith(point.rstrip("/") + "/")
        if inside and len(point) >= len(str(best.get("path", ""))):
            best = mount
    return best


def no_file_capabilities(mount: dict[str, Any]) -> str:
    """Return why file capabilities have no effect on this mount; empty if they work."""
    if "nosuid" in str(mount.get("options", "")).split(","):
        return f"{mount.get('path')} is mounted nosuid"
    fstype = str(mount.get("fstype", ""))
    if fstype.startswith(_NO_CAPABILITIES):
        return f"{mount.get('path')} is {fstype}"
    return ""


def ptrace_scope() -> Condition:
    """Check Yama's restriction of ptrace."""
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
        return Condition(
            name, "missing", "not installed", f"install the package {package}", needed_by
        )

    return check


def working_directory() -> Condition:
    """Check the working directory, the default place of bundles."""
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
    working_directory,
)
