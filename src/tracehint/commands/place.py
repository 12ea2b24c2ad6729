"""`tracehint place`: start a task on the node that holds most bytes of its inputs."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

from tracehint.app.stores import require_locator
from tracehint.collectors.run import become, runnable, working_directory
from tracehint.commands._options import format_option, gather_options
from tracehint.commands._recording import RunCommand
from tracehint.commands._stores import store_options
from tracehint.errors import EXIT_OK, TracehintError, UsageError

if TYPE_CHECKING:
    from tracehint.adapters.place.choose import InputPlaces, NodeChoice, Slots
    from tracehint.adapters.place.hosts import Host


@dataclass(frozen=True)
class StartedTask:
    """The task that is started: its inputs, and where a workflow or a plan declares it."""

    inputs: tuple[str, ...]
    workflow: Path | None
    task: int | None
    parts: Path | None
    part: int | None

    @property
    def planned(self) -> bool:
        """Whether a plan names its node."""
        return self.part is not None or self.parts is not None


@dataclass(frozen=True)
class NodesAndStore:
    """The nodes, and the store that they share."""

    hosts: Path
    folder: Path | None
    store: str | None
    prefix: str | None
    places: Path | None


@dataclass(frozen=True)
class PlaceFacts:
    """What is known before a node is chosen."""

    nodes: tuple[Host, ...]
    names: list[str]
    known: InputPlaces
    part: int | None


def gather_facts(task: StartedTask, cluster: NodesAndStore) -> PlaceFacts:
    """The nodes, the inputs and their locations."""
    from tracehint.adapters.place.choose import InputPlaces

    nodes, part = _nodes(cluster.hosts), None
    if task.planned:
        part, listed = _planned_part(task.parts, task.task, task.part)
    else:
        listed = _of_rule(task.workflow, task.task)
    names = [*task.inputs, *listed]
    return PlaceFacts(
        nodes, names, InputPlaces() if part is not None else _locate(cluster, nodes, names), part
    )


def _of_rule(workflow: Path | None, task: int | None) -> list[str]:
    """Inputs of a Makeflow rule."""
    if workflow is None and task is None:
        return []
    if workflow is None or task is None:
        raise UsageError("--workflow and --task belong together", "Give both, or neither.")
    from tracehint.adapters.engines.makeflow.workflow import read_workflow

    tasks = read_workflow(workflow).tasks
    if task >= len(tasks):
        raise UsageError(f"{workflow} has no rule {task}", f"It has {len(tasks)}, from 0.")
    return [os.fsdecode(path) for path in tasks[task].sources]


def _nodes(path: Path) -> tuple[Host, ...]:
    from tracehint.adapters.place.hosts import read_hosts

    return read_hosts(path)


def _planned_part(
    parts: Path | None, task: int | None, part: int | None
) -> tuple[int | None, list[str]]:
    """Part and inputs of the task."""
    from tracehint.adapters.place.parts import read_task

    if parts is None:
        return part, []
    if task is None:
        raise UsageError("--parts without --task", "Give the number of the task.")
    found = read_task(parts, task)
    return found.part if part is None else part, [os.fsdecode(path) for path in found.inputs]


def size_of(path: str) -> int:
    """Return the size of the file in bytes; 0 if it is not accessible."""
    try:
        return Path(path).stat().st_size
    except (OSError, ValueError):
        return 0


def _locate(cluster: NodesAndStore, nodes: Sequence[Host], names: list[str]) -> InputPlaces:
    """Query the inputs' locations; a store that does not report them is an error."""
    from tracehint.adapters.place.choose import look

    store = cluster.store
    locator = require_locator(store, cluster.prefix, cluster.places) if store else None
    return look(locator, tuple(nodes), names)


CHECK_S = 5.0


class SplitCommand(RunCommand):
    """Everything after the first `--` is the command."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Keep the command apart from the inputs."""
        at = args.index("--") if "--" in args else len(args)
        ctx.meta["place.command"] = tuple(args[at + 1 :])
        if "--" in args and not args[at + 1 :]:
            raise UsageError("no command after --", "Omit -- to print the node.")
        return super().parse_args(ctx, args[:at])


