"""Plans and workloads of runs, for commands that print the decision or use the plan."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from tracehint.errors import TracehintError
from tracehint.schemas.arrow import skip_pandas

if TYPE_CHECKING:
    import pyarrow as pa

    from tracehint.adapters.place.allocation import Allocation
    from tracehint.adapters.place.hosts import Host
    from tracehint.analyzer.model import Analysis
    from tracehint.analyzer.predict.cluster import Cluster
    from tracehint.analyzer.predict.model import Workload
    from tracehint.hintgen.hints.model import HintFile
    from tracehint.hintgen.match.match import Matcher
    from tracehint.hintgen.plan.model import Planning


DEFAULT_CLUSTER = "moosefs"
QUICK_BUDGET_S = 1.0  # seconds for improving a plan, in commands other than `plan`
QUICK_BUDGET_SHARE = 0.02  # the same as a share of the run, for a plan on an allocation
MOST_TASKS = 20_000  # larger runs are planned only for a named cluster
LARGE = "no rules by name: they are learned of runs with up to 50,000 files"
RULES = {
    "large": LARGE,
    "learned": "rules by name, for runs without a graph: as learned file by file",
    "without-copies": "rules by name, for runs without a graph: as learned, but no copies",
    "local": "rules by name, for runs without a graph: files on their writer's node",
    "none": "no rules by name: no set saves anything and never loses to the store's default",
}


@dataclass(frozen=True)
class DecidedPlanning:
    """A planning and its summary; `cluster`: as the user named it."""

    planning: Planning
    cluster: str | None

    @property
    def summary(self) -> str:
        """The decision as one sentence, with the cluster model that it assumes."""
        from tracehint.app.plan_output import decision
        from tracehint.app.user_cluster import users_own
        from tracehint.hintgen.plan.result import to_json

        return decision(to_json(self.planning), users_own(self.cluster))

    def unbound(self) -> DecidedPlanning:
        """Return a copy that chooses the best strategy without task placement."""
        from tracehint.hintgen.plan.drafts import DEFAULT
        from tracehint.hintgen.plan.objective import without_scheduler

        alone = without_scheduler(self.planning.estimates)
        chosen = alone.name if alone is not None else DEFAULT
        return replace(self, planning=replace(self.planning, chosen=chosen))

    def bound_ahead(self) -> DecidedPlanning:
        """Return a copy with the best strategy that fixes nodes before the run; unchanged if none
        saves time. A batch system needs fixed nodes."""
        from tracehint.hintgen.plan.objective import bound_ahead

        error = self.planning.problem.cluster.model["error"]
        ahead = bound_ahead(self.planning.estimates, error)
        chosen = ahead.name if ahead is not None else self.planning.chosen
        return replace(self, planning=replace(self.planning, chosen=chosen))

    @property
    def hints(self) -> HintFile:
        """Rules that lose in no simulation, and the plan."""
        return hint_file(self.planning)[0]


def cluster_for(
    given: str | None, nodes: int | None, analysis: Analysis
) -> tuple[Cluster, list[str]]:
    """Return the cluster, and notes on what was assumed about it. Raises InputError."""
    from tracehint.analyzer.predict.cluster_file import read_cluster

    cluster, notes = read_cluster(given or DEFAULT_CLUSTER), list[str]()
    if given is None:
        notes.append(
            f"no --cluster: the built-in {DEFAULT_CLUSTER} model, whose nodes are placeholders"
        )
        nodes = nodes or int(analysis.run.get("nodes") or 0) or None
    return (cluster.with_nodes(nodes) if nodes else cluster), notes


def model_allocation(
    cluster: Cluster, nodes: Allocation, analysis: Analysis
) -> tuple[Cluster, Cluster]:
    """Return two models: the cluster with these nodes, their slots, measured link and task start
    time; and the cluster as the run used it, with its peak of parallel tasks on the first node."""
    from tracehint.analyzer.predict.cluster import MBIT, ClusterSection

    slots = [host.slots for host in nodes.hosts]
    part = cluster.nodes[0].with_number("link_mbit", nodes.link_mbit * MBIT)
    part = part.with_number("link_efficiency", 1.0)  # bytes of files were measured
    part = part.with_number("cores", round(sum(slots) / len(slots)))
    others = part.with_number("count", len(slots) - 1)
    first = part.with_number("count", 1).with_number("cores", count_parallel_tasks(analysis))
    first = replace(first, words={**first.words, "host": "own"})
    processors = ClusterSection({}, {}).with_number("processors", slots[0])
    placed = replace(
        cluster,
        nodes=(part.with_number("count", len(slots)),),
        scheduler=cluster.scheduler.with_number("task_ms", nodes.start_s),
    )
    return placed, replace(cluster, nodes=(first, others), hosts=(("own", processors),))


def model_batch_nodes(cluster: Cluster, hosts: Sequence[Host]) -> Cluster:
    """Return the cluster with these nodes, which a batch system fills with jobs one by one."""
    slots = [host.slots for host in hosts]
    part = cluster.nodes[0].with_number("cores", max(1, round(sum(slots) / len(slots))))
    nodes = (part.with_number("count", len(slots)),)
    return replace(cluster, nodes=nodes, scheduler=cluster.scheduler.with_number("fill", 1))


def with_link(
    cluster: Cluster, work: Workload, analysis: Analysis, hosts: Sequence[Host]
) -> tuple[Cluster, str]:
    """Return the cluster with the link rate that explains the I/O wait of a run without hints, and
    a note. Unchanged if the wait of a task is unknown, or the cluster's own link explains it."""
    import numpy as np
    import pyarrow.compute as pc

    from tracehint.analyzer.predict.cluster import MBIT
    from tracehint.analyzer.predict.model import ANYWHERE
    from tracehint.analyzer.predict.prediction import link_of_waiting

    place = {host.name: number for number, host in enumerate(hosts)}
    columns = (analysis.tasks.column(name).to_pylist() for name in ("task", "host"))
    ran = {task: place.get(host, ANYWHERE) for task, host in zip(*columns, strict=True)}
    plan = np.array([ran[task] for task in work.task_id.tolist()], np.int32)
    waited = analysis.tasks.filter(pc.invert(analysis.tasks.column("engine"))).column("io_wait_s")
    if waited.null_count:
        return cluster, ""
    link = link_of_waiting(work, cluster, pc.sum(waited).as_py() or 0.0, plan)
    if link >= cluster.nodes[0]["link_mbit"]:
        return cluster, ""
    note = f"links of {link / MBIT:.0f} Mbit/s, by the time that tasks waited for files"
    return cluster.with_link(link), note


