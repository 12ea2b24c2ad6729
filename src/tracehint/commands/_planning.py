"""The plan of a run for commands that begin with the decision: profile, report, hints."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tracehint.errors import TracehintError

if TYPE_CHECKING:
    import pyarrow as pa

    from tracehint.analyzer.model import Analysis
    from tracehint.analyzer.predict.cluster import Cluster
    from tracehint.hintgen.hints.model import HintFile
    from tracehint.hintgen.match.match import Matcher
    from tracehint.hintgen.plan.model import Planning

DEFAULT_CLUSTER = "moosefs"
QUICK = 1.0  # seconds of the improvement's budget, where a plan is not what was asked for
MOST_TASKS = 20_000  # of a run that is planned without being asked
LARGE = "no rules by name: they are learned of runs with up to 50,000 files"
RULES = {
    "large": LARGE,
    "learned": "rules by name, for runs without a graph: as learned file by file",
    "without-copies": "rules by name, for runs without a graph: as learned, but no copies",
    "local": "rules by name, for runs without a graph: files on their writer's node",
    "none": "no rules by name: no set saves anything and never loses to the store's default",
}  # fmt: skip  # a table


@dataclass(frozen=True)
class DecidedPlanning:
    """A planning, and the sentence that it comes to; `cluster`: as the user named it."""

    planning: Planning
    cluster: str | None

    @property
    def said(self) -> str:
        """The decision, and what was assumed where no cluster was named."""
        from tracehint.commands._plan_output import decision
        from tracehint.hintgen.plan.result import to_json

        return decision(to_json(self.planning), users_own(self.cluster))

    def unbound(self) -> DecidedPlanning:
        """The best of what leaves tasks where the engine starts them."""
        from tracehint.hintgen.plan.judge import without_scheduler
        from tracehint.hintgen.plan.strategies.registry import DEFAULT

        alone = without_scheduler(self.planning.estimates)
        chosen = alone.name if alone is not None else DEFAULT
        return replace(self, planning=replace(self.planning, chosen=chosen))

    @property
    def hints(self) -> HintFile:
        """Rules that lose nowhere by simulation, and the plan."""
        return hint_file(self.planning)[0]


def cluster_for(
    given: str | None, nodes: int | None, analysis: Analysis
) -> tuple[Cluster, list[str]]:
    """The cluster, and what had to be assumed about it. Raises InputError."""
    from tracehint.analyzer.predict.cluster_file import read_cluster

    cluster, notes = read_cluster(given or DEFAULT_CLUSTER), list[str]()
    if given is None:
        notes.append(
            f"no --cluster: the ready-made {DEFAULT_CLUSTER}, whose nodes are placeholders"
        )
        nodes = nodes or int(analysis.run.get("nodes") or 0) or None
    return (cluster.with_nodes(nodes) if nodes else cluster), notes


def users_own(given: str | None) -> bool:
    """Whether `--cluster` names the user's cluster, not a ready-made one with placeholders."""
    from tracehint.analyzer.predict.cluster_file import is_ready_made

    return given is not None and not is_ready_made(given)


def hint_file(planning: Planning) -> tuple[HintFile, list[str]]:
    """The hint file of a planning, and notes on what it could not say."""
    from tracehint.hintgen.plan.result import for_hint_file
    from tracehint.hintgen.plan.rules import chosen_rules

    concrete, notes = for_hint_file(planning)
    by_name, kind = chosen_rules(planning.problem)
    return replace(by_name, plan=concrete), [*notes, RULES[kind]]


def decide(
    analysis: Analysis,
    rules: HintFile,
    cluster: str | None,
    nodes: int | None,
    facts: pa.Table | None = None,
    matcher: Matcher | None = None,
) -> DecidedPlanning | None:
    """Plan a run quickly; None: there is nothing to plan, or it is too large for that. `facts`:
    those of `facts_of`, `matcher`: of the rules, where they are there.

    Raises InputError for a cluster file that cannot be, MissingDependencyError without engine.
    """
    from tracehint.analyzer.predict.workload import from_analysis
    from tracehint.hintgen.plan.model import Problem
    from tracehint.hintgen.plan.planner import plan

    too_large = analysis.tasks.num_rows > MOST_TASKS and cluster is None
    if not analysis.edges.num_rows or too_large:
        return None
    where, notes = cluster_for(cluster, nodes, analysis)
    problem = Problem(analysis, from_analysis(analysis), where, rules, False, 1, facts, matcher)
    planning = replace(plan(problem, QUICK), notes=tuple(notes))
    return DecidedPlanning(planning, cluster)


def decided_or_why(
    analysis: Analysis,
    rules: HintFile,
    cluster: str | None,
    nodes: int | None,
    facts: pa.Table | None = None,
    matcher: Matcher | None = None,
) -> tuple[DecidedPlanning | None, str]:
    """The decision, or in words why there is none; a cluster that was named must be right."""
    try:
        found = decide(analysis, rules, cluster, nodes, facts, matcher)
    except TracehintError as error:
        if cluster is not None:
            raise
        return None, f"no prediction: {error}"
    if found is None:
        large = analysis.tasks.num_rows > MOST_TASKS
        return None, "a large run: `tracehint plan` predicts it" if large else ""
    return found, found.said
