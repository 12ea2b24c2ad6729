"""`tracehint hints`: rules for the files of the next run; their score; their explanation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tracehint.commands._backend import Backend, backend_options
from tracehint.commands._hint_answers import Inquiry, Result, explain_path, score_on, write_rules
from tracehint.commands._memory import for_a_run
from tracehint.commands._options import gathered, nodes_option
from tracehint.commands._output import refuse_own_input
from tracehint.commands._stage_line import stage
from tracehint.commands._task_options import task_options
from tracehint.errors import InputError, UsageError

if TYPE_CHECKING:
    from tracehint.analyzer.model import Analysis
    from tracehint.hintgen.hints.model import HintFile
    from tracehint.hintgen.learn.safety import Limits


@dataclass(frozen=True)
class SourceRuns:
    """The runs, and how they are read."""

    sources: tuple[str, ...]
    nodes: int | None
    cut: dict[str, Any]
    cluster: str | None
    no_fallbacks: bool
    backend: str
    master: str | None


@dataclass(frozen=True)
class Bounds:
    """What a rule must bring, as `hintgen.learn.safety.Limits` has it."""

    min_paying: float
    min_bytes: int
    min_confidence: float
    node_capacity: int
    replica_budget: float
    call_ms: float
    link_mbit: float
    calibration: Path | None


@click.command()
@click.argument("sources", nargs=-1, required=True, type=click.Path(), metavar="BUNDLE...")
@click.option("-o", "--output", type=click.Path(), help="Write the hint file (JSON).")
@click.option("--score", "other", type=click.Path(), help="Score the rules on this other run.")
@click.option(
    "--given",
    type=click.Choice(["auto", "graph", "names", "path"]),
    default="auto",
    show_default=True,
    help="With --score: what the rules may know before the run.",
)
@click.option("--explain", "path", help="Tell which rule fires for this path, and why.")
@click.option("--producer", help="With --explain: type of the task that writes the file.")
@click.option(
    "--consumer",
    "consumers",
    multiple=True,
    help="With --explain: type of a task that reads it (repeatable).",
)
@click.option(
    "--format", "fmt", type=click.Choice(["text", "json"]), default="text", show_default=True
)
@nodes_option
@click.option(
    "--cluster",
    metavar="FILE",
    help="Keep the rules that make the run no slower on this cluster, by simulation; add its plan.",
)
@task_options
@click.option(
    "--min-paying",
    type=click.FloatRange(0, 1),
    default=0.5,
    show_default=True,
    help="Share of a rule's files for which the cost model must find a gain.",
)
@click.option(
    "--min-bytes",
    type=click.IntRange(0),
    default=0,
    show_default=True,
    help="Smallest mean file size that is hinted.",
)
@click.option(
    "--min-confidence",
    type=click.FloatRange(0, 1),
    default=0.3,
    show_default=True,
    help="Least confidence of a rule.",
)
@click.option(
    "--node-capacity",
    type=click.IntRange(0),
    default=0,
    show_default=True,
    help="Bytes that a node can hold; a file or group may fill half. 0: no limit.",
)
@click.option(
    "--replica-budget",
    type=click.FloatRange(0),
    default=2.0,
    show_default=True,
    help="Further copies, as a multiple of all hinted bytes. 0: no limit.",
)
@click.option(
    "--call-ms",
    type=click.FloatRange(0),
    default=0.0,
    show_default=True,
    help="Time of a call that sets a hint: what saves less is refused. 0: no limit.",
)
@click.option(
    "--link-mbit",
    type=click.FloatRange(0, min_open=True),
    default=1000.0,
    show_default=True,
    help="With --call-ms: rate of a node's link.",
)
@click.option(
    "--calibration",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Result of `tracehint calibrate`: --call-ms and --link-mbit as measured.",
)
@backend_options
@click.option("--no-fallbacks", is_flag=True, help="Only rules for the names that were seen.")
@click.option("--force", is_flag=True, help="Replace the output file.")
@gathered(asked=SourceRuns, question=Inquiry, bounds=Bounds, result=Result)
def command(asked: SourceRuns, question: Inquiry, bounds: Bounds, result: Result) -> None:
    """Derive hint rules from BUNDLE... (recorded runs, or the JSON of analyze) for the next run.

    Example: tracehint hints run.trace -o hints.json

    Example: tracehint hints small.trace --score large.trace --format json

    Example: tracehint hints hints.json --explain proj/p_tile_7.fits
    """
    for_a_run()
    output, sources = result.output, asked.sources
    refuse_own_input(Path(output) if output else None, [Path(source) for source in sources])
    if question.other is not None and question.path is not None:
        raise UsageError("--score and --explain together", "Give one of them.")
    hints = _hint_file(sources) if len(sources) == 1 else None
    if hints and any(asked.cut.values()):
        raise UsageError(
            f"{sources[0]}: --split, --whole or --ranks with rules, which are made already",
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
        hints = _planned(analyses, hints, asked.cluster, asked.nodes)
    if question.path is not None:
        explain_path(hints, question.path, question, asked.nodes, result)
        return
    write_rules(hints, result)


def _limits(bounds: Bounds) -> Limits:
    from tracehint.hintgen.learn.safety import Limits

    call_ms, link_mbit = bounds.call_ms, bounds.link_mbit
    if bounds.calibration is not None:
        from tracehint.hintgen.calibration import hint_cost

        call_ms, link_mbit = hint_cost(bounds.calibration)
    return Limits(
        min_paying=bounds.min_paying,
        min_file_bytes=bounds.min_bytes,
        min_confidence=bounds.min_confidence,
        node_bytes=bounds.node_capacity,
        replica_budget=bounds.replica_budget,
        call_ms=call_ms,
        link_mbit=link_mbit,
    )


def _learn(analyses: Sequence[Analysis], asked: SourceRuns, limits: Limits) -> HintFile:
    from tracehint.hintgen.learn.rules import LearnOptions, learn

    with stage("learning rules"):
        return learn(analyses, LearnOptions(asked.nodes, not asked.no_fallbacks, limits))


def _score(analyses: list[Analysis], asked: SourceRuns, question: Inquiry, result: Result) -> None:
    """The rules on the other run, which may be one of those that they come from."""
    from tracehint.hintgen.learn.rules import LearnOptions
    from tracehint.hintgen.learn.safety import NO_LIMITS

    other = str(question.other)
    here = dict(zip(asked.sources, analyses, strict=True))
    options = LearnOptions(asked.nodes, not asked.no_fallbacks, NO_LIMITS)
    run = here[other] if other in here else _load([other], asked)[0]
    with stage("learning and scoring rules"):
        data, text = score_on(run, analyses, options, question.given)
    result.write(data, text)


def _planned(
    analyses: Sequence[Analysis], hints: HintFile, cluster: str, nodes: int | None
) -> HintFile:
    """The rules that win on the cluster, with the plan of the run; the decision goes to stderr."""
    from tracehint.commands._planning import decided_or_why

    if len(analyses) != 1:
        raise UsageError(
            "--cluster plans one run", "Give one bundle, or use `tracehint plan --learned`."
        )
    decided, said = decided_or_why(analyses[0], hints, cluster, nodes)
    if said:
        click.echo(click.wrap_text(said, 78), err=True)
    return hints if decided is None else decided.hints


def _hint_file(sources: Sequence[str]) -> HintFile | None:
    """The one source as a hint file, or None when it is a run."""
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
