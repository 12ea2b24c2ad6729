"""Record with the eBPF collector in tests, and compare with what a workload states."""

from __future__ import annotations

import json
import os
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.support.built import built
from tracehint.collectors.base import RecordRequest, RecordResult
from tracehint.collectors.ebpf import EbpfCollector
from tracehint.schemas.store import Bundle, read_bundle

WORKLOADS = Path(__file__).parent.parent / "workloads"


def require_ebpf() -> None:
    """Skip the test with the remedy where eBPF recording is not possible."""
    found = EbpfCollector().check()
    if not found.usable:
        pytest.skip(f"{found.reason}: {found.remedy}")


def compile_workloads(
    folder: Path, *flags: str, name: str = "workload", compiler: str = "cc"
) -> Path:
    """Compile tests/workloads into one program."""
    warned = ("-std=gnu11", "-O1", "-Wall", "-Wextra", *flags)
    return built(folder / name, compiler, *warned, *sorted(WORKLOADS.glob("*.c")), "-lpthread")


def record(
    bundle: Path, *command: str | os.PathLike[str], **options: str
) -> tuple[RecordResult, Bundle]:
    """Record a command and read the bundle."""
    request = RecordRequest(
        command=tuple(os.fspath(c) for c in command), output=bundle, quiet=True, options=options
    )
    result = EbpfCollector().record(request)
    return result, read_bundle(bundle)


Key = tuple[int, bytes, str, str]  # pid, path, op, how


@dataclass
class Seen:
    """Accesses of one process to one file, by operation and way."""

    ranges: list[tuple[int, int]] = field(default_factory=list)
    bytes: int = 0
    ops: int = 0
    rows: int = 0
    exact: bool = True

    def add(self, start: int, end: int, moved: int, ops: int) -> None:
        """Add an access."""
        self.ranges.append((start, end))
        self.bytes += moved
        self.ops += ops
        self.rows += 1

    def union(self) -> list[tuple[int, int]]:
        """Return the ranges with overlapping and touching ones merged."""
        out: list[tuple[int, int]] = []
        for start, end in sorted(self.ranges):
            if out and start <= out[-1][1]:
                out[-1] = (out[-1][0], max(end, out[-1][1]))
            else:
                out.append((start, end))
        return out


def expectations(path: Path) -> list[dict[str, Any]]:
    """Return the JSON lines that a workload printed; paths as bytes."""
    rows = [json.loads(line) for line in path.read_text().splitlines() if line.startswith("{")]
    for row in rows:
        for key in ("path", "new_path", "other"):
            if key in row:
                row[key] = bytes.fromhex(row[key])
    return rows


def expected(rows: list[dict[str, Any]], folder: bytes) -> dict[Key, Seen]:
    """Return the accesses that a workload states."""
    out: dict[Key, Seen] = defaultdict(Seen)
    for row in rows:
        if row["kind"] == "saw":
            key = (row["pid"], folder + b"/" + row["path"], row["op"], row["how"])
            out[key].add(row["start"], row["end"], row["bytes"], row["ops"])
    return dict(out)


def observed(bundle: Bundle, folder: bytes) -> dict[Key, Seen]:
    """Return the accesses below `folder` that the bundle holds."""
    pid = {r["proc"]: r["pid"] for r in bundle.tables["processes"].to_pylist()}
    path = {r["open"]: r["path"] for r in bundle.tables["opens"].to_pylist()}
    by_file = {r["file"]: r["path"] for r in reversed(bundle.tables["names"].to_pylist())}
    out: dict[Key, Seen] = defaultdict(Seen)
    for row in bundle.tables["extents"].to_pylist():
        name = path[row["open"]] if row["open"] is not None else by_file[row["file"]]
        if not name.startswith(folder + b"/"):
            continue
        seen = out[pid[row["proc"]], name, row["op"], row["how"]]
        for i in range(row["count"]):
            start = row["start"] + i * row["stride"]
            seen.ranges.append((start, start + row["length"]))
        seen.bytes += row["bytes"]
        seen.ops += row["ops"]
        seen.rows += 1
        seen.exact &= row["exact"]
    return dict(out)
