"""Facts about this machine for the manifest: kernel, mounts, clock."""

from __future__ import annotations

import os
import re
import time
from pathlib import Path
from typing import Any

from tracehint.schemas.manifest import RecordingHost
from tracehint.schemas.mounts import mount_of

_OCTAL = re.compile(r"\\([0-7]{3})")


def host_name(given: str = "") -> str:
    """Return the host's identity in the bundle: `--host-id`, else the machine's name."""
    return given or os.uname().nodename or "localhost"


def boot_id() -> str:
    """Return the kernel's identifier of this boot; empty if it is not readable."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return ""


def process_status(pid: int | str = "self") -> dict[str, list[str]]:
    """Return the words of each field of /proc/PID/status; empty if it is gone or not readable."""
    try:
        text = Path(f"/proc/{pid}/status").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return {}
    rows = (line.partition(":") for line in text.split("\n") if line)
    return {name: words.split() for name, _, words in rows}


# Directories, separated by colons, that all hosts of the run share although the type of their file
# system does not show it (a local one in a test, an exotic network one).
SHARED = "TRACEHINT_SHARED"


def mounts() -> list[dict[str, Any]]:
    """Return the recorder's mount table: path, fstype, source, dev (`major:minor`), options.

    The source of a mount of part of a file system (bind mounts, containers) is `SOURCE[/part]`, as
    in findmnt. `shared`: listed in TRACEHINT_SHARED.
    """
    found: list[dict[str, Any]] = []
    try:
        lines = Path("/proc/self/mountinfo").read_bytes().splitlines()
    except OSError:
        return found
    for raw in lines:
        left, _, right = raw.decode("utf-8", "surrogateescape").partition(" - ")
        parts, tail = left.split(" "), right.split(" ")
        if len(parts) < 6 or len(tail) < 2:
            continue
        path, source = (
            _OCTAL.sub(lambda m: chr(int(m[1], 8)), text) for text in (parts[4], tail[1])
        )
        root = _OCTAL.sub(lambda m: chr(int(m[1], 8)), parts[3])
        found.append(
            {
                "path": path,
                "fstype": tail[0],
                "source": _format_source(source, root),
                "dev": parts[2],
                "options": parts[5],
            }
        )
    return [*found, *_shared_rows(found)]


def _format_source(source: str, root: str) -> str:
    return source if root == "/" else f"{source}[{root}]"


def _shared_rows(table: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return a row for each directory that the user declares as shared."""
    rows = []
    for name in filter(None, os.environ.get(SHARED, "").split(":")):
        path = os.path.realpath(name)
        mount = mount_of(path, table)
        if mount is not None:
            rest = path[len(str(mount["path"]).rstrip("/")) :]
            row = {**mount, "path": path, "shared": True}
            if rest:
                row["source"] = f"{mount['source']}:{rest}"
            rows.append(row)
    return rows


def clock() -> dict[str, int]:
    """Return BOOTTIME and REALTIME of the same moment in ns, and the maximum error of the pair."""
    best: dict[str, int] = {}
    for _ in range(5):
        before = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
        real = time.clock_gettime_ns(time.CLOCK_REALTIME)
        after = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
        if not best or after - before < best["error_ns"]:
            best = {"boot_ns": (before + after) // 2, "real_ns": real, "error_ns": after - before}
    return best


def this_host(given: str = "") -> RecordingHost:
    """Return the manifest's entry for this machine."""
    return RecordingHost(
        name=host_name(given),
        kernel=os.uname().release,
        boot_id=boot_id(),
        cpus=os.cpu_count() or 0,
        mounts=mounts(),
        clock=clock(),
    )
