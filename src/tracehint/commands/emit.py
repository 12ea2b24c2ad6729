"""`tracehint emit`: hints as a script for a store, or as annotations for an engine."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tracehint.adapters.engines.registry import EMITTERS
from tracehint.adapters.stores.base import Documented
from tracehint.app.output import refuse_existing, refuse_own_input, write_result
from tracehint.app.stores import make_plan, open_directory, report_gaps, require_store
from tracehint.commands._options import gather_options, option
from tracehint.commands._stores import hints_argument, plan_options, store_options
from tracehint.errors import UsageError
from tracehint.progress import prepare_for_analysis, stages
from tracehint.schemas.plain import is_own_folder
from tracehint.schemas.wording import plural

if TYPE_CHECKING:
    from tracehint.adapters.engines.emitters import EmitRequest
    from tracehint.adapters.stores.base import Store
    from tracehint.adapters.stores.script import Script
    from tracehint.hintgen.hints.model import HintFile


@dataclass(frozen=True, kw_only=True)
class Annotations:
    """Options of engine annotations, with the names of `EmitRequest`."""

    local_dir: str = option(
        default="",
        show_default=False,
        help="Node-local directory (default: Swift/K /dev/shm, Nextflow the node's "
        "own; Slurm keeps copies there).",
    )
    shared_dir: str = option(
        default="", show_default=False, help="Directory shared by all nodes (Swift/K)."
    )
    locations: Path | None = option(
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        help="JSON of `tracehint locate` (Swift/T).",
    )
    hosts: Path | None = option(
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        help="Host file: the nodes that a plan's parts get, in its order (docs: start where the "
        "data is).",
    )
    temporary: bool = option(
        is_flag=True, help="Let Snakemake or Pegasus delete files that hints call temporary."
    )
    precreate: bool = option(
        is_flag=True,
        help="Let Makeflow's rules create their outputs, empty and tagged, before their command.",
    )


@dataclass(frozen=True, kw_only=True)
class Goal:
    """The store or engine of the hints, and the output."""

    source: Path | None
    store: str | None
    prefix: str | None
    places: Path | None
    engine: str | None
    output: Path | None = option(
        "-o",
        "--output",
        type=click.Path(path_type=Path),
        help="Script or annotation file; files it needs are written beside it.",
    )
    directory: Path | None = option(
        "--dir", type=click.Path(path_type=Path), help="Directory whose files are matched too."
    )
    allow_trusted: bool = option(
        is_flag=True, help="Allow attributes of the name space trusted, which only root sets."
    )
    force: bool

    def open_store(self, name: str | None) -> Store:
        """The store of that name, as --prefix and --map have it."""
        return require_store(name, self.prefix, self.places)

    @property
    def file(self) -> Path | None:
        """The file to write; None: standard output."""
        return None if str(self.output) == "-" else self.output


if TYPE_CHECKING:
    _Choice = click.Choice[str]
else:
    _Choice = click.Choice  # not generic before click 8.2


class EngineName(_Choice):
    """An engine with an emitter; None for one of tracehint.toml that has no emitter."""

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the name, or None."""
        name = param.name if param is not None else None
        source = ctx.get_parameter_source(name) if ctx is not None and name else None
        if source is click.core.ParameterSource.DEFAULT_MAP and value not in self.choices:
            return None
        return super().convert(value, param, ctx)


@click.command()
@hints_argument
@click.argument(
    "source", required=False, type=click.Path(dir_okay=False, path_type=Path), metavar="[WORKFLOW]"
)
@store_options(required=False)
@click.option(
    "--workflow-engine",
    "engine",
    type=EngineName(tuple(EMITTERS)),
    help="Write annotations for this engine.",
)
@plan_options
@click.option("--force", is_flag=True, help="Replace existing output files.")
@gather_options(goal=Goal, annotations=Annotations)
def command(hints: Path, goal: Goal, annotations: Annotations, **which: Any) -> None:
    """Write HINTS as a script for a store, or as annotations for a workflow engine.

    With --store, the result is a shell script to review and run in the data's directory; with -o
    FILE its table of names and values is FILE.data. With --workflow-engine makeflow, WORKFLOW is
    the Makeflow file; the result is the same workflow, tagging each rule's files before it runs. A
    plan in HINTS becomes each engine's words for where a task runs; slurm, parsl, dask and json
    need one.

    Example: tracehint emit hints.json --store xattr -o hints.sh

    Example: tracehint emit plan.json --workflow-engine slurm w.mf --hosts hosts.toml -o jobs.sh
    """
    prepare_for_analysis()
    from tracehint.hintgen.hints.hintfile import load

    if _is_typed("store") and not _is_typed("engine") and goal.source is None:
        goal = replace(goal, engine=None)  # the engine of tracehint.toml; the store was typed
    which["workflow"] = which["workflow"] or goal.source
    if goal.store is None and goal.engine is None:
        raise UsageError(
            "neither --store nor --workflow-engine given",
            "For example: tracehint emit H.json --store xattr -o hints.sh",
        )
    loaded = load(hints)
    refuse_own_input(goal.output, [hints, which["workflow"]])
    if goal.engine is not None:
        _engine(loaded, _request(goal.engine, goal, annotations, which), force=goal.force)
        return
    chosen = goal.open_store(goal.store)
    if isinstance(chosen, Documented):
        _document(loaded, chosen, goal, which)
        return
    _write_script(_script(loaded, chosen, goal, which), goal)