def count_parallel_tasks(analysis: Analysis) -> int:
    """Return the peak number of tasks that ran in parallel."""
    import numpy as np

    rows = analysis.tasks.filter(~np.asarray(analysis.tasks.column("engine")))
    begin = np.asarray(rows.column("start_s"), float)
    end = np.asarray(rows.column("end_s").fill_null(0.0), float)
    steps = np.concatenate([np.ones(len(begin)), -np.ones(len(end))])
    order = np.lexsort((steps, np.concatenate([begin, end])))
    return max(1, int(np.cumsum(steps[order]).max(initial=1)))


def placing_pays(planning: Planning) -> bool:
    """Whether the chosen plan is faster than every strategy without task placement, with intervals
    that do not overlap: model errors for one node and for many nodes do not cancel out."""
    chosen = planning.estimate(planning.chosen)
    if chosen.scheduler is None:
        return False
    alone = [e for e in planning.estimates if e.scheduler is None]
    return all(chosen.high <= e.low for e in alone)


def hint_file(planning: Planning) -> tuple[HintFile, list[str]]:
    """Return the hint file of a planning, and notes on what it does not contain."""
    from tracehint.hintgen.plan.planner import chosen_rules
    from tracehint.hintgen.plan.result import for_hint_file

    concrete, notes = for_hint_file(planning)
    by_name, kind = chosen_rules(planning.problem)
    return replace(by_name, plan=concrete), [*notes, RULES[kind]]


