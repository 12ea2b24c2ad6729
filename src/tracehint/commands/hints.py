"""`tracehint hints`: rules for the files of the next run; their score; their explanation."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tracehint.commands._options import nodes_option
from tracehint.commands._output import refuse_own_input, write_result
from tracehint.commands._task_options import task_options
from tracehint.errors import InputError, UsageError
from tracehint.schemas.arrow import skip_pandas

if TYPE_CHECKING:
    from tracehint.analyzer.model import Analysis
    from tracehint.hintgen.hints.model import HintFile


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
    help="Plan for this cluster: rules that lose nowhere there by simulation, and the run's plan.",
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
@click.option("--min-confidence", type=click.FloatRange(0, 1), default=0.3, show_default=True)
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
    help="Of `tracehint calibrate`: the two as measured.",
)
@click.option("--no-fallbacks", is_flag=True, help="Only rules for the names that were seen.")
@click.option("--force", is_flag=True, help="Replace the output file.")
def command(
    sources: tuple[str, ...],
    output: str | None,
    other: str | None,
    given: str,
    path: str | None,
    producer: str | None,
    consumers: tuple[str, ...],
    fmt: str,
    nodes: int | None,
    cluster: str | None,
    cut: dict[str, Any],
    min_paying: float,
    min_bytes: int,
    min_confidence: float,
    node_capacity: int,
    replica_budget: float,
    call_ms: float,
    link_mbit: float,
    calibration: Path | None,
    no_fallbacks: bool,
    force: bool,
) -> None:
    """Derive hint rules from BUNDLE... (recorded runs, or the JSON of analyze) for the next run.

    Example: tracehint hints run.trace -o hints.json

    Example: tracehint hints small.trace --score large.trace --format json

    Example: tracehint hints hints.json --explain proj/p_tile_7.fits
    """
    skip_pandas()
    from tracehint.hintgen.hints.hintfile import to_json
    from tracehint.hintgen.learn.rules import LearnOptions, learn
    from tracehint.hintgen.learn.safety import NO_LIMITS, Limits
    from tracehint.hintgen.match.explain import explain, explain_text, summary_text

    refuse_own_input(Path(output) if output else None, [Path(source) for source in sources])
    if other is not None and path is not None:
        raise UsageError("--score and --explain together", "Give one of them.")
    if calibration is not None:
        from tracehint.hintgen.calibration import hint_cost

        call_ms, link_mbit = hint_cost(calibration)
    limits = Limits(
        min_paying, min_bytes, min_confidence, node_capacity, replica_budget, call_ms, link_mbit
    )
    hints = _hint_file(sources) if len(sources) == 1 else None
    if hints and any(cut.values()):
        raise UsageError(
            f"{sources[0]}: --split, --whole or --ranks with rules, which are made already",
            "Give the trace bundle.",
        )
    analyses = [] if hints else _load(sources, nodes, cut)
    if other is not None:
        if hints is not None:
            raise UsageError(
                "--score needs the runs that the rules come from", "Give bundles, not a hint file."
            )
        options = LearnOptions(nodes, not no_fallbacks, NO_LIMITS)
        _write_score(
            learn(analyses, options), analyses, other, nodes, given, fmt, output, force, cut
        )
        return
    hints = hints or learn(analyses, LearnOptions(nodes, not no_fallbacks, limits))
    if cluster is not None:
        hints = _planned(analyses, hints, cluster, nodes)
    if path is not None:
        raw = as_in_rules(path)
        data = explain(hints, raw, producer, consumers, nodes)
        result = _dump(data) if fmt == "json" else explain_text(data)
        _where_to_look(raw, data["reason"])
        write_result(result, output, force=force)
        return
    if output:
        write_result(_dump(to_json(hints)), output, force=force)
        click.echo(summary_text(hints), nl=False, err=True)
        _next(output)
        return
    write_result(_dump(to_json(hints)) if fmt == "json" else summary_text(hints), None)


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


def as_in_rules(path: str) -> bytes:
    """The path as rules name files: below the directory in which one is, without `.` and `..`."""
    full = os.path.abspath(path)  # noqa: PTH100 (links stay as given: the file need not be there)
    here = os.getcwd().rstrip("/") + "/"  # noqa: PTH109
    inside = full.startswith(here)
    return os.fsencode(full.removeprefix(here) if inside else full)


def _where_to_look(raw: bytes, reason: str) -> None:
    if raw.startswith(b"/") and reason == "no_rule":
        click.echo(
            "Rules name files as seen from the data's directory: go there, or give the name "
            "from there.",
            err=True,
        )


def _next(output: str) -> None:
    """What can be done with the hint file; never a command that would replace it."""
    if output == "-":
        return
    script = "hints.sh" if Path(output).name != "hints.sh" else "hints-script.sh"
    click.echo(f"Next: tracehint emit {shlex.quote(output)} --store xattr -o {script}", err=True)


def _dump(data: Any) -> str:
    return json.dumps(data, indent=1) + "\n"


def _hint_file(sources: Sequence[str]) -> HintFile | None:
    """The one source as a hint file, or None when it is a run."""
    from tracehint.hintgen.hints.hintfile import is_hint_file, load

    path = Path(sources[0])
    return load(path) if path.is_file() and is_hint_file(path) else None


def _load(sources: Sequence[str], nodes: int | None, cut: dict[str, Any]) -> list[Analysis]:
    from tracehint.analyzer.model import Options
    from tracehint.hintgen.inputs import load_run
    from tracehint.schemas.kinds import instead

    for source in sources:
        if not Path(source).exists():
            wanted = "hints" if source.endswith(".json") else "bundle"
            raise InputError(*instead(wanted, Path(source)))
    return [load_run(source, Options(nodes=nodes, **cut)).analysis for source in sources]


def _write_score(
    hints: HintFile,
    analyses: list[Analysis],
    other: str,
    nodes: int | None,
    given: str,
    fmt: str,
    output: str | None,
    force: bool,
    cut: dict[str, Any],
) -> None:
    from tracehint.hintgen.score.score import score, score_text

    data = score(hints, analyses, _load([other], nodes, cut)[0], given=given)
    write_result(_dump(data) if fmt == "json" else score_text(data), output, force=force)
