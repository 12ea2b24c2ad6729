"""`run` without --hints: hints are learned from the first run of a workflow for the next ones."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from tracehint.adapters.project.state import FIRST
from tracehint.app.kept_decision import (
    Decision,
    decision_key,
    load_decision,
    measured_of,
    save_decision,
)
from tracehint.errors import TracehintError
from tracehint.schemas.arrow import skip_pandas
from tracehint.schemas.wording import plural

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tracehint.adapters.paths import Paths
    from tracehint.adapters.place.allocation import Allocation
    from tracehint.adapters.place.dispatch import Key, PlacedTask
    from tracehint.adapters.place.hosts import Host
    from tracehint.adapters.place.job_commands import KnownJobs
    from tracehint.adapters.project.state import KnownRun, ProjectState, Slower
    from tracehint.analyzer.model import Analysis
    from tracehint.hintgen.hints.model import HintFile, Plan, Rule
    from tracehint.hintgen.inputs import Input


DECIDE_S, DECIDE_TASK_S = 1.2, 0.003  # CPU seconds of a decision, and further ones per task
DECIDE_SHARE = 0.05  # maximum share of a run that a decision after it may take
MAX_BACKGROUND_RUNS = 2  # runs that a background decision may take, before it is made at once
OVERHEAD_SHARE = 0.02  # share of a run that tracehint may take although its hints save less
TRIAL_RUN_S = 5.0  # seconds; shorter runs are trials, in which tracehint's overhead does not count
GRAPH_SHARE = 0.01  # as DECIDE_SHARE, after a run that had hints from the graph
FIRST_TRIAL_S = 3.0  # seconds that a first run waits for a trial step on another node


@dataclass(frozen=True)
class Learned:
    """Hints and placement for the next run, learned from earlier runs. Without hints the run serves
    as a baseline."""

    hints: HintFile | None
    paths: Paths  # of the last run
    roots: tuple[str, ...]
    left_out: tuple[str, ...] = ()  # rules that did not help
    notes: list[str] = field(default_factory=list)
    placing: TaskPlacing | None = None
    submitting: JobPlacing | None = None
    tasks: int = 0  # of the last run
    first: bool = False  # first run: later ones are compared with it
    recorded: bool = True  # False: only the duration is kept
    hints_digest: str = ""  # hash of the settings that the hints request
    beside: bool = False  # the next run is decided while this one runs
    spent: float = 0.0  # seconds that an earlier run spent on this decision
    measured: tuple[float, ...] = ()  # link and step start time, measured without load

    @property
    def hinted(self) -> bool:
        """Whether the run has learned hints."""
        return self.hints is not None and not self.first


@dataclass(frozen=True)
class TaskPlacing:
    """Tasks to start on the nodes of an allocation; `steal`: as in the plan."""

    nodes: Allocation
    tasks: Mapping[Key, PlacedTask]
    steal: bool


@dataclass(frozen=True)
class JobPlacing:
    """Jobs to submit for nodes of a batch system; `steal`: as in the plan."""

    nodes: tuple[Host, ...]
    jobs: KnownJobs
    steal: bool


def learn_hints(
    state: ProjectState,
    command: tuple[str, ...],
    cluster: str | None,
    hosts: tuple[Host, ...],
    batch: tuple[Host, ...] = (),
    *,
    at_once: bool = True,
    measured: tuple[float, ...] = (),
) -> Learned | None:
    """Learn hints from the recordings of this workflow; None: there is no run and no graph.
    `hosts`: nodes for its tasks, `batch`: nodes for its jobs. `at_once`: decide now; else a short
    run may use the graph's hints while the decision is made. `measured`: link and step start time,
    if a trial now would compete with a run."""
    runs = state.learnable(command)
    if not runs or state.needs_recording(command):
        return _learn_from_graph(state, command, cluster, hosts)
    last = runs[-1]
    if (slower := state.slower(command)) is not None:
        return _drop_hints(state, slower, last, command, cluster, hosts)
    short = TRIAL_RUN_S <= last.seconds < _estimate_decision_s(last) / GRAPH_SHARE
    at_once = at_once or len(state.unrecorded_since(last)) >= MAX_BACKGROUND_RUNS
    if not at_once and short and last.by_graph and hosts and not state.changed_since(last):
        key = decision_key(state, runs, cluster, hosts, batch)
        decided = load_decision(state.folder, key) is not None
        if not decided and (again := _learn_from_graph(state, command, cluster, hosts)) is not None:
            notes = ["the first run's hints, not recorded; the next ones are computed meanwhile"]
            return replace(again, notes=notes, tasks=last.tasks, recorded=False, beside=True)
    return _learn_rules(state, runs, cluster, hosts, batch, measured)


def _drop_hints(
    state: ProjectState,
    slower: Slower,
    last: KnownRun,
    command: tuple[str, ...],
    cluster: str | None,
    hosts: tuple[Host, ...],
) -> Learned:
    """Return a run like the earlier, faster ones: with the graph's hints, or without hints."""
    from tracehint.adapters.paths import Paths

    again = "`tracehint status --forget` restarts learning"
    took = f"{slower.seconds:.1f} s"
    recorded = not slower.proven or state.changed_since(last)
    if slower.by_graph and (found := _learn_from_graph(state, command, cluster, hosts)) is not None:
        text = f"the first run's hints ({slower.usual:.1f} s): learned ones took {took}; {again}"
        return replace(
            found, left_out=last.left_out, notes=[text], tasks=last.tasks, recorded=recorded
        )
    without = "in the first run" if slower.by_graph else "without"
    text = f"no hints: the run took {took} with them, {slower.usual:.1f} s {without}; {again}"
    none = Paths(files=())
    return Learned(None, none, (), last.left_out, [text], tasks=last.tasks, recorded=recorded)


