"""Trace-event JSON for Perfetto: tasks as slices per host and lane, I/O rates as counters."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tracehint.hintgen import export, query
from tracehint.hintgen.report.timeline import BINS, timeline
from tracehint.hintgen.text.escape import text

if TYPE_CHECKING:
    import duckdb

    from tracehint.hintgen.inputs import Input

COLUMNS = {
    "tasks": "task name type host start_s end_s exit_status engine",
    "files": "file role",
    "producers": "file task bytes first_s last_s superseded",
    "consumers": "file task bytes first_s last_s",
}

MAX_TASKS = 2_000_000


def write(run: Input, target: Path) -> None:
    """Write one JSON file: times in microseconds, one process per host, one thread per lane."""
    export.write(target, _document(run, query.connect_plain(run.analysis)))


def _document(run: Input, con: duckdb.DuckDBPyConnection) -> Iterator[str]:
    data = timeline(con, run.analysis, MAX_TASKS)
    yield '{"displayTimeUnit": "ms", "traceEvents": [\n'
    yield from export.join_with_commas(_events(data))
    yield "\n]}\n"


def _events(data: dict[str, Any]) -> Iterator[str]:
    hosts = {h["name"]: number for number, h in enumerate(data["hosts"], 1)}
    for name, pid in hosts.items():
        yield _event("M", pid, 0, 0, "process_name", {"name": text(name)})
    host_of = sorted((h["first"], hosts[h["name"]]) for h in data["hosts"])
    at = 0
    for lane, start, end, kind, name, failed in sorted(data["bars"], key=lambda b: b[0]):
        while at + 1 < len(host_of) and host_of[at + 1][0] <= lane:
            at += 1
        first, pid = host_of[at]
        facts = {"type": text(data["types"][kind]), "failed": bool(failed)}
        yield json.dumps(
            {
                "ph": "X",
                "pid": pid,
                "tid": lane - first + 1,
                "ts": round(start * 1e6),
                "dur": round((end - start) * 1e6),
                "name": text(name),
                "cat": facts["type"],
                "args": facts,
            }
        )
    step = data["io"]["step_s"]
    for series in data["io"]["series"]:
        pid = hosts.get(series["host"], 0)
        for i in range(BINS):
            rate = series["bytes"][i] / step
            name = f"{series['kind']} bytes/s"
            yield _event("C", pid, 0, round(i * step * 1e6), name, {"rate": round(rate)})


def _event(kind: str, pid: int, tid: int, ts: int, name: str, args: dict[str, object]) -> str:
    return json.dumps({"ph": kind, "pid": pid, "tid": tid, "ts": ts, "name": name, "args": args})