@click.command(cls=SplitCommand)
@click.argument("inputs", nargs=-1, metavar="[INPUT]... [-- COMMAND...]")
@click.option(
    "--hosts",
    required=True,
    type=click.Path(path_type=Path),
    help="Nodes that tasks may run on (TOML; docs: start where the data is).",
)
@store_options(required=False)
@click.option(
    "--policy",
    type=click.Choice(["soft", "hard"]),
    default="soft",
    show_default=True,
    help="soft: another node when the best one has no free slot; hard: never.",
)
@click.option(
    "--workflow",
    type=click.Path(path_type=Path),
    help="Makeflow file whose rule --task has the inputs.",
)
@click.option("--task", type=click.IntRange(0), help="Number of the rule, as in Makeflow's %%.")
@click.option(
    "--parts",
    type=click.Path(path_type=Path),
    help="Table of a planned workflow (of `emit`): --task runs on the node of its part.",
)
@click.option("--part", type=click.IntRange(0), help="Part of a plan that the task belongs to.")
@click.option(
    "--wait",
    type=click.FloatRange(0, 1e6),
    default=600.0,
    show_default=True,
    help="With a part: longest wait for a slot, in seconds.",
)
@click.option(
    "--slots",
    "folder",
    type=click.Path(path_type=Path),
    help="Directory of the slots' locks (default: HOSTS with .slots added).",
)
@format_option
@click.option("--quiet", is_flag=True, help="Print nothing, unless the task cannot go to its data.")
@click.pass_context
@gather_options(task=StartedTask, cluster=NodesAndStore)
def command(
    ctx: click.Context,
    task: StartedTask,
    cluster: NodesAndStore,
    policy: str,
    wait: float,
    fmt: str,
    quiet: bool,
) -> int:
    """Start COMMAND on the node that holds most bytes of its INPUTs; without one, print the node.

    Where the store reports no location, a node does not answer or the host file cannot be read,
    COMMAND runs on another node, or here, and the reason is printed. A task of a plan goes to the
    node of its part; where that is full it waits as long as moving its inputs would take.

    Example: tracehint place --hosts hosts.toml --store moosefs a.dat b.dat -- ./merge a.dat b.dat

    Example: tracehint place --hosts hosts.toml --parts w.mf.tracehint/parts --task 7 -- ./merge

    Example: sbatch --nodelist=$(tracehint place --hosts hosts.toml --store moosefs a.dat) job.sh
    """
    argv: tuple[str, ...] = ctx.meta["place.command"]
    if cluster.store is None and not task.planned:
        raise UsageError("no --store given", "Give the store that holds the inputs, or --parts.")
    try:
        found = gather_facts(task, cluster)
    except TracehintError as error:
        if not argv:
            raise
        _say(f"runs here: {error.what}")
        become(runnable(argv))
    slots = _slots(cluster.hosts, cluster.folder)
    choice = _choice(found, slots, policy, wait if argv else 0.0)
    if not argv:
        _print(choice, found.known, policy, fmt)
        return EXIT_OK
    if choice.fallback or not quiet:
        _say(f"{choice.host.name if choice.host else 'here'}: {choice.reason}")
    return _start(choice, slots, list(argv))


def _choice(found: PlaceFacts, slots: Slots, policy: str, longest_s: float) -> NodeChoice:
    """Choose the node for the task; print the obstacles of a task of a plan."""
    from tracehint.adapters.place.choose import Roll, choose
    from tracehint.adapters.place.parts import Queue, choose_part

    roll = Roll(slots.folder, _answers)
    if found.part is None:
        return choose(found.nodes, found.known, policy, slots.take, roll.answers)
    found.known.total_bytes = sum(map(size_of, found.names))
    choice = choose_part(
        found.nodes,
        found.part,
        Queue(take=slots.take, free=slots.free, answers=roll.answers),
        input_bytes=found.known.total_bytes,
        steal=policy == "soft",
        longest_s=longest_s,
    )
    for line in roll.messages:
        _say(line)
    return choice


def _slots(hosts: Path, folder: Path | None) -> Slots:
    from tracehint.adapters.place.choose import open_slots

    return open_slots(folder or hosts.with_name(f"{hosts.name}.slots"))


def _answers(host: Host) -> bool:
    """Whether the node passes the check of the host file."""
    if not host.check:
        return True
    words = [word.replace("{host}", host.name) for word in host.check]
    try:
        done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, timeout=CHECK_S)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


def _print(choice: NodeChoice, known: InputPlaces, policy: str, fmt: str) -> None:
    from tracehint.adapters.place.hosts import start_words
    from tracehint.hintgen.hints.pathtext import to_text

    if fmt == "text":
        click.echo(choice.host.name if choice.host else "localhost")
        _say(choice.reason)
        return
    rows: list[dict[str, Any]] = [
        {
            "path": to_text(os.fsencode(path)),
            "nodes": list(known.nodes.get(path, ())),
            "problem": known.unknown.get(path, ""),
        }
        for path in dict.fromkeys([*known.nodes, *known.unknown])
    ]
    data = {
        "schema": "tracehint.place/1",
        "host": choice.host.name if choice.host else None,
        "policy": policy,
        "reason": choice.reason,
        "fallback": choice.fallback,
        "total_bytes": known.total_bytes,
        "bytes": known.bytes,
        "inputs": rows,
        "not_asked": known.unasked,
        "start": start_words(choice.host, ["COMMAND"], str(Path.cwd())) if choice.host else [],
    }
    click.echo(json.dumps(data, indent=1))


def _start(choice: NodeChoice, slots: Slots, argv: list[str]) -> NoReturn:
    """Exec the command that runs `argv` on the node, or `argv` here if that one is missing."""
    from tracehint.adapters.place.hosts import start_words

    if slots.problem:
        _say(slots.problem)
    slots.keep(choice.host)
    try:
        words = start_words(choice.host, argv, str(working_directory())) if choice.host else argv
        if words != argv:
            become(words)
    except TracehintError as error:
        _say(f"runs here: {error.what}")
    become(runnable(argv))


def _say(text: str) -> None:
    from tracehint.hintgen.text.escape import text as visible

    click.echo(f"tracehint place: {visible(text)}", err=True)