def _estimate_decision_s(last: KnownRun) -> float:
    return DECIDE_S + DECIDE_TASK_S * last.tasks


def prepare_next(
    directory: Path,
    command: tuple[str, ...],
    cluster: str | None,
    hosts: tuple[Host, ...],
    batch: tuple[Host, ...],
) -> None:
    """Decide now on the nodes of the next run, if the last run took much longer than deciding."""
    from tracehint.adapters.project.state import read_state

    state = read_state(directory)
    last = state.runs[-1]
    least = _estimate_decision_s(last) / (GRAPH_SHARE if last.by_graph else DECIDE_SHARE)
    if cluster and (hosts or batch) and last.teaches and last.seconds >= least:
        learn_hints(state, command, cluster, hosts, batch)


def _learn_from_graph(
    state: ProjectState, command: tuple[str, ...], cluster: str | None, hosts: tuple[Host, ...]
) -> Learned | None:
    """Return a first run with hints from the workflow's graph; None without such hints."""
    from tracehint.adapters.paths import Paths
    from tracehint.app.first_run import graph_hints, graph_key

    key = graph_key(command, cluster, len(hosts))
    kept = load_decision(state.folder, key, FIRST) if key else None
    if key and kept is None:
        with _node_trial(hosts, FIRST_TRIAL_S) as trial:
            found = graph_hints(command, cluster, len(hosts))
            measured = measured_of(trial())
        if found is not None:
            kept = Decision(hints=found[0], placed=False, roots=found[1], measured=measured)
            save_decision(state.folder, key, kept, FIRST)
    if kept is None:
        return None
    notes = ["first run: hints from the workflow's graph keep files on the node that writes them"]
    none = Paths(files=())
    return Learned(kept.hints, none, kept.roots, notes=notes, first=True, measured=kept.measured)