def decide(
    analysis: Analysis,
    rules: HintFile,
    cluster: str | None,
    nodes: int | None = None,
    facts: pa.Table | None = None,
    matcher: Matcher | None = None,
    allocation: Allocation | None = None,
    batch: Sequence[Host] = (),
    plain: bool = True,
    bundle: Path | None = None,
) -> DecidedPlanning | None:
    """Plan a run quickly; None: there is nothing to plan, or the run is too large. `facts` (of
    `facts_of`) and `matcher` (of the rules) save computing them again; `allocation`: nodes that can
    start tasks, `batch`: nodes for jobs, else the cluster's nodes are used; `plain`: the run had no
    hints; `bundle`: contains the locations of inputs on these nodes.

    Raises InputError for an invalid cluster file, MissingDependencyError without the engine.
    """
    import numpy as np

    from tracehint.analyzer.predict.workload import from_analysis
    from tracehint.app.locations import find_holders
    from tracehint.app.user_cluster import users_own
    from tracehint.hintgen.plan.model import Problem
    from tracehint.hintgen.plan.planner import plan
    from tracehint.hintgen.summary.tallies import moves_data

    too_large = analysis.tasks.num_rows > MOST_TASKS and cluster is None
    if too_large or not moves_data(analysis):
        return None
    where, notes = cluster_for(cluster, nodes, analysis)
    own, budget, work = None, QUICK_BUDGET_S, from_analysis(analysis)
    hosts = allocation.hosts if allocation is not None else batch
    if bundle is not None and hosts:
        held = find_holders(bundle, analysis, hosts)
        work.held = np.array([held.get(file, -1) for file in work.file_id.tolist()], np.int32)
    if allocation is not None:
        budget = min(QUICK_BUDGET_S, QUICK_BUDGET_SHARE * float(analysis.run["duration_s"] or 0))
        where, own = model_allocation(where, allocation, analysis)
    elif batch:
        where = model_batch_nodes(where, batch)
        if plain and not users_own(cluster):
            where, note = with_link(where, work, analysis, batch)
            notes += [note] if note else []
    problem = Problem(analysis, work, where, rules, own=own, facts=facts, matcher=matcher)
    planning = replace(plan(problem, budget), notes=tuple(notes))
    return DecidedPlanning(planning, cluster)


def try_decide(
    analysis: Analysis,
    rules: HintFile,
    cluster: str | None,
    nodes: int | None,
    facts: pa.Table | None = None,
    matcher: Matcher | None = None,
) -> tuple[DecidedPlanning | None, str]:
    """Return the decision and its summary, or None and the reason. Raises for a named cluster."""
    try:
        found = decide(analysis, rules, cluster, nodes, facts, matcher)
    except TracehintError as error:
        if cluster is not None:
            raise
        return None, f"no prediction: {error}"
    if found is None:
        large = analysis.tasks.num_rows > MOST_TASKS
        return None, "a large run: `tracehint plan` predicts it" if large else ""
    return found, found.summary


@dataclass(frozen=True)
class Loaded:
    """A workload, the analysis it was made from, and the analyses that it was learned from."""

    analysis: Analysis
    work: Workload
    runs: tuple[Analysis, ...]


def load_workload(
    source: Path, learned: Sequence[Path], scale_bytes: float, scale_seconds: float
) -> Loaded:
    """Load the workload of a run, an analysis, or a graph. Raises InputError, BundleError."""
    skip_pandas()
    from tracehint.analyzer.predict.cluster import Dispatch
    from tracehint.analyzer.predict.learning import learn_times
    from tracehint.analyzer.predict.workload import ScaleFactors, from_analysis

    analysis, notes = load_analysis(source), list[str]()
    runs = tuple(load_analysis(path) for path in learned)
    if runs:
        analysis, notes = learn_times(analysis, runs)
    work = from_analysis(analysis, ScaleFactors(scale_bytes, scale_seconds))
    work.notes += notes
    if runs and work.dispatch == Dispatch():
        work.dispatch = from_analysis(runs[-1]).dispatch
        work.notes += [work.dispatch.source] if work.dispatch.source else []
    return Loaded(analysis, work, runs)


def load_analysis(path: Path) -> Analysis:
    """Load the analysis of a bundle, of the JSON of `analyze`, or of an engine's graph or log."""
    from tracehint.adapters.engines.graphs import import_graphs, sniff
    from tracehint.analyzer.model import Options
    from tracehint.hintgen.inputs import load_run
    from tracehint.schemas.kinds import what_is

    if what_is(path) in ("bundle", "analysis", "absent", "hints") or sniff(path) is None:
        return load_run(path, Options()).analysis
    with tempfile.TemporaryDirectory(prefix="tracehint-graph-") as folder:
        bundle = Path(folder) / "graph.trace"
        import_graphs([path], bundle)
        return load_run(bundle, Options()).analysis
