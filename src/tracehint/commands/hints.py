"""`tracehint hints`: rules for the files of the next run; their score; their explanation."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tracehint.app.last_runs import runs_or_last
from tracehint.app.output import format_for_reuse, refuse_own_input, write_result
from tracehint.commands._options import (
    Backend,
    backend_options,
    format_option,
    gather_options,
    nodes_option,
    option,
    task_options,
)
from tracehint.errors import InputError, UsageError
from tracehint.progress import prepare_for_analysis, stage
from tracehint.schemas.plain import ConfiguredName

if TYPE_CHECKING:
    from tracehint.analyzer.model import Analysis
    from tracehint.hintgen.hints.model import HintFile
    from tracehint.hintgen.learn.rules import LearnOptions
    from tracehint.hintgen.learn.safety import Limits


@dataclass(frozen=True)
class Inquiry:
    """What is printed instead of the rules: their score on a run, or the rule of a path."""

    other: str | None
    given: str
    path: str | None
    producer: str | None
    consumers: tuple[str, ...]


@dataclass(frozen=True)
class Result:
    """The output file and format of the answer."""

    output: str | None
    fmt: str
    force: bool

    def write(self, data: Any, text: str) -> None:
        """Write JSON or text."""
        write_result(_dump(data) if self.fmt == "json" else text, self.output, force=self.force)


def score_on(
    other: Analysis, analyses: list[Analysis], options: LearnOptions, given: str
) -> tuple[dict[str, Any], str]:
    """Score the rules of the runs on another run; return JSON data and text."""
    from tracehint.hintgen.compare.score import score, score_text
    from tracehint.hintgen.learn.facts import facts_of
    from tracehint.hintgen.learn.rules import learn

    facts = [facts_of(analysis) for analysis in analyses]
    rules = learn(analyses, options, facts)
    data = score(rules, analyses, other, given=given, facts=facts)
    return data, score_text(data)


def explain_path(
    hints: HintFile, path: str, question: Inquiry, nodes: int | None, result: Result
) -> None:
    """Write which rule matches the path."""
    from tracehint.hintgen.match.explain import explain, explain_text

    raw = as_in_rules(path)
    data = explain(hints, raw, question.producer, question.consumers, nodes)
    text = explain_text(data)
    _where_to_look(raw, data["reason"])
    result.write(data, text)


def write_rules(hints: HintFile, ran: Sequence[str], result: Result) -> None:
    """Write the rules to a file or the screen. ran: the command that they come from."""
    from tracehint.hintgen.hints.hintfile import to_json
    from tracehint.hintgen.match.explain import summary_text

    if not result.output:
        result.write(to_json(hints), summary_text(hints))
        return
    write_result(_dump(to_json(hints)), result.output, force=result.force)
    click.echo(summary_text(hints), nl=False, err=True)
    if result.output != "-" and (hints.rules or hints.plan):
        click.echo(f"Next: {_next_command(hints, ran, result.output)}", err=True)


def as_in_rules(path: str) -> bytes:
    """Return the path as in rules: relative to the working directory, without `.` and `..`."""
    full = os.path.abspath(path)  # noqa: PTH100 (links stay as given: the file need not be there)
    here = os.getcwd().rstrip("/") + "/"  # noqa: PTH109
    inside = full.startswith(here)
    return os.fsencode(full.removeprefix(here) if inside else full)


def _where_to_look(raw: bytes, reason: str) -> None:
    if raw.startswith(b"/") and reason == "no_rule":
        click.echo(
            "Rules name files relative to the data's directory: change to it, or give "
            "the name from there.",
            err=True,
        )


def _next_command(hints: HintFile, ran: Sequence[str], output: str) -> str:
    """Return a command that uses the hint file and replaces no existing file."""
    from tracehint.adapters.plan import build_plan
    from tracehint.app.stores import known_paths
    from tracehint.hintgen.text.textfile import unused_name

    file = shlex.quote(output)
    plan = build_plan(hints, known_paths(hints, None, None, None, None))
    if not any(target.hints for target in plan.targets):  # no file name is known before the run
        return f"tracehint run --hints {file} -- {format_for_reuse(ran)}"
    return f"tracehint emit {file} --store xattr -o {unused_name('hints.sh', '.data')}"


def _dump(data: Any) -> str:
    return json.dumps(data, indent=1) + "\n"


@dataclass(frozen=True, kw_only=True)
class SourceRuns:
    """The runs, and how they are read."""

    sources: tuple[str, ...]
    nodes: int | None
    cut: dict[str, Any]
    cluster: str | None = option(
        metavar="FILE",
        type=click.UNPROCESSED,
        help="Keep the rules that make the run no slower on this cluster, by simulation; add its "
        "plan.",
    )
    no_fallbacks: bool = option(is_flag=True, help="Only rules for recorded names.")
    backend: str
    master: str | None


@dataclass(frozen=True, kw_only=True)
class Bounds:
    """The conditions of a rule, as in `hintgen.learn.safety.Limits`."""

    min_paying: float = option(
        type=click.FloatRange(0, 1),
        default=0.5,
        help="Share of a rule's files for which the cost model must find a gain.",
    )
    min_bytes: int = option(
        type=click.IntRange(0), default=0, help="Smallest mean file size that is hinted."
    )
    min_confidence: float = option(
        type=click.FloatRange(0, 1), default=0.3, help="Least confidence of a rule."
    )
    node_capacity: int = option(
        type=click.IntRange(0),
        default=0,
        help="Bytes that a node can hold; a file or group may fill half. 0: no limit.",
    )
    replica_budget: float = option(
        type=click.FloatRange(0),
        default=2.0,
        help="Further copies, as a multiple of all hinted bytes. 0: no limit.",
    )
    call_ms: float = option(
        type=click.FloatRange(0),
        default=0.0,
        help="Time of a call that sets a hint: hints that save less are refused. 0: no limit.",
    )
    link_mbit: float = option(
        type=click.FloatRange(0, min_open=True),
        default=1000.0,
        help="With --call-ms: rate of a node's link.",
    )


@click.command()
@runs_or_last
@click.option("-o", "--output", type=click.Path(), help="Write the hint file (JSON).")
@click.option("--score", "other", type=click.Path(), help="Score the rules on this other run.")
@click.option(
    "--given",
    type=click.Choice(["auto", "graph", "names", "path"]),
    default="auto",
    show_default=True,
    help="With --score: information available before the run.",
)
@click.option("--explain", "path", help="Show which rule matches this path, and why.")
@click.option("--producer", help="With --explain: type of the task that writes the file.")
@click.option(
    "--consumer",
    "consumers",
    multiple=True,
    help="With --explain: type of a task that reads it (repeatable).",
)
@format_option
@nodes_option
@task_options
@backend_options
@click.option("--force", is_flag=True, help="Replace the output file.")
@gather_options(asked=SourceRuns, question=Inquiry, bounds=Bounds, result=Result)
def command(asked: SourceRuns, question: Inquiry, bounds: Bounds, result: Result) -> None:
    """Derive hint rules from BUNDLE... (recorded runs, or the JSON of analyze) for the next run.

    Without BUNDLE of the last run of the workflow here.

    Example: tracehint hints run.trace -o hints.json

    Example: tracehint hints small.trace --score large.trace --format json

    Example: tracehint hints hints.json --explain proj/p_tile_7.fits
    """
    prepare_for_analysis()
    output, sources = result.output, asked.sources
    refuse_own_input(Path(output) if output else None, [Path(source) for source in sources])
    if question.other is not None and question.path is not None:
        raise UsageError("--score and --explain cannot be combined", "Give one of them.")
    hints = _hint_file(sources) if len(sources) == 1 else None
    if hints and any(asked.cut.values()):
        raise UsageError(
            f"{sources[0]}: --split, --whole and --ranks do not apply to existing rules",
            "Give the trace bundle.",
        )
    if hints and question.other is not None:
        raise UsageError("--score needs the runs of the rules", "Give bundles, not a hint file.")
    analyses = [] if hints else _load(sources, asked)
    if question.other is not None:
        _score(analyses, asked, question, result)
        return
    hints = hints or _learn(analyses, asked, _limits(bounds))
    if asked.cluster is not None:
        hints = _plan_hints(analyses, hints, asked.cluster, asked.nodes)
    if analyses:
        hints = _with_gains(analyses[-1], hints, asked)
    if question.path is not None:
        explain_path(hints, question.path, question, asked.nodes, result)
        return
    ran = analyses[-1].run["command"] if analyses else []
    write_rules(hints, ran, result)


def _limits(bounds: Bounds) -> Limits:
    from tracehint.hintgen.learn.safety import Limits

    return Limits(
        min_paying=bounds.min_paying,
        min_file_bytes=bounds.min_bytes,
        min_confidence=bounds.min_confidence,
        node_bytes=bounds.node_capacity,
        replica_budget=bounds.replica_budget,
        call_ms=bounds.call_ms,
        link_mbit=bounds.link_mbit,
    )


def _learn(analyses: Sequence[Analysis], asked: SourceRuns, limits: Limits) -> HintFile:
    from tracehint.hintgen.learn.rules import LearnOptions, learn

    with stage("learning rules"):
        return learn(analyses, LearnOptions(asked.nodes, not asked.no_fallbacks, limits))


def _score(analyses: list[Analysis], asked: SourceRuns, question: Inquiry, result: Result) -> None:
    """Score the rules on the other run, which may be one of their sources."""
    from tracehint.hintgen.learn.rules import LearnOptions
    from tracehint.hintgen.learn.safety import NO_LIMITS

    other = str(question.other)
    here = dict(zip(asked.sources, analyses, strict=True))
    options = LearnOptions(asked.nodes, not asked.no_fallbacks, NO_LIMITS)
    run = here[other] if other in here else _load([other], asked)[0]
    with stage("learning and scoring rules"):
        data, text = score_on(run, analyses, options, question.given)
    result.write(data, text)


def _plan_hints(
    analyses: Sequence[Analysis], hints: HintFile, cluster: str, nodes: int | None
) -> HintFile:
    """Return the best rules for the cluster, with the run's plan; print the decision to stderr."""
    from tracehint.app.planning import try_decide

    if len(analyses) != 1 and isinstance(cluster, ConfiguredName):
        return hints  # the cluster of tracehint.toml: gains are simulated on it
    if len(analyses) != 1:
        raise UsageError(
            "--cluster plans one run", "Give one bundle, or use `tracehint plan --learned`."
        )
    decided, why = try_decide(analyses[0], hints, cluster, nodes)
    if why:
        click.echo(click.wrap_text(why, 78), err=True)
    return hints if decided is None else decided.hints


