"""Results on disk, one JSON file per store and row, so that a broken-off benchmark goes on."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True)
class Moved:
    """One run of a column. Bytes that the nodes received: for setting hints, in the first run,
    in the next one on the same store (None: nothing is kept between runs); and what the head
    received in the first, where it takes part in the work."""

    column: str
    setup: int
    first: int
    later: int | None
    back: int
    seconds: float

    @property
    def once(self) -> int:
        """What the first run costs in all."""
        return self.setup + self.first


class Results:
    """The runs of one row on one store."""

    def __init__(self, path: Path) -> None:
        self.path = path
        read = json.loads(path.read_text()) if path.exists() else []
        self.runs = [Moved(**run) for run in read]

    def of(self, column: str) -> list[Moved]:
        """Runs of a column, oldest first."""
        return [run for run in self.runs if run.column == column]

    def add(self, run: Moved) -> None:
        """Keep a run, on disk at once."""
        self.runs.append(run)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        part = self.path.with_suffix(".part")
        part.write_text(json.dumps([asdict(found) for found in self.runs]))
        part.replace(self.path)
