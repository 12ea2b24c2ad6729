"""Lint: inefficiencies and errors of a run, as findings with bytes, files and a fix."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from tracehint.analyzer.execution.resources import silent
from tracehint.hintgen.lint.finding import Finding, rank
from tracehint.hintgen.lint.registry import RULES, load

if TYPE_CHECKING:
    from tracehint.analyzer.execution.resources import Tell
    from tracehint.hintgen.lint.context import Context


def run_rules(
    context: Context, codes: Sequence[str] = tuple(RULES), tell: Tell = silent
) -> list[Finding]:
    """Return the findings of the given rules, errors first, then by gain.

    Rules that need facts which the run lacks (a declared graph, several hosts)
    are skipped; `skipped_rules` lists them.
    """
    have = context.has
    findings: list[Finding] = []
    for number, code in enumerate(codes):
        tell("rules", number, len(codes), "rules")
        rule = load(code)
        if have.issuperset(rule.needs):
            findings += rule.check(context)
    tell("simulating", 0, 0, "")
    return sorted(_with_gains(context, findings), key=rank)


def _with_gains(context: Context, findings: Sequence[Finding]) -> list[Finding]:
    """Add to each placement finding the simulated gain of its placement."""
    groups = {at: f.placed for at, f in enumerate(findings) if f.placed is not None}
    gains = context.simulation.gains(list(groups.values())) if groups else []
    known = dict(zip(groups, gains, strict=True))
    return [replace(f, gain=known.get(at)) for at, f in enumerate(findings)]


def skipped_rules(context: Context, codes: Sequence[str] = tuple(RULES)) -> dict[str, str]:
    """Return for each skipped rule (by code) the first fact that the run lacks."""
    have = context.has
    missing = {code: [n for n in load(code).needs if n not in have] for code in codes}
    return {code: needs[0] for code, needs in missing.items() if needs}