def _with_gains(run: Analysis, hints: HintFile, asked: SourceRuns) -> HintFile:
    """Return the rules with their simulated gains on the run."""
    from tracehint.app.user_cluster import where_of
    from tracehint.hintgen.summary.gain import Simulation
    from tracehint.hintgen.summary.rule_gains import with_gains

    where = where_of(asked.cluster, asked.nodes, run, asked.sources[-1])
    with stage("simulating"):
        return with_gains(hints, Simulation(run, where))


def _hint_file(sources: Sequence[str]) -> HintFile | None:
    """Return the first source as a hint file, or None if it is a run."""
    from tracehint.hintgen.hints.hintfile import is_hint_file, load

    path = Path(sources[0])
    return load(path) if path.is_file() and is_hint_file(path) else None


def _load(sources: Sequence[str], asked: SourceRuns) -> list[Analysis]:
    from tracehint.analyzer.model import Options
    from tracehint.schemas.kinds import instead

    for source in sources:
        if "://" not in source and not Path(source).exists():
            wanted = "hints" if source.endswith(".json") else "bundle"
            raise InputError(*instead(wanted, Path(source)))
    options = Options(nodes=asked.nodes, **asked.cut)
    backend = Backend(asked.backend, asked.master)
    return [backend.load(source, options).analysis for source in sources]
