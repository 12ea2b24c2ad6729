"""Swift/T: the log that TURBINE_LOG=1 writes. It names app commands, ranks and durations.

Of the files only those that stdin, stdout and stderr were sent to are named; with
TURBINE_LOG_RANKS=1 each duration belongs to its command for certain. Written after the sources of
Swift/T; no Swift was run.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from tracehint.adapters.engines.graph_base import (
    DeclaredGraph,
    GraphBuilder,
    folder_of,
    nanoseconds,
    raw_name,
)
from tracehint.adapters.engines.unpack import read_lines
from tracehint.analyzer.tasks.describe import shorten, type_of_text

_LINE = re.compile(r"\s*(?:\[(\d{1,9})\]\s*)?(\d{1,12}\.\d{3}) +(.*)$")
_APP = re.compile(
    r"(?:(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d) )?app: *(\d{1,9}):(\d{1,12})"
    r"(?: +io=(.*?) *: +| +(?:: +)?)(.*)$"
)
_SHELL = re.compile(r"shell: (.*?)((?: (?:stdin|stdout|stderr) \S+)*)\s*$")
_DURATION = re.compile(r"(?:shell command )?duration: *(\d{1,12}\.\d{1,6})\s*$")
_HOST = re.compile(r"hostname: *(\S+)")
_STREAM = re.compile(r"(stdin|stdout|stderr)[ =]([^\s{}\[\]]+)")
_KNOWN = re.compile(
    rb"^\s*(?:\[\d+\]\s*)?\d+\.\d{3} +(?:\d{4}-\d\d-\d\d \d\d:\d\d:\d\d )?(?:app: *\d+:\d|shell: )",
    re.MULTILINE,
)


@dataclass
class _App:
    """One app call; seconds since the start of the run."""

    rank: str
    command: str
    streams: str
    begin: float
    length: float | None = None
    host: str = ""


def sniff(path: Path, head: bytes) -> bool:
    """Lines with a time and an app command."""
    return not path.is_dir() and bool(_KNOWN.search(head))


def read(path: Path) -> DeclaredGraph:
    """One task per app call."""
    out = GraphBuilder("swift-t", folder_of(path))
    apps, zero = _read_log(read_lines(path), out)
    for number, app in enumerate(apps):
        task = f"a{number}"
        start = None if zero is None else nanoseconds(zero + app.begin)
        end = None if zero is None or app.length is None else zero + app.begin + app.length
        out.task(
            task,
            name=shorten(app.command),
            type=type_of_text(app.command),
            command=raw_name(app.command),
            start_ns=start,
            end_ns=nanoseconds(end),
            host=app.host,
        )
        for stream, name in dict.fromkeys(_STREAM.findall(app.streams)):
            out.file(task, "in" if stream == "stdin" else "out", raw_name(name))
    return out.graph()


def _read_log(lines: list[str], out: GraphBuilder) -> tuple[list[_App], float | None]:
    """The calls in order, and the time of the run's start (seconds since the epoch)."""
    apps: list[_App] = []
    waiting: dict[str, list[_App]] = {}  # by rank; "" where lines have none
    hosts: dict[str, str] = {}
    zero: float | None = None
    unclear = 0
    for line in lines:
        found = _LINE.match(line)
        if found is None:
            continue  # output of the apps themselves
        rank, seconds, message = found[1] or "", float(found[2]), found[3]
        app = _started(message, rank, seconds)
        if app is not None:
            call = _APP.match(message)
            if zero is None and call is not None and call[1]:
                zero = _epoch(call[1], seconds)
            apps.append(app)
            waiting.setdefault(rank, []).append(app)
        elif (length := _DURATION.match(message)) is not None:
            running = waiting.pop(rank, [])
            if len(running) == 1:
                running[0].length = float(length[1])
            else:
                unclear += 1
        elif (named := _HOST.match(message)) is not None:
            hosts.setdefault(rank, named[1])
    for app in apps:
        app.host = hosts.get(app.rank, "") if app.rank else ""
    if unclear:
        out.notes.append(f"{unclear} durations fit several commands: set TURBINE_LOG_RANKS=1")
    return apps, zero


def _started(message: str, rank: str, seconds: float) -> _App | None:
    call = _APP.match(message)
    if call is not None:
        return _App(rank, call[5], call[4] or "", seconds)
    shell = _SHELL.match(message)
    return None if shell is None else _App(rank, shell[1], shell[2], seconds)


def _epoch(text: str, seconds: float) -> float | None:
    """The local date of a line, less its seconds since the start."""
    try:
        return datetime.strptime(text, "%Y-%m-%d %H:%M:%S").timestamp() - seconds
    except (ValueError, OverflowError, OSError):
        return None
