"""Which labels hold for a file by itself (groups come later), and how near to a threshold."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from tracehint.analyzer.patterns.rows import ROLES, UNKNOWN, Bools, Facts, Floats, Labels, code

if TYPE_CHECKING:
    from tracehint.analyzer.model import Options

_INPUT, _OUTPUT = ROLES.index("input"), ROLES.index("output")


class _Limits:
    """The thresholds, and the readers per byte from which on a file is a broadcast."""

    def __init__(self, facts: Facts, options: Options) -> None:
        self.slope = max(options.broadcast_slope, 1e-9)
        self.scatter = max(options.scatter_max_m, 1 + 1e-9)
        self.overlap = max(options.gather_max_overlap, 1e-9)
        self.broadcast = 1 + self.slope * (facts.n - 1)


Rule = Callable[[Facts, _Limits], Bools]
Near = Callable[[Facts, _Limits], Floats]

# pattern, condition, nearness (None: no threshold decides)
_RULES: tuple[tuple[str, Rule, Near | None], ...] = (
    (
        "broadcast",
        lambda f, t: (f.n >= 2) & (f.m >= t.broadcast),
        lambda f, t: (f.m - 1) / (2 * t.slope * (f.n - 1)),
    ),
    (
        "scatter",
        lambda f, t: (f.n >= 2) & (f.m <= t.scatter) & (f.m < t.broadcast),
        lambda f, t: 1 - 0.5 * (f.m - 1) / (t.scatter - 1),
    ),
    (
        "partly_shared",
        lambda f, t: (f.n >= 2) & (f.m > t.scatter) & (f.m < t.broadcast),
        lambda f, t: (
            0.5 + np.minimum(f.m - t.scatter, t.broadcast - f.m) / (t.broadcast - t.scatter)
        ),
    ),
    (
        "gather",
        lambda f, t: (f.np >= 2) & (f.overlap <= t.overlap),
        lambda f, t: 1 - 0.5 * f.overlap / t.overlap,
    ),
    ("pipeline", lambda f, _: (f.n == 1) & (f.np == 1) & f.fed, None),
    ("stage_in", lambda f, _: (f.n == 1) & (f.role == _INPUT), None),
    ("stage_out", lambda f, _: f.role == _OUTPUT, None),
)


def of_files(facts: Facts, options: Options) -> Labels:
    """The labels of each file; `near` is 0.5 at the threshold and 1 far from it."""
    parts = []
    for pattern, holds, near in _RULES:
        at = np.flatnonzero(facts.labelled & holds(facts, _Limits(facts, options)))
        sure = np.ones(len(at))
        if near is not None and len(at):
            some = facts.take(at)
            sure = np.clip(near(some, _Limits(some, options)), 0.5, 1)
        none = np.full(len(at), UNKNOWN, np.int64)
        parts.append(Labels(at, np.full(len(at), code(pattern)), none, sure))
    return Labels.joined(parts)
