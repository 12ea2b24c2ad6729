"""Results on disk, one JSON file per row and scale, so that a benchmark can be resumed."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Run:
    """One replay. `outputs`: checksum of the files that no task reads; `astray`: number of files
    that the store did not put on the requested node; `needed`: bytes that had to cross links to
    the files' locations; `load`: fields of load.Load; `tasks`: rows of Done; `places`: by file
    the node that holds all of it (-1: none, or several)."""

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
    """The replays of one row at one scale; stored ones are valid if their `key` is the same."""

    path: Path
    key: dict[str, Any]
    runs: list[Run]

    def missing(self, column: str, wanted: int) -> list[int]:
        """Return the numbers of the runs that are still to be made."""
        done = {run.number for run in self.runs if run.column == column}
        return [number for number in range(wanted) if number not in done]

    def add(self, run: Run) -> None:
        """Add a run and store it on disk."""
        self.runs.append(run)
        part = self.path.with_suffix(".part")
        part.write_text(json.dumps({"key": self.key, "runs": [asdict(r) for r in self.runs]}))
        part.replace(self.path)

    def of(self, column: str) -> list[Run]:
        """Return the runs of a column, by number."""
        return sorted((r for r in self.runs if r.column == column), key=lambda r: r.number)


def load(folder: Path, name: str, key: dict[str, Any], *, fresh: bool = False) -> Results:
    """Load stored results; none for another `key` or with `fresh`."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.json"
    data: dict[str, Any] = json.loads(path.read_text()) if path.exists() and not fresh else {}
    if data.get("key") != key:
        data = {}
    return Results(path, key, [Run(**run) for run in data.get("runs", [])])
