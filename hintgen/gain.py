"""Gain of a remedy as a value; `hintgen.summary.gain` simulates it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from msgspec import Meta

from tracehint.hintgen.text.units import seconds, size

NO_CHANGE = "no significant change"
# For two placements that differ only in their hints, with the same scheduler, the prediction which
# one moves fewer bytes was always right if they differ by at least this share of the baseline's
# traffic (docs/reference/gain.md).
LEAST_TRAFFIC = 0.05
Seconds = Annotated[float, Meta(ge=-1e15, le=1e15)]
Traffic = Annotated[int, Meta(ge=0, le=1 << 62)]  # bytes


@dataclass(frozen=True)
class Gain:
    """Seconds of the makespan with the 90 % interval, bytes over the network; positive: saved.

    `significant`: the interval of the makespan excludes zero.
    """

    makespan_s: Seconds = 0.0
    makespan_low_s: Seconds = 0.0
    makespan_high_s: Seconds = 0.0
    network_bytes: Traffic = 0
    significant: bool = False

    def text(self, baseline: Baseline) -> str:
        """Return the gain as printed by all text outputs.

        >>> Gain(2, 1, 3, 3 << 20, True).text(Baseline("c", 2, 10, 4 << 20))
        '2.00 s (1.00 s to 3.00 s), 3 MiB network traffic'
        >>> Gain(0.1, -1, 1, 10, False).text(Baseline("c", 2, 10, 4 << 20))
        'no significant change'
        """
        parts = []
        if self.significant:
            low, high = seconds(self.makespan_low_s), seconds(self.makespan_high_s)
            parts.append(f"{seconds(self.makespan_s)} ({low} to {high})")
        if self.frees_network(baseline):
            parts.append(f"{size(self.network_bytes)} network traffic")
        return ", ".join(parts) or NO_CHANGE

    def frees_network(self, baseline: Baseline) -> bool:
        """Whether the traffic falls by more than the simulation's error."""
        return self.network_bytes > max(0, LEAST_TRAFFIC * baseline.network_bytes)

    def pays(self, baseline: Baseline) -> bool:
        """Whether to offer the remedy: time or traffic change significantly."""
        return self.significant or self.frees_network(baseline)


@dataclass(frozen=True)
class Baseline:
    """The simulated run without remedies."""

    cluster: Annotated[str, Meta(max_length=16_384)]
    nodes: Annotated[int, Meta(ge=1, le=1_000_000)]
    makespan_s: Seconds
    network_bytes: Traffic
