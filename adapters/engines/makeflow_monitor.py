"""Processor time of Makeflow's rules from the summaries of `--monitor=DIR` (resource_monitor),
which Work Queue and local runs leave alike.

Nothing names DIR afterwards: folders beside the workflow are looked into, and a summary counts for
the attempt during which it says that it was taken.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from tracehint.adapters.engines.unpack import parse_json, read_text
from tracehint.errors import InputError

_SUMMARY = re.compile(r"resource-rule-(\d{1,9})\.summary$")
_MAX_FOLDERS, _MAX_FILES, _MAX_SUMMARY = 100, 1_000_000, 1 << 20
_APART_S = 5.0  # between what Makeflow and the monitor call the start: it copies itself first

Summary = tuple[float, int]  # second of the start, nanoseconds of processors


def summaries(folder: Path, notes: list[str]) -> dict[int, list[Summary]]:
    """By rule what was measured, in the folders beside the workflow."""
    found: dict[int, list[Summary]] = {}
    try:
        folders = sorted(p for p in folder.iterdir() if p.is_dir() and not p.is_symlink())
    except OSError:
        return found
    paths = [path for one in folders[:_MAX_FOLDERS] for path in _files(one)]
    if len(paths) > _MAX_FILES:
        notes.append(f"of {len(paths):,} summaries {_MAX_FILES:,} are read")
    for path, rule in paths[:_MAX_FILES]:
        summary = _read(path)
        if summary is None:
            notes.append(f"{path.name}: not a summary of resource_monitor")
        else:
            found.setdefault(rule, []).append(summary)
    return found


def used(known: list[Summary], start_us: int | None) -> int | None:
    """Nanoseconds of the attempt that began then; None: no summary is of it."""
    if start_us is None:
        return None
    near = [(abs(start - start_us / 1e6), spent) for start, spent in known]
    apart, spent = min(near, default=(_APART_S + 1, 0))
    return spent if apart <= _APART_S else None


def _files(folder: Path) -> list[tuple[Path, int]]:
    try:
        names = sorted(folder.iterdir())
    except OSError:
        return []
    matched = [(path, _SUMMARY.match(path.name)) for path in names]
    return [(path, int(m[1])) for path, m in matched if m and not path.is_symlink()]


def _read(path: Path) -> Summary | None:
    try:
        data = parse_json(read_text(path, _MAX_SUMMARY), path)
    except InputError:
        return None
    start, spent = _seconds(data, "start"), _seconds(data, "cpu_time")
    return None if start is None or spent is None else (start, round(spent * 1e9))


def _seconds(data: Any, key: str) -> float | None:
    """A number of a summary: [value, "s"]."""
    value = data.get(key) if isinstance(data, dict) else None
    if not isinstance(value, list) or len(value) != 2 or value[1] != "s":
        return None
    number = value[0]
    good = isinstance(number, int | float) and not isinstance(number, bool)
    return float(number) if good and 0 <= number < 1e11 else None
