"""Predicted and measured values of every column that has runs."""

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
    """One column of a row: its replays and its predictions (seconds, bytes); for a plan the name
    of the `search` that made it."""

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
        """Whether other processes took much of the machine from the bench in most of the runs."""
        return statistics.median(_disturbance(run) for run in self.runs) > LOADED

    @property
    def error(self) -> float:
        """Error of the predicted seconds, as a share of the measured ones."""
        return self.predicted / self.seconds - 1

    @property
    def bytes_error(self) -> float:
        """Error of the predicted bytes, as a share of the measured ones, at least of 1 MB."""
        return (self.predicted_bytes - self.bytes) / max(self.bytes, 1e6)


def _disturbance(run: Run) -> float:
    """Return the share of the processors that others took from the bench."""
    return 0.0 if run.load.get("preferred") else run.load["others"]


def cells(
    case: Case,
    results: Results,
    placements: Mapping[str, Placement],
    searches: Mapping[str, str] = MappingProxyType({}),
) -> list[Cell]:
    """Return a cell for each column with a placement, in their order; each must have runs.
    `searches`: name of the search by column."""
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
