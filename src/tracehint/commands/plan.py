"""`tracehint plan`: the placement strategy with the shortest predicted makespan, and its plan."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tracehint.app.output import refuse_existing, refuse_own_input, write_result
from tracehint.app.planning import (
    DEFAULT_CLUSTER,
    LARGE,
    Loaded,
    cluster_for,
    hint_file,
    load_workload,
)
from tracehint.app.user_cluster import users_own
from tracehint.commands._options import gather_options, option, seed_option, workload_options
from tracehint.schemas.arrow import skip_pandas

if TYPE_CHECKING:
    from tracehint.hintgen.hints.model import HintFile
    from tracehint.hintgen.plan.model import Planning


@dataclass(frozen=True, kw_only=True)
class PlanRequest:
    """What is planned, and for which cluster."""

    workflow: Path
    cluster: str | None = option(
        metavar="FILE",
        type=click.UNPROCESSED,
        help=f"A cluster file, or a built-in model by name (default: {DEFAULT_CLUSTER}).",
    )
    nodes: int | None = option(
        type=click.IntRange(1, 10_000), help="Nodes, instead of the cluster's."
    )
    learned: tuple[Path, ...]
    scale_bytes: float
    scale_seconds: float
    stage_inputs: bool = option(
        is_flag=True, help="Inputs are brought to the store for this run: hints may place them too."
    )
    seed: int


@click.command()
@click.argument("workflow", type=click.Path(path_type=Path), metavar="WORKFLOW")
@workload_options
@seed_option
@click.option(
    "--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True
)
@click.option("-o", "--output", help="Write a hint file: rules, and the plan.")
@click.option("--force", is_flag=True, help="Replace an existing output.")
@gather_options(asked=PlanRequest)
def command(asked: PlanRequest, form: str, output: str | None, force: bool) -> None:
    """Find the placement strategy with the shortest predicted makespan, by simulation.

    WORKFLOW is an engine's graph that has not run yet (Makeflow, Snakemake, Nextflow, CWL, Pegasus,
    WfFormat), a trace bundle, or the JSON of analyze. What loses to a simpler strategy is refused.

    Example: tracehint plan run.trace --cluster mine.toml

    Example: tracehint plan next.makeflow --learned run.trace --nodes 20 -o hints.json
    """
    skip_pandas()
    from tracehint.app.plan_output import text
    from tracehint.hintgen.hints.hintfile import to_json as hints_json
    from tracehint.hintgen.plan.result import to_json

    if output not in (None, "-"):
        refuse_own_input(Path(str(output)), [asked.workflow, *asked.learned])
        refuse_existing(Path(str(output)), force=force)
    planning = _planning(asked)
    data = to_json(planning)
    if output is not None:
        file, more = hint_file(planning)
        notes = [note for note in more if note not in data["assumptions"]]
        data["assumptions"] = [*data["assumptions"], *notes]
        write_result(json.dumps(hints_json(file), indent=1) + "\n", output, force=force)
        if output == "-":
            return
    write_result(
        json.dumps(data, indent=1) + "\n"
        if form == "json"
        else text(data, output, own=users_own(asked.cluster)),
        None,
    )


def _planning(asked: PlanRequest) -> Planning:
    """The strategies that were simulated, and the one that won."""
    from tracehint.hintgen.plan.model import Problem
    from tracehint.hintgen.plan.planner import plan

    loaded = load_workload(asked.workflow, asked.learned, asked.scale_bytes, asked.scale_seconds)
    where, notes = cluster_for(asked.cluster, asked.nodes, loaded.analysis)
    rules, more = _rules(loaded, where.count)
    problem = Problem(loaded.analysis, loaded.work, where, rules, asked.stage_inputs, asked.seed)
    return replace(plan(problem), notes=(*notes, *more))


def _rules(loaded: Loaded, nodes: int) -> tuple[HintFile, list[str]]:
    """Rules of the runs that were learned from, else of the workflow itself."""
    from tracehint.hintgen.hints.model import HintFile
    from tracehint.hintgen.learn.rules import LearnOptions, learn
    from tracehint.hintgen.plan.drafts import MAX_FILES

    if not loaded.runs and loaded.work.files > MAX_FILES:
        return HintFile((), {"nodes": nodes, "nodes_given": True}, ()), [LARGE]
    return learn(loaded.runs or [loaded.analysis], LearnOptions(nodes=nodes)), []
