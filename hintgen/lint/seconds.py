"""Savings in seconds, from what `tracehint calibrate` measured on the store.

A range, as the cost model gives it (docs/patterns.md, P59), and calls beside the bytes: the low
and the high end of the measured time per call. Without a calibration there are no seconds.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from tracehint.analyzer.patterns.evidence import saved_seconds
from tracehint.hintgen.calibration import Rates
from tracehint.hintgen.lint.finding import Finding


def with_seconds(findings: Sequence[Finding], rates: Rates) -> list[Finding]:
    """The findings with `saves.seconds` where there is something to save."""
    result = []
    for finding in findings:
        saves = finding.saves
        links = (rates.slow, rates.fast)
        least, most = saved_seconds(saves.waiting_bytes, saves.network_bytes, links)
        low = float(least) + saves.operations * rates.open_low
        high = float(most) + saves.operations * rates.open_high
        if high > 0:
            saves = dataclasses.replace(saves, seconds=(round(low, 6), round(high, 6)))
        result.append(dataclasses.replace(finding, saves=saves))
    return result
