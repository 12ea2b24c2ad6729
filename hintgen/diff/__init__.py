"""What changed between two runs of one workflow, as findings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracehint.hintgen.diff.compare import CHANGES, Tolerances, compare
from tracehint.hintgen.diff.profile import profile

if TYPE_CHECKING:
    from tracehint.analyzer.model import Analysis
    from tracehint.hintgen.lint.finding import Finding

__all__ = ["CHANGES", "Tolerances", "compare", "diff", "profile"]


def diff(before: Analysis, after: Analysis, limits: Tolerances | None = None) -> list[Finding]:
    """Changes from one run to the other beyond the limits; empty for a run repeated."""
    return compare(profile(before), profile(after), limits or Tolerances())