def _learn_rules(
    state: ProjectState,
    runs: list[KnownRun],
    cluster: str | None,
    hosts: tuple[Host, ...],
    batch: tuple[Host, ...],
    measured: tuple[float, ...] = (),
) -> Learned:
    last, notes = runs[-1], list[str]()
    key = decision_key(state, runs, cluster, hosts, batch)
    decision = load_decision(state.folder, key) if hosts or batch else None
    if decision is not None and (alone := _run_without_hints(state, last, decision)) is not None:
        return alone
    skip_pandas()
    from tracehint.adapters.paths import Paths, run_paths
    from tracehint.adapters.place.allocation import measured_before
    from tracehint.analyzer.model import Options
    from tracehint.hintgen.inputs import load_run

    tried = hosts if cluster and (decision is None or decision.placed) else ()
    with _node_trial(() if measured else tried) as trial:
        run = load_run(state.bundle(last), Options())
        known = run_paths(state.bundle(last))
        nodes = measured_before(tried, *measured) if tried and measured else trial()
    if tried and nodes is None:
        notes.append("no step could start on another node: tasks run where the engine starts them")
    if batch and not _has_jobs(run):
        batch = ()
    if not hosts and not batch:
        key = decision_key(state, runs, cluster, hosts, batch)
        decision = load_decision(state.folder, key)
    if decision is not None and (tried or not hosts) and not decision.serves(nodes):
        decision = None
    paths = Paths(files=(), declared=known.files, known=known.known)
    spent = 0.0
    if decision is None:
        begin = time.monotonic()
        inputs = [*(load_run(state.bundle(before), Options()) for before in runs[:-1]), run]
        decision = _decide(state, runs, inputs, paths, cluster, nodes, batch)
        spent = time.monotonic() - begin
        decision = replace(decision, seconds=spent, measured=measured_of(nodes))
        save_decision(state.folder, key, decision)
        if (hosts or batch) and (alone := _run_without_hints(state, last, decision)) is not None:
            return alone
        spent = 0.0
    elif state.runs[-1:] == (last,):  # only the first run that uses it is charged
        spent = decision.seconds
    notes += decision.notes
    hints, left_out = decision.hints, decision.left_out
    roots = _adapt_roots(state, last, tuple(run.analysis.run["data_roots"]), notes)
    found = Learned(hints, paths, roots, left_out, notes, tasks=last.tasks, spent=spent)
    if _sets_nothing(hints):
        return replace(found, hints=None)
    if hints.plan is None or not decision.placed:
        return _skip_recording(replace(found, hints_digest=_hash_hints(hints)), state, last)
    if nodes is not None:
        return replace(found, placing=_make_task_placing(nodes, state, last, run, hints.plan))
    return replace(found, submitting=_make_job_placing(batch, run, hints.plan))


def _hash_hints(hints: HintFile) -> str:
    """Return a hash of the settings that the hints request, independent of their source runs."""
    rules = {
        (rule.template, tuple((hint.name, hint.value, hint.when) for hint in rule.hints))
        for rule in hints.rules
    }
    folders = [(folder.path, sorted(folder.hints.items())) for folder in hints.directories]
    files = hints.plan.files if hints.plan is not None else ()
    paths = [*folders, *((file.path, sorted(file.hints.items())) for file in files)]
    return hashlib.sha256(repr((sorted(rules), sorted(paths))).encode()).hexdigest()[:16]


def _skip_recording(found: Learned, state: ProjectState, last: KnownRun) -> Learned:
    """Disable recording if there is nothing new to learn: the last recorded run had the same hints,
    all in force, and the runs since then were similar."""
    worked = last.hinted and 0 < last.wanted == last.in_force
    same = worked and last.hints_digest == found.hints_digest and last.seconds >= TRIAL_RUN_S
    if not same or state.changed_since(last):
        return found
    text = "not recorded: the last recorded run had the same hints, all in force"
    return replace(found, notes=[*found.notes, text], recorded=False)


def _run_without_hints(state: ProjectState, last: KnownRun, decision: Decision) -> Learned | None:
    """Return a run without hints, if these save less than tracehint's overhead; recorded if the
    last run differed from the recorded one. None: hints save enough, or the run is too short."""
    from tracehint.adapters.paths import Paths

    plan, own = decision.hints.plan, min(last.around, _estimate_decision_s(last))
    if last.seconds < TRIAL_RUN_S:
        return None
    if not _sets_nothing(decision.hints):
        saved = plan.seconds.default - plan.seconds.planned if plan is not None else own
        if saved >= own or own <= OVERHEAD_SHARE * last.seconds:
            return None
    changed = state.changed_since(last)
    text = f"no hints: they save less than tracehint's overhead ({own:.1f} s)"
    what = "recorded, as the run time changed" if changed else "not recorded"
    notes = [*decision.notes, f"{text}; {what}"]
    none = Paths(files=())
    return Learned(None, none, (), decision.left_out, notes, tasks=last.tasks, recorded=changed)


