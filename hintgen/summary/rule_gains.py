"""Add the simulated gain of a run to each hint rule that matches its files."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from tracehint.analyzer.arrays import column, order_by, starts_of

if TYPE_CHECKING:
    import pyarrow as pa

    from tracehint.hintgen.hints.model import HintFile
    from tracehint.hintgen.match.match import Matcher
    from tracehint.hintgen.summary.gain import Simulation


def with_gains(
    hints: HintFile,
    simulation: Simulation,
    facts: pa.Table | None = None,
    matcher: Matcher | None = None,
) -> HintFile:
    """Return the rules, each with the gain of placing only its files. Rules without files whose
    placement changes, and rules that were not simulated, have no gain.

    `facts`, `matcher`: the result of `facts_of` and the matcher of these hints, if available.
    """
    from tracehint.hintgen.declared import declared_of
    from tracehint.hintgen.hint_columns import has_declared_graph
    from tracehint.hintgen.learn.facts import facts_of
    from tracehint.hintgen.match.match import Matcher

    if simulation.reason:
        return hints
    analysis = simulation.analysis
    facts = facts_of(analysis) if facts is None else facts
    paths = facts["path"].to_pylist()
    known = declared_of(facts) if has_declared_graph(analysis) else None
    codes, found = (matcher or Matcher(hints)).outcomes(paths, known, None, frozenset(paths))
    file = column(facts, "file")
    number = {rule.id: at for at, rule in enumerate(hints.rules)}
    fired = np.array([-1 if rule is None else number[rule.id] for rule, *_ in found], np.int64)
    rule = np.where(np.isin(file, simulation.asked_files), fired[codes], -1)
    order = order_by(rule)
    first = starts_of(rule[order])
    ends = np.append(first, len(order))[1:]
    groups = {
        int(rule[order[low]]): file[order[low:high]] for low, high in zip(first, ends, strict=True)
    }
    groups.pop(-1, None)
    gains = dict(zip(groups, simulation.gains(list(groups.values())), strict=True))
    rules = tuple(replace(rule, gain=gains.get(at)) for at, rule in enumerate(hints.rules))
    return replace(hints, rules=rules, baseline=simulation.baseline, all=simulation.all)
