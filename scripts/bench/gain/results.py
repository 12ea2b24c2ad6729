"""Results on disk, one JSON file per row and scale, so that a broken-off benchmark goes on."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Run:
    """One replay. `outputs`: checksum over what no task reads; `astray`: files that the store did
    not put where it was told; `needed`: bytes of files that had to cross links as the files lay;
    `load`: fields of load.Load; `tasks`: rows of Done; `places`: by file the node that holds
    all of it (-1: none, or several)."""

    column: str
    number: int
    seconds: float
    bytes: int
    outputs: int
    astray: int
    load: dict[str, float]
    needed: int = 0
    tasks: list[list[float]] = field(repr=False, default_factory=list)
    places: list[int] = field(repr=False, default_factory=list)


@dataclass
class Results:
    """The replays of one row at one scale; `key` tells whether stored ones are of the same."""

    path: Path
    key: dict[str, Any]
    runs: list[Run]

    def missing(self, column: str, wanted: int) -> list[int]:
        """Numbers of the runs that are still to be made."""
        done = {run.number for run in self.runs if run.column == column}
        return [number for number in range(wanted) if number not in done]

    def add(self, run: Run) -> None:
        """Keep a run, on disk at once."""
        self.runs.append(run)
        part = self.path.with_suffix(".part")
        part.write_text(json.dumps({"key": self.key, "runs": [asdict(r) for r in self.runs]}))
        part.replace(self.path)

    def of(self, column: str) -> list[Run]:
        """Runs of a column, by number."""
        return sorted((r for r in self.runs if r.column == column), key=lambda r: r.number)


def load(folder: Path, name: str, key: dict[str, Any], *, fresh: bool = False) -> Results:
    """Results so far; of another `key`, or `fresh`: none."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.json"
    data: dict[str, Any] = json.loads(path.read_text()) if path.exists() and not fresh else {}
    if data.get("key") != key:
        data = {}
    return Results(path, key, [Run(**run) for run in data.get("runs", [])])
