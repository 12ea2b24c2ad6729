"""What a simulated run is worth: its time, and a little its bytes.

Bytes crowd others out of links that the simulation has to itself, and times of two runs that differ
by a few percent nobody can tell apart. So a tenth of the bytes weighs as much as a hundredth of the
time, and only among runs whose times are near each other.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from tracehint.analyzer.predict.model import SimulatedRun

BYTES = 0.1  # power of the bytes beside the time
HARDLY = 0.01  # the same where no time may be given for bytes
LEAST = 0.02  # of the default's bytes: fewer are as good as none
NEAR = 0.06  # of the time: within that bytes count
GIVEN = 0.02  # of the time or the bytes of what needs no plan: what a plan may give for the other
BEYOND = 4.0  # power of the time beyond that
ABOVE = 0.5  # power of the bytes beyond that


@dataclass(frozen=True)
class Worth:
    """Weighs runs against the store's default, which moves `bytes`; `power` of the bytes. Seconds
    beyond `most` weigh far more than bytes, and bytes beyond `room` more than others."""

    bytes: float
    power: float = BYTES
    most: float = math.inf
    room: float = math.inf

    def of(self, seconds: float, moved: float) -> float:
        """Seconds that a run of so many seconds and bytes is as good as; less is better."""
        if self.bytes <= 0:
            return seconds
        seconds *= max(1.0, seconds / self.most) ** BEYOND
        least = LEAST * self.bytes
        share = (moved + least) / (self.bytes + least)
        above = max(1.0, (moved + least) / (self.room + least))
        return seconds * float(share**self.power * above**ABOVE)

    def run(self, outcome: SimulatedRun) -> float:
        """The same of a simulated run."""
        return self.of(outcome.seconds, outcome.network_bytes)
