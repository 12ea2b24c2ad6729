"""`run` without --hints: the first run of a workflow is learned from, the next ones have hints."""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tracehint.errors import TracehintError
from tracehint.hintgen.text.units import plural
from tracehint.schemas.arrow import load_before_a_command

if TYPE_CHECKING:
    from tracehint.adapters.paths import Paths
    from tracehint.adapters.project.state import KnownRun, ProjectState
    from tracehint.analyzer.model import Analysis
    from tracehint.hintgen.hints.model import HintFile, Rule
    from tracehint.hintgen.inputs import Input


@dataclass(frozen=True)
class Learned:
    """What the runs so far say about the next one."""

    hints: HintFile
    paths: Paths  # of the last run
    roots: tuple[str, ...]
    left_out: tuple[str, ...] = ()  # rules that did not help
    said: list[str] = field(default_factory=list)


def learned(state: ProjectState, command: tuple[str, ...], cluster: str | None) -> Learned | None:
    """Rules from the recordings of this workflow; None: there is no run to learn from."""
    runs = state.usable(command)
    return _learned(state, runs, cluster) if runs else None


def _learned(state: ProjectState, runs: list[KnownRun], cluster: str | None) -> Learned:
    load_before_a_command()
    from tracehint.adapters.learned import run_paths
    from tracehint.adapters.paths import Paths
    from tracehint.analyzer.model import Options
    from tracehint.hintgen.inputs import load_run
    from tracehint.hintgen.learn.rules import learn

    inputs = [load_run(state.bundle(run), Options()) for run in runs]
    analyses = [run.analysis for run in inputs]
    last = runs[-1]
    said = [f"hints from {plural(len(runs), 'run')} in {state.folder}", *_changes(analyses)]
    rules = learn(analyses)
    useless = _useless(state.bundle(last), _unhelpful(runs, inputs))
    left_out = tuple(dict.fromkeys([*last.left_out, *useless]))
    hints = _planned(analyses[-1], rules, cluster, left_out, said) or rules
    kept = tuple(rule for rule in hints.rules if _name(rule) not in left_out)
    if len(kept) < len(hints.rules):
        out = plural(len(hints.rules) - len(kept), "rule")
        said.append(f"{out} left out, of which nothing held or helped before")
    known = run_paths(state.bundle(last))
    paths = Paths(files=(), declared=known.files, known=known.known)
    hints = replace(hints, rules=kept)
    roots = tuple(analyses[-1].run["data_roots"])
    more = _first_names(state.bundle(last), hints, paths, roots, said)
    now = _roots_now(state, last, roots, said)
    return Learned(replace(hints, rules=(*kept, *more)), paths, now, left_out, said)


def _roots_now(
    state: ProjectState, last: KnownRun, roots: tuple[str, ...], said: list[str]
) -> tuple[str, ...]:
    """The data roots of that run, where the workflow may have another place now."""
    from tracehint.adapters.project.moved import roots_now
    from tracehint.hintgen.text.escape import terminal
    from tracehint.schemas.manifest import read_manifest

    was = Path(read_manifest(state.bundle(last)).cwd)
    now = roots_now(roots, was, state.folder.resolve().parent)
    if now != roots:
        said.append(f"the last run was in {terminal(str(was))}: its hints are for files here now")
    return now


def _first_names(
    bundle: Path, hints: HintFile, paths: Paths, roots: tuple[str, ...], said: list[str]
) -> list[Rule]:
    """Rules for the names under which files are made that are renamed later."""
    from tracehint.adapters.creation.made_as import made_as
    from tracehint.adapters.creation.resolution import resolution_of
    from tracehint.schemas.store import read_bundle

    run = read_bundle(bundle, without=("extents", "metadata_ops"))
    raw = sorted((os.fsencode(root) for root in roots), key=len, reverse=True)
    rules = made_as(run, resolution_of(hints, paths), raw)
    if rules:
        said.append(f"{plural(len(rules), 'rule')} for names under which files are made first")
    return rules


def _name(rule: Any) -> str:
    """A rule by what stays the same from run to run."""
    return str(rule.template)


def _changes(analyses: list[Analysis]) -> list[str]:
    """How the last run was other work than the one before it."""
    from tracehint.hintgen.proof.compare import drift

    if len(analyses) < 2:
        return []
    return [f"the last run was not as the one before: {line}" for line in drift(*analyses[-2:])]


def _unhelpful(runs: list[KnownRun], inputs: list[Input]) -> list[str]:
    """Rules of the last run that brought nothing, beside the last run without hints."""
    from tracehint.hintgen.proof.helped import not_helped

    plain = [i for run, i in zip(runs, inputs, strict=True) if not run.hinted]
    return not_helped(plain[-1], inputs[-1]) if plain and runs[-1].hinted else []


