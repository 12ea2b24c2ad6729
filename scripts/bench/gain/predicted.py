"""Predicted beside measured, for every column that has runs."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from scripts.bench.gain.columns import Case
from scripts.bench.gain.results import Results, Run
from scripts.bench.load import LOADED

from tracehint.analyzer.predict.model import Placement
from tracehint.analyzer.predict.prediction import Configuration, predict, runs_for


@dataclass(frozen=True)
class Cell:
    """One column of a row: its replays, and what was predicted for it (seconds, bytes); of a
    plan the name of the `search` that made it."""

    column: str
    runs: Sequence[Run]
    predicted: float
    low: float
    high: float
    predicted_bytes: float
    search: str = ""

    @property
    def seconds(self) -> float:
        """Median of the measured seconds."""
        return statistics.median(run.seconds for run in self.runs)

    @property
    def bytes(self) -> float:
        """Median of the measured bytes."""
        return statistics.median(run.bytes for run in self.runs)

    @property
    def loaded(self) -> bool:
        """Whether others used much of the machine in most of the runs, and did not have to wait."""
        return statistics.median(_disturbance(run) for run in self.runs) > LOADED

    @property
    def error(self) -> float:
        """Of the predicted seconds, as a share of the measured ones."""
        return self.predicted / self.seconds - 1

    @property
    def bytes_error(self) -> float:
        """Of the predicted bytes; against at least 1 MB, so that nothing is divided by nothing."""
        return (self.predicted_bytes - self.bytes) / max(self.bytes, 1e6)


def _disturbance(run: Run) -> float:
    """Share of the processors that others took away from the bench."""
    return 0.0 if run.load.get("preferred") else run.load["others"]


def cells(
    case: Case,
    results: Results,
    placements: Mapping[str, Placement],
    searches: Mapping[str, str] = MappingProxyType({}),
) -> list[Cell]:
    """A cell for each column with a placement, in their order; each must have runs. `searches`: by
    column which search made it."""
    wanted = list(placements)
    points = [
        Configuration(name, case.cluster, name, lambda _w, _c, n=name: placements[n])  # type: ignore[misc]
        for name in wanted
    ]
    runs = runs_for(1, len(case.work.op_kind))
    found = predict(case.work, points, runs=runs) if points else []
    return [
        Cell(p.configuration.name, results.of(p.configuration.name), p.seconds, p.low, p.high,
            p.network_bytes / case.cluster.nodes[0]["link_efficiency"],
            searches.get(p.configuration.name, ""))
        for p in found
    ]  # fmt: skip  # a table
