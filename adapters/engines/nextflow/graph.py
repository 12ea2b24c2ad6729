"""Nextflow: the trace file, with the work directories next to it if they still exist.

Links in a task's work directory are its inputs (targets are outputs of the producer), other files
are its outputs. Links are read, never followed; only the trace's directory is opened.
"""

from __future__ import annotations

import os
import posixpath
import re
import stat
from datetime import datetime
from pathlib import Path

from tracehint.adapters.engines.graph_base import (
    DeclaredGraph,
    GraphBuilder,
    bounded_int,
    folder_of,
    number,
    processor_time,
    raw_name,
)
from tracehint.adapters.engines.unpack import read_lines
from tracehint.errors import InputError

_HASH = re.compile(r"^[0-9a-f]{2}/[0-9a-f]{4,30}$")
_UNITS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|m|h|d)\b")
_SIZES = {"B": 1, "KB": 1 << 10, "MB": 1 << 20, "GB": 1 << 30, "TB": 1 << 40}
_SIZE = re.compile(r"^(\d+(?:\.\d+)?)\s*(B|KB|MB|GB|TB)$")


def sniff(_path: Path, head: bytes) -> bool:
    """Whether the head is the header of a trace file."""
    columns = head.partition(b"\n")[0].strip().split(b"\t")
    return (b"hash" in columns and b"process" in columns) or b"native_id" in columns


def read(path: Path) -> DeclaredGraph:
    """Read one task per line; attempts of one task share its name."""
    header, *lines = read_lines(path)
    columns = header.strip().split("\t")
    if "hash" not in columns or not {"process", "name"} & set(columns):
        raise InputError(f"{path}: not a trace of Nextflow", "Record one: nextflow run -with-trace")
    out = GraphBuilder("nextflow", folder_of(path))
    work = _work_folders(path.parent)
    for at, line in enumerate(lines, 2):
        fields = line.rstrip("\r").split("\t")
        if len(fields) == len(columns):
            _add(out, dict(zip(columns, fields, strict=True)), work)
        elif line.strip():
            out.bad_line(at)
    return out.graph()


def _work_folders(base: Path) -> dict[str, Path]:
    """Map `ab/cdef01` (short hash) to the directory, for all work directories below `work/`."""
    found: dict[str, Path] = {}
    top = base / "work"
    if top.is_symlink() or not top.is_dir():
        return found
    for first in _real_folders(top, 2):
        for second in _real_folders(first, 30):
            found[f"{first.name}/{second.name[:6]}"] = second
    return found


def _real_folders(folder: Path, length: int) -> list[Path]:
    try:
        with os.scandir(folder) as entries:
            names = [e.name for e in entries if e.is_dir(follow_symlinks=False)]
    except OSError:
        return []
    return [folder / n for n in sorted(names) if len(n) == length]


def _add(out: GraphBuilder, row: dict[str, str], work: dict[str, Path]) -> None:
    short = row["hash"] if _HASH.match(row["hash"]) else ""
    folder = work.get(short[:9])
    start = _time(row.get("start", "")) or _time(row.get("submit", ""))
    end = _time(row.get("complete", ""))
    length = _duration(row.get("duration", ""))
    if end is None and start is not None and length is not None:
        end = start + length
    name = row.get("name") or row.get("process", "")
    kind = process_of(row.get("process") or name)
    where = os.fsencode(posixpath.abspath(folder)) if folder else None
    if where is None and row.get("workdir", "").startswith("/"):
        where = raw_name(posixpath.normpath(row["workdir"]))
    task = short or row.get("task_id", name)
    pid, code = number(row.get("native_id")), number(row.get("exit"))
    out.task(
        task,
        name=name,
        type=kind,
        workdir=where,
        command=script_of(folder) or raw_name(row.get("script", "")),
        pid=bounded_int(pid),
        start_ns=_ns(start),
        end_ns=_ns(end),
        exit_status=bounded_int(code),
        attempt=int(number(row.get("attempt")) or 1),
        read_bytes=_size(row.get("rchar", "")),
        written_bytes=_size(row.get("wchar", "")),
        cpu_ns=_processor_time(row),
        cores=number(row.get("cpus")),
        memory_bytes=_size(row.get("memory", "")),
        peak_bytes=_size(row.get("peak_rss", "")),
    )
    if folder is not None:
        add_files(out, task, folder)


def _processor_time(row: dict[str, str]) -> int | None:
    ran = _duration(row.get("realtime", ""))
    busy = number(row.get("%cpu", "").removesuffix("%"))
    return processor_time(busy, None if ran is None else ran / 1000)


def _time(text: str) -> float | None:
    """Parse ms since the epoch: a number, or `2024-01-31 12:00:00.123` in local time."""
    value = number(text)
    if value is not None:
        return value
    try:
        return datetime.fromisoformat(text).timestamp() * 1000
    except (ValueError, OverflowError, OSError):
        return None


def _duration(text: str) -> float | None:
    value = number(text)
    if value is not None:
        return value
    parts = _DURATION.findall(text)
    return sum(float(n) * _UNITS[u] for n, u in parts) if parts else None


def _size(text: str) -> int | None:
    value = number(text)
    if value is None:
        found = _SIZE.match(text)
        value = float(found[1]) * _SIZES[found[2]] if found else None
    return None if value is None else bounded_int(value)


def _ns(milliseconds: float | None) -> int | None:
    return None if milliseconds is None else bounded_int(round(milliseconds * 1e3) * 1000)


# A task's script, inputs and outputs, from its Nextflow work directory.
#
# Links are read, never followed.


MAX_FILES = 100_000  # of one task
_DEPTH = 8


def process_of(name: str) -> str:
    """Return the process of a task named `WORKFLOW:PROCESS (tag)`."""
    return name.partition(" (")[0].rpartition(":")[2]


def script_of(folder: Path | None) -> bytes:
    """Return the text of `.command.sh` without its first line."""
    try:
        if folder is None or (folder / ".command.sh").is_symlink():
            return b""
        with (folder / ".command.sh").open("rb") as stream:
            return stream.read(1 << 16).partition(b"\n")[2].strip()
    except OSError:
        return b""


def add_files(out: GraphBuilder, task: str, folder: Path) -> None:
    """Add a task's inputs, which are links, and its outputs; at most MAX_FILES of them."""
    count = 0
    for where, folders, files in os.walk(os.fsencode(folder), followlinks=False):
        if where.count(b"/") - os.fsencode(folder).count(b"/") > _DEPTH:
            folders.clear()
        for name in sorted([*files, *folders]):
            path = posixpath.join(where, name)
            if name.startswith(b".command.") or name == b".exitcode":
                continue
            count += 1
            if count > MAX_FILES:
                out.notes.append(f"task {task}: of more than {MAX_FILES:,} files the first ones")
                return
            _one_file(out, task, path)


def _one_file(out: GraphBuilder, task: str, path: bytes) -> None:
    try:
        facts = os.lstat(path)
        if stat.S_ISLNK(facts.st_mode):
            to = os.readlink(path)  # noqa: PTH115 (bytes)
            out.file(task, "in", posixpath.join(posixpath.dirname(path), to))
        elif stat.S_ISREG(facts.st_mode):
            out.file(task, "out", path, facts.st_size)
    except OSError:
        out.notes.append("a file of a work directory could not be looked at")
