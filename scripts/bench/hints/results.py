"""Results on disk, one JSON file per row, so that a broken-off benchmark goes on where it was."""

from __future__ import annotations

import json
import statistics
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from scripts.bench.hints.settings import SETTINGS

RUNS = 3  # for bytes


@dataclass(frozen=True)
class Run:
    """One run of a row under a setting."""

    setting: str
    number: int
    bytes: int
    seconds: float
    sums: dict[str, str]


@dataclass
class Results:
    """The runs of one row on one store."""

    path: Path
    size: int
    runs: list[Run]
    said: str = ""

    def missing(self, setting: str, wanted: int) -> list[int]:
        """Numbers of the runs that are still to be made."""
        done = {run.number for run in self.runs if run.setting == setting}
        return [number for number in range(wanted) if number not in done]

    def add(self, run: Run) -> None:
        """Keep a run, on disk at once."""
        self.runs.append(run)
        data = {"size": self.size, "said": self.said, "runs": [asdict(r) for r in self.runs]}
        part = self.path.with_suffix(".part")
        part.write_text(json.dumps(data, indent=1) + "\n")
        part.replace(self.path)

    def of(self, setting: str) -> list[Run]:
        """Runs of a setting, by number."""
        return sorted((r for r in self.runs if r.setting == setting), key=lambda r: r.number)


def load(folder: Path, store: str, row: str, size: int, *, fresh: bool) -> Results:
    """Results so far; another size of files, or `fresh`, starts anew."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{store}-{row}.json"
    data: dict[str, Any] = json.loads(path.read_text()) if path.exists() and not fresh else {}
    if data.get("size") != size:
        data = {}
    runs = [Run(**run) for run in data.get("runs", [])]
    return Results(path, size, runs, data.get("said", ""))


def ratios(results: Results) -> list[float]:
    """Seconds of ours over the default's, pair by pair."""
    default = {run.number: run.seconds for run in results.of("default")}
    return [r.seconds / default[r.number] for r in results.of("ours") if r.number in default]


def differing(results: Results) -> list[str]:
    """Outputs that are not the same in every run."""
    first = results.runs[0].sums if results.runs else {}
    return sorted(
        {
            name
            for run in results.runs
            for name in first | run.sums
            if run.sums.get(name) != first.get(name)
        }
    )


def table(rows: list[tuple[str, Results]]) -> str:
    """Bytes first, then time; median and range. Settings without any run are left out."""
    lines = []
    shown = {n: s for n, s in SETTINGS.items() if any(results.of(n) for _, results in rows)}
    for title, unit, scale, digits in (
        ("MB over the links", "bytes", 1e6, 1),
        ("seconds", "seconds", 1.0, 2),
    ):
        lines += [
            f"| {title} | " + " | ".join(s.title for s in shown.values()) + " |",
            "|---" * (len(shown) + 1) + "|",
        ]
        for name, results in rows:
            cells = [
                _cell([getattr(r, unit) / scale for r in results.of(s)], digits) for s in shown
            ]
            lines.append(f"| {name} | " + " | ".join(cells) + " |")
        lines.append("")
    lines += [
        "| | runs | time of tracehint / default, pair by pair | outputs |",
        "|---|---|---|---|",
    ]
    for name, results in rows:
        found = ratios(results)
        ratio = _cell(found, 2) if found else "-"
        wrong = differing(results)
        lines.append(
            f"| {name} | {len(found)} | {ratio} | "
            f"{'differ: ' + ', '.join(wrong) if wrong else 'identical'} |"
        )
    return "\n".join(lines)


def _cell(values: list[float], digits: int) -> str:
    if not values:
        return "-"
    middle, low, high = statistics.median(values), min(values), max(values)
    return f"{middle:.{digits}f} ({low:.{digits}f} to {high:.{digits}f})"
