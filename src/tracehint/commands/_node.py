"""The options of `record --node`; what they do is in _node_run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import click

from tracehint.commands._options import with_options
from tracehint.errors import UsageError


@dataclass(frozen=True)
class NodeOptions:
    """`--node` and what belongs to it."""

    node: bool
    start: bool
    stop: bool
    wait: float | None
    idle: float | None


_SECONDS = click.FloatRange(min=0)
node_options = with_options(
    click.option(
        "--node",
        is_flag=True,
        help="One recorder for all tasks on this node: join it, start it if there is "
        "none (eBPF). Without COMMAND: be it, in the foreground.",
    ),
    click.option("--start", is_flag=True, help="With --node: start it in the background."),
    click.option("--stop", is_flag=True, help="With --node: end it."),
    click.option(
        "--wait",
        type=_SECONDS,
        metavar="SECONDS",
        help="With --node: start none, wait so long for one.",
    ),
    click.option(
        "--idle",
        type=_SECONDS,
        metavar="SECONDS",
        help="With --node: end it when nothing was followed for so long. Default: 30 for "
        "one that a task starts, else never.",
    ),
)


def chosen_node(options: NodeOptions, command: tuple[str, ...], others: dict[str, Any]) -> bool:
    """Whether `--node` was given. Raises UsageError for what does not go together."""
    given = [
        f"--{name}"
        for name, value in (
            ("start", options.start),
            ("stop", options.stop),
            ("wait", options.wait is not None),
            ("idle", options.idle is not None),
        )
        if value
    ]
    if not options.node:
        if given:
            raise UsageError(f"{given[0]}: belongs to --node", "Give --node too.")
        return False
    wrong = next((name for name, value in others.items() if value), None)
    if wrong is not None:
        raise UsageError(f"--node and {wrong}: do not go together", "Leave one of them out.")
    if options.start + options.stop + bool(command) > 1:
        raise UsageError("--start, --stop and a command: only one of them", "Leave the others out.")
    if options.wait is not None and not command:
        raise UsageError("--wait: a command waits for the recorder", "Give a command.")
    return True
