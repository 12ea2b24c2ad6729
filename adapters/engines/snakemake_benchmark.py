"""Processor time of jobs from Snakemake's `benchmark:` files.

A job's record does not name its benchmark, the log of a run does: in a block per job. Benchmarks
are looked for below the workflow's directory only. Snakemake samples: of a job that it never saw at
work it writes 0 or NA, which says nothing.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from tracehint.adapters.engines.graph_base import raw_name
from tracehint.adapters.engines.unpack import read_text
from tracehint.errors import InputError

_MAX_LOGS, _MAX_LOG, _MAX_BENCHMARK = 1000, 256 << 20, 1 << 20
_COLUMN = "cpu_time"
_MAX_S = 1e9


def processor_times(metadata: Path, notes: list[str]) -> dict[bytes, int]:
    """Nanoseconds by output, as far as benchmarks say; `metadata`: the folder of the records."""
    top = metadata.absolute().parent.parent
    folder = metadata.absolute().parent / "log"
    found: dict[bytes, int] = {}
    try:
        logs = sorted(p for p in folder.iterdir() if p.name.endswith(".snakemake.log"))
    except OSError:
        return found
    if len(logs) > _MAX_LOGS:
        notes.append(f"of {len(logs)} logs the last {_MAX_LOGS} are looked into for benchmarks")
    for log in logs[-_MAX_LOGS:]:
        try:
            text = "" if log.is_symlink() else read_text(log, _MAX_LOG)
        except InputError as error:
            notes.append(error.what)
            continue
        for outputs, benchmark in _jobs(text):
            used = _used(top, benchmark)
            found |= {} if used is None else dict.fromkeys(outputs, used)
    return found


def _jobs(text: str) -> Iterator[tuple[list[bytes], str]]:
    """(outputs, benchmark) of each job of a log that has both."""
    outputs: list[bytes] = []
    for line in text.splitlines():
        if not line.startswith("    "):
            outputs = []
            continue
        key, _, value = line.strip().partition(": ")
        if key == "output":
            outputs = [raw_name(name) for name in value.split(", ")]
        elif key == "benchmark" and outputs:
            yield outputs, value


def _used(top: Path, name: str) -> int | None:
    """Nanoseconds of processors of all repetitions in a benchmark; None: it does not say."""
    path = Path(os.path.normpath(top / name))
    try:
        real = path.resolve()
        if not real.is_relative_to(top.resolve()) or not real.is_file():
            return None
        head, *rows = [line.split("\t") for line in read_text(real, _MAX_BENCHMARK).splitlines()]
        at = head.index(_COLUMN)
        seconds = sum(float(row[at]) for row in rows)
    except (InputError, OSError, ValueError, IndexError):
        return None
    return round(seconds * 1e9) if 0 < seconds < _MAX_S else None