def _useless(bundle: Path, unhelpful: list[str]) -> list[str]:
    """Templates of rules of which nothing was in force in that run (each hint refused or lost),
    and of `unhelpful` ones; a plan has the name of its strategy."""
    from tracehint.hintgen.hints.hintfile import load
    from tracehint.schemas.store import read_bundle
    from tracehint.schemas.version import HINTS_NAME

    if not (bundle / HINTS_NAME).is_file():
        return []
    templates = {rule.id: _name(rule) for rule in load(bundle / HINTS_NAME).rules}
    rows = read_bundle(bundle, without=("extents",)).tables["settings"]
    good: set[str] = set()
    bad: set[str] = set()
    for row in rows.select(["rule", "state"]).to_pylist():
        (good if row["state"] == "set" else bad).add(row["rule"])
    nothing = {templates[rule] for rule in bad - good if rule in templates}
    return sorted(nothing | {templates.get(rule, rule) for rule in unhelpful})


def _planned(
    analysis: Analysis,
    rules: HintFile,
    cluster: str | None,
    left_out: tuple[str, ...],
    said: list[str],
) -> HintFile | None:
    """The hints of a plan, where the project names a cluster and no plan of its kind failed."""
    from tracehint.commands._planning import decide

    if cluster is None:
        return None
    try:
        found = decide(analysis, rules, cluster, None)
    except TracehintError as error:
        said.append(f"no plan: {error}")
        return None
    if found is None:
        return None  # no file is handed on: nothing to plan
    hints = found.unbound().hints  # `run` leaves it to the engine where tasks start
    assert hints.plan is not None
    if hints.plan.strategy in left_out:
        said.append(f"no plan: {hints.plan.strategy} brought nothing before")
        return None
    said.append(
        f"planned for {hints.plan.cluster}: {hints.plan.strategy}, "
        f"{hints.plan.default_seconds:.1f} s -> {hints.plan.planned_seconds:.1f} s predicted"
    )
    return hints


def written_down(
    directory: Path, bundle: Path, command: tuple[str, ...], found: Learned | None, store: str
) -> list[str]:
    """The run into the state; what it came to, in a sentence."""
    from tracehint.adapters.project.state import KnownRun, add_run
    from tracehint.hintgen.proof.force import force_of
    from tracehint.schemas.manifest import read_manifest
    from tracehint.schemas.store import read_bundle

    manifest = read_manifest(bundle)
    force = force_of(read_bundle(bundle, without=("extents",)))
    idle = not force.wanted and not _worked(bundle)
    run = KnownRun(
        number=int(bundle.name.partition(".")[0]),
        command=command,
        status=manifest.exit_status or 0,
        seconds=round(((manifest.ended_ns or 0) - manifest.started_ns) / 1e9, 3),
        hinted=found is not None,
        store=store if found is not None else "",
        in_force=force.in_force,
        wanted=force.wanted,
        left_out=found.left_out if found is not None else (),
        idle=idle,
    )
    state = add_run(directory, run)
    if run.status:
        return [f"exit status {run.status}: nothing is learned from this run"]
    if idle:
        return ["no task ran (was everything there already?): nothing is learned from this run"]
    if found is None:
        return ["learned from this run: the next one has hints (tracehint status)"]
    return _against_first(state, run, directory)


def _worked(bundle: Path) -> bool:
    """Whether any task was seen running, besides the engine itself."""
    import pyarrow.compute as pc

    from tracehint.analyzer.tasks.segmentation import segment_tasks
    from tracehint.schemas.store import read_bundle

    tasks = segment_tasks(read_bundle(bundle, without=("extents", "metadata_ops"))).tasks
    seen = pc.greater(tasks.column("processes"), 0)
    return bool(pc.any(pc.and_(seen, pc.invert(tasks.column("engine")))).as_py())


def _against_first(state: ProjectState, run: KnownRun, directory: Path) -> list[str]:
    """The seconds beside those of the last run without hints."""
    from tracehint.adapters.project.mounts import LOCAL, store_of
    from tracehint.collectors.hostinfo import mounts

    plain = [r for r in state.runs if r.program == run.program and not r.hinted and r.teaches]
    if not plain:
        return []
    first = plain[-1]
    lines = [f"{first.seconds:.1f} s without hints, {run.seconds:.1f} s with them"]
    if run.store == "xattr" and store_of(directory, mounts())[0] == LOCAL:
        lines.append("  which is not the hints' doing: a plain file system only keeps them")
    if state.bundle(first).is_dir():
        lines.append(f"  next: tracehint compare {state.bundle(first)} {state.bundle(run)}")
    return lines