def _decide(
    state: ProjectState,
    runs: list[KnownRun],
    inputs: list[Input],
    paths: Paths,
    cluster: str | None,
    nodes: Allocation | None,
    batch: tuple[Host, ...],
) -> Decision:
    """Decide on hints from the runs, and on a plan for the nodes; `inputs`: the loaded runs."""
    from tracehint.hintgen.learn.rules import learn

    analyses = [run.analysis for run in inputs]
    last = runs[-1]
    notes = [f"hints from {plural(len(runs), 'run')} in {state.folder}", *_list_changes(analyses)]
    rules = learn(analyses)
    useless = _find_useless(state.bundle(last), _find_unhelpful(runs, inputs))
    before = next((run.left_out for run in reversed(runs) if run.place is None), ())
    left_out = tuple(dict.fromkeys([*before, *useless]))
    planned, placed = _plan_hints(
        analyses[-1], state.bundle(last), last.plain, rules, cluster, nodes, batch, left_out, notes
    )
    hints = planned or rules
    kept = tuple(rule for rule in hints.rules if rule.template not in left_out)
    if len(kept) < len(hints.rules):
        out = plural(len(hints.rules) - len(kept), "rule")
        notes.append(f"{out} left out: not in force or without gain in earlier runs")
    hints = replace(hints, rules=kept)
    roots = tuple(analyses[-1].run["data_roots"])
    more = _learn_first_names(state.bundle(last), hints, paths, roots, notes)
    hints = replace(hints, rules=(*kept, *more))
    return Decision(hints=hints, placed=placed, left_out=left_out, notes=tuple(notes))


def _has_jobs(run: Input) -> bool:
    """Whether jobs of a batch system were recorded."""
    from tracehint.adapters.place.job_commands import known_jobs

    return run.bundle is not None and len(known_jobs(run.bundle, run.analysis, None)) > 0


def _make_job_placing(batch: tuple[Host, ...], run: Input, plan: Plan) -> JobPlacing:
    from tracehint.adapters.place.job_commands import known_jobs

    assert run.bundle is not None
    return JobPlacing(batch, known_jobs(run.bundle, run.analysis, plan), plan.steal == "any")


@contextmanager
def _node_trial(
    hosts: tuple[Host, ...], patience_s: float | None = None
) -> Iterator[Callable[[], Allocation | None]]:
    """Try a step on the nodes in a thread; yield a function that waits for the usable nodes."""
    from concurrent.futures import ThreadPoolExecutor

    from tracehint.adapters.place.allocation import usable

    if not hosts:
        yield lambda: None
        return
    with ThreadPoolExecutor(1) as beside:
        yield beside.submit(usable, hosts, patience_s).result


def _make_task_placing(
    nodes: Allocation, state: ProjectState, last: KnownRun, run: Input, plan: Plan
) -> TaskPlacing | None:
    from tracehint.adapters.place.dispatch import placed_tasks

    assert run.bundle is not None
    here = state.folder.resolve().parent
    tasks = placed_tasks(run.bundle, state.bundle(last), run.analysis, plan, here)
    return TaskPlacing(nodes, tasks, plan.steal == "any") if tasks else None


def _adapt_roots(
    state: ProjectState, last: KnownRun, roots: tuple[str, ...], notes: list[str]
) -> tuple[str, ...]:
    """Return the last run's data roots, adapted if the workflow's directory has moved."""
    from tracehint.adapters.project.state import roots_now
    from tracehint.hintgen.text.escape import terminal
    from tracehint.schemas.manifest import read_manifest

    was = Path(read_manifest(state.bundle(last)).cwd)
    now = roots_now(roots, was, state.folder.resolve().parent)
    if now != roots:
        notes.append(f"the last run was in {terminal(str(was))}: its hints now apply to files here")
    return now


def _learn_first_names(
    bundle: Path, hints: HintFile, paths: Paths, roots: tuple[str, ...], notes: list[str]
) -> list[Rule]:
    """Return rules for first names: those of files that are renamed after their creation."""
    from tracehint.adapters.creation.resolution import made_as, resolution_of
    from tracehint.schemas.store import read_bundle

    run = read_bundle(bundle, without=("extents", "metadata_ops"))
    raw = sorted((os.fsencode(root) for root in roots), key=len, reverse=True)
    rules = made_as(run, resolution_of(hints, paths), raw)
    if rules:
        notes.append(f"{plural(len(rules), 'rule')} for the first names of files that are renamed")
    return rules


