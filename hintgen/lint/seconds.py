"""Savings in seconds, from what `tracehint calibrate` measured on the store.

A range, because the trace does not say how the transfers would overlap: at
best all nodes move their share at the faster measured rate, at worst one after
the other at the slower. Calls: the low and the high end of the measured time
per call. Without a calibration there are no seconds.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from tracehint.hintgen.calibration import Rates
from tracehint.hintgen.lint.finding import Finding


def with_seconds(findings: Sequence[Finding], rates: Rates, nodes: int) -> list[Finding]:
    """The findings with `saves.seconds` where there is something to save."""
    result = []
    for finding in findings:
        saves = finding.saves
        low = saves.network_bytes / (rates.fast * nodes) + saves.operations * rates.open_low
        high = saves.network_bytes / rates.slow + saves.operations * rates.open_high
        if high > 0:
            saves = dataclasses.replace(saves, seconds=(round(low, 6), round(high, 6)))
        result.append(dataclasses.replace(finding, saves=saves))
    return result
