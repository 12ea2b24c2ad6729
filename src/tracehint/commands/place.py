"""`tracehint place`: start a task on the node that holds most bytes of its inputs."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

from tracehint.collectors.run import become, runnable, working_directory
from tracehint.commands._recording import RunCommand
from tracehint.commands._stores import require_locator, store_options
from tracehint.errors import EXIT_OK, TracehintError, UsageError

if TYPE_CHECKING:
    from tracehint.adapters.place.choose import Choice, Known
    from tracehint.adapters.place.hosts import Host
    from tracehint.adapters.place.slots import Slots

CHECK_S = 5.0


class SplitCommand(RunCommand):
    """Everything after the first `--` is the command."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Keep the command apart from the inputs."""
        at = args.index("--") if "--" in args else len(args)
        ctx.meta["place.command"] = tuple(args[at + 1 :])
        ctx.meta["place.starts"] = "--" in args
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
@click.option("--format", "fmt", type=click.Choice(["text", "json"]), default="text")
@click.option("--quiet", is_flag=True, help="Say nothing, unless the task cannot go to its data.")
@click.pass_context
def command(
    ctx: click.Context,
    inputs: tuple[str, ...],
    hosts: Path,
    store: str | None,
    prefix: str | None,
    places: Path | None,
    policy: str,
    workflow: Path | None,
    task: int | None,
    parts: Path | None,
    part: int | None,
    wait: float,
    folder: Path | None,
    fmt: str,
    quiet: bool,
) -> int:
    """Start COMMAND on the node that holds most bytes of its INPUTs; without one, print the node.

    Where the store does not say, a node does not answer or the host file cannot be read, COMMAND
    runs on another node, or here, and the reason is said. A task of a plan goes to the node of its
    part; where that is full it waits as long as moving its inputs would take.

    Example: tracehint place --hosts hosts.toml --store moosefs a.dat b.dat -- ./merge a.dat b.dat

    Example: tracehint place --hosts hosts.toml --parts w.mf.tracehint/parts --task 7 -- ./merge

    Example: sbatch --nodelist=$(tracehint place --hosts hosts.toml --store moosefs a.dat) job.sh
    """
    from tracehint.adapters.place.away import Roll
    from tracehint.adapters.place.choose import Known, choose
    from tracehint.adapters.place.parts import Queue, choose_part

    argv: tuple[str, ...] = ctx.meta["place.command"]
    starts: bool = ctx.meta["place.starts"]
    if starts and not argv:
        raise UsageError("no command after --", "Leave -- away to print the node.")
    planned = part is not None or parts is not None
    if store is None and not planned:
        raise UsageError("no --store given", "Give the store that holds the inputs, or --parts.")
    try:
        nodes = _nodes(hosts)
        if planned:
            part, listed = _planned(parts, task, part)
            names = [*inputs, *listed]
        else:
            names = [*inputs, *_of_rule(workflow, task)]
        known = Known() if part is not None else _look(store, prefix, places, nodes, names)
    except TracehintError as error:
        if not starts:
            raise
        _say(f"runs here: {error.what}")
        become(runnable(argv))
    slots = _slots(hosts, folder)
    roll = Roll(slots.folder, _answers)
    if part is None:
        choice = choose(nodes, known, policy, slots.take, roll.answers)
    else:
        known.total_bytes = sum(map(_size, names))
        choice = choose_part(
            nodes,
            part,
            Queue(take=slots.take, free=slots.free, answers=roll.answers),
            input_bytes=known.total_bytes,
            steal=policy == "soft",
            longest_s=wait if starts else 0.0,
        )
        for line in roll.said:
            _say(line)
    if not starts:
        _print(choice, known, policy, fmt)
        return EXIT_OK
    if choice.fallback or not quiet:
        _say(f"{choice.host.name if choice.host else 'here'}: {choice.reason}")
    if slots.problem:
        _say(slots.problem)
    slots.keep(choice.host)
    return _start(choice, list(argv))


def _of_rule(workflow: Path | None, task: int | None) -> list[str]:
    """Inputs of a Makeflow rule."""
    if workflow is None and task is None:
        return []
    if workflow is None or task is None:
        raise UsageError("--workflow and --task belong together", "Give both, or neither.")
    from tracehint.adapters.engines.workflow import read_workflow

    tasks = read_workflow(workflow).tasks
    if task >= len(tasks):
        raise UsageError(f"{workflow} has no rule {task}", f"It has {len(tasks)}, from 0.")
    return [os.fsdecode(path) for path in tasks[task].sources]


def _nodes(path: Path) -> tuple[Host, ...]:
    from tracehint.adapters.place.hosts import read_hosts

    return read_hosts(path)


def _planned(
    parts: Path | None, task: int | None, part: int | None
) -> tuple[int | None, list[str]]:
    """Part and inputs of the task."""
    from tracehint.adapters.place.table import read_task

    if parts is None:
        return part, []
    if task is None:
        raise UsageError("--parts without --task", "Give the number of the task.")
    found = read_task(parts, task)
    return found.part if part is None else part, [os.fsdecode(path) for path in found.inputs]


def _size(path: str) -> int:
    try:
        return Path(path).stat().st_size
    except (OSError, ValueError):
        return 0


def _look(
    store: str | None,
    prefix: str | None,
    places: Path | None,
    nodes: tuple[Host, ...],
    names: list[str],
) -> Known:
    """Where the inputs lie; a store that cannot tell is an error."""
    from tracehint.adapters.place.choose import look

    return look(require_locator(store, prefix, places) if store else None, nodes, names)


def _slots(hosts: Path, folder: Path | None) -> Slots:
    from tracehint.adapters.place.slots import open_slots

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


def _print(choice: Choice, known: Known, policy: str, fmt: str) -> None:
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
        "schema": "tracehint.place/1", "host": choice.host.name if choice.host else None,
        "policy": policy, "reason": choice.reason, "fallback": choice.fallback,
        "total_bytes": known.total_bytes, "bytes": known.bytes, "inputs": rows,
        "not_asked": known.unasked,
        "start": start_words(choice.host, ["COMMAND"], str(Path.cwd())) if choice.host else [],
    }  # fmt: skip  # a table
    click.echo(json.dumps(data, indent=1))


def _start(choice: Choice, argv: list[str]) -> NoReturn:
    """Become the command that runs `argv` on the node; here where that program is missing."""
    from tracehint.adapters.place.hosts import start_words

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