def _list_changes(analyses: list[Analysis]) -> list[str]:
    """Return notes on how the last run's work differs from that of the run before it."""
    from tracehint.hintgen.compare.proof import drift

    if len(analyses) < 2:
        return []
    return [f"the last run differs from the one before: {line}" for line in drift(*analyses[-2:])]


def _find_unhelpful(runs: list[KnownRun], inputs: list[Input]) -> list[str]:
    """Return rules of the last run that saved nothing, compared with the last run without hints."""
    from tracehint.hintgen.compare.proof import not_helped

    plain = [i for run, i in zip(runs, inputs, strict=True) if run.plain]
    return not_helped(plain[-1], inputs[-1]) if plain and runs[-1].hinted else []


def _find_useless(bundle: Path, unhelpful: list[str]) -> list[str]:
    """Return templates of rules with no hint in force in that run (all refused or lost), and of
    `unhelpful` rules; a plan is named by its strategy."""
    from tracehint.hintgen.hints.hintfile import load
    from tracehint.schemas.manifest import HINTS_NAME
    from tracehint.schemas.store import read_bundle

    if not (bundle / HINTS_NAME).is_file():
        return []
    templates = {rule.id: rule.template for rule in load(bundle / HINTS_NAME).rules}
    rows = read_bundle(bundle, without=("extents",)).tables["settings"]
    good: set[str] = set()
    bad: set[str] = set()
    for row in rows.select(["rule", "state"]).to_pylist():
        (good if row["state"] == "set" else bad).add(row["rule"])
    nothing = {templates[rule] for rule in bad - good if rule in templates}
    return sorted(nothing | {templates.get(rule, rule) for rule in unhelpful})


def _plan_hints(
    analysis: Analysis,
    bundle: Path,
    plain: bool,
    rules: HintFile,
    cluster: str | None,
    nodes: Allocation | None,
    batch: tuple[Host, ...],
    left_out: tuple[str, ...],
    notes: list[str],
) -> tuple[HintFile | None, bool]:
    """Return the hints of a plan, and whether its tasks are placed. None: there is no cluster or no
    plan, or this strategy saved nothing before."""
    from tracehint.app.planning import decide, placing_pays

    if cluster is None:
        return None, False
    try:
        found = decide(
            analysis, rules, cluster, allocation=nodes, batch=batch, plain=plain, bundle=bundle
        )
    except TracehintError as error:
        notes.append(f"no plan: {error}")
        return None, False
    if found is None:
        return None, False  # no file is read or written: nothing to plan
    placed = bool(batch) or (nodes is not None and placing_pays(found.planning))
    hints = (found.bound_ahead() if batch else found if placed else found.unbound()).hints
    assert hints.plan is not None
    if hints.plan.strategy in left_out:
        notes.append(f"no plan: {hints.plan.strategy} saved nothing before")
        return None, False
    notes += [_format_prediction(hints), *found.planning.notes]
    if _sets_nothing(hints):
        return hints, False
    if placed and nodes is not None:
        notes.append(f"tasks start on {plural(len(nodes.hosts), 'node')} of the allocation")
    elif placed:
        notes.append(
            f"each job is submitted to one of {plural(len(batch), 'node')} with free processors"
        )
    return hints, placed


def _sets_nothing(hints: HintFile) -> bool:
    """Whether neither rules nor plan request a setting or a placement."""
    plan = hints.plan
    return not (hints.rules or hints.directories or (plan and (plan.files or plan.tasks)))


def _format_prediction(hints: HintFile) -> str:
    """Return a note on the simulated makespan with and without the plan."""
    plan = hints.plan
    assert plan is not None
    default, planned = plan.seconds.default, plan.seconds.planned
    if _sets_nothing(hints):
        return f"no hint reduces the run time on {plan.cluster} ({default:.1f} s predicted)"
    return (
        f"planned for {plan.cluster}: {plan.strategy}, {default:.1f} s -> {planned:.1f} s predicted"
    )
