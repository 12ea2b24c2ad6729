"""Which unit, given name or batch job each task stands for."""

from __future__ import annotations

from dataclasses import dataclass

from tracehint.analyzer.tasks.tree import Bools, Ints
from tracehint.analyzer.tasks.units import Units


@dataclass
class Grouping:
    """Which unit stands for the task of each epoch; per unit whether that task is an engine's."""

    of: Ints
    engine: Bools
    units: Units
    unit_of: Ints


@dataclass
class Keys:
    """One entry per task: `unit` that stands for it, or the given name, or the batch job."""

    of: Ints  # per epoch
    unit: Ints
    name: Ints
    job: Ints
    engine: Bools
