"""Tasks of a run over several sites: few bytes between sites, then few between nodes."""

from __future__ import annotations

from tracehint.hintgen.plan.model import Draft, Problem
from tracehint.hintgen.plan.site_cut import cuts_by_site
from tracehint.hintgen.plan.strategies.partition import bound


def make(problem: Problem) -> list[Draft]:
    """Drafts by several cuts; tasks stay in their part, as an idle node may be at another site."""
    cuts = cuts_by_site(problem.graph, problem.cluster, problem.seed)
    return [bound(problem, "sites", cut, steal) for cut in cuts for steal in ("unplanned", "any")]