def _is_typed(parameter: str) -> bool:
    """Whether the option is on the command line, and not from tracehint.toml."""
    source = click.get_current_context().get_parameter_source(parameter)
    return source is click.core.ParameterSource.COMMANDLINE


def _request(
    engine: str, goal: Goal, annotations: Annotations, which: dict[str, Any]
) -> EmitRequest:
    from tracehint.adapters.engines.emitters import EmitRequest

    return EmitRequest(
        engine=engine,
        workflow=which["workflow"],
        store=goal.open_store(goal.store or "xattr"),
        output=goal.file,
        nodes=which["nodes"],
        run=which["like"],
        allow_trusted=goal.allow_trusted,
        **asdict(annotations),
    )


def _script(hints: HintFile, chosen: Store, goal: Goal, which: dict[str, Any]) -> Script:
    from tracehint.adapters.apply.applier import check_keys
    from tracehint.adapters.stores.call_script import make_call_script
    from tracehint.adapters.stores.commands import CommandStore
    from tracehint.adapters.stores.script import make_script

    with stages() as seen:
        seen.tell("matching names", 0, 0, "")
        with _open_matched(goal.directory) as root_fd:
            plan = make_plan(hints, root_fd=root_fd, **which)
        seen.tell("writing settings", 0, 0, "")
        check_keys(chosen, plan.targets, allow_trusted=goal.allow_trusted)
        inside = goal.file is None
        if isinstance(chosen, CommandStore):
            return make_call_script(hints, plan, chosen, inside=inside)
        return make_script(hints, plan, chosen, inside=inside)


def _write_script(script: Script, goal: Goal) -> None:
    """Write the script and its table; print how to run it."""
    report_gaps(script.gaps)
    if script.skipped:
        click.echo(
            f"{plural(script.skipped, 'setting')} left out: the name is too long; use apply",
            err=True,
        )
    output = goal.file
    if output is None:
        write_result(script.text, None)
        return
    write_result(script.table, f"{output}.data", force=goal.force)
    write_result(script.text, str(output), force=goal.force, mode=0o777)
    click.echo(
        f"{plural(script.records, 'setting')}. Review {output} and {output}.data, then run: "
        f"sh {output} --dry-run DIRECTORY",
        err=True,
    )


def _document(hints: HintFile, chosen: Documented, goal: Goal, which: dict[str, Any]) -> None:
    with _open_matched(goal.directory) as root_fd:
        plan = make_plan(hints, root_fd=root_fd, **which)
    made = chosen.document(hints, plan)
    report_gaps(made.gaps)
    write_result(made.text, str(goal.output) if goal.output else None, force=goal.force)
    click.echo(f"{plural(made.records, 'record')}: review before use", err=True)


@contextmanager
def _open_matched(directory: Path | None) -> Iterator[int | None]:
    """Yield a descriptor of the directory whose files are matched too, or None."""
    if directory is None:
        yield None
        return
    with open_directory(directory) as root:
        yield root.fd


def _refuse_foreign(folder: Path) -> None:
    """Raise UsageError for another user's folder: the workflow runs its files."""
    if not is_own_folder(folder):
        raise UsageError(f"{folder}: belongs to another user, or is a link", "Choose another -o.")


def _engine(hints: HintFile, request: EmitRequest, *, force: bool) -> None:
    from tracehint.adapters.engines.emitters import emit

    result = emit(hints, request)
    report_gaps(result.gaps)
    for target in filter(None, result.files):
        refuse_existing(target, force=force)
    for path, data in result.files.items():
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
        if path in result.executable:
            _refuse_foreign(path.parent)
        mode = 0o777 if path in result.executable else 0o666
        write_result(data, str(path) if path else None, force=force, mode=mode)
    for line in result.remarks:
        click.echo(line, err=True)
