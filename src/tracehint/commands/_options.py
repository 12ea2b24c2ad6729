"""Options that several commands share come as one decorator; many of one command as a record."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields
from functools import wraps
from typing import Any, TypeVar, cast

import click

F = TypeVar("F", bound=Callable[..., Any])


def with_options(*options: Callable[[F], F]) -> Callable[[F], F]:
    """A decorator that adds click options and arguments, in this order."""

    def decorate(function: F) -> F:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate


class Renamed(click.Option):
    """An option that scripts may still call by its `old` name, which no help shows."""

    def __init__(self, decls: Sequence[str], *, old: str, **rest: Any) -> None:
        super().__init__([*decls, old], **rest)
        self.old = old

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        """The name of today only."""
        every = self.opts
        self.opts = [name for name in every if name != self.old]
        try:
            return super().get_help_record(ctx)
        finally:
            self.opts = every


def gathered(**kinds: type[Any]) -> Callable[[F], F]:
    """Of `name=DATACLASS`: options named like its fields reach the command as one value `name`.

    It stands directly above the command, below the options.
    """

    def decorate(function: F) -> F:
        @wraps(function)
        def command(*args: Any, **values: Any) -> Any:
            for name, kind in kinds.items():
                values[name] = kind(**{f.name: values.pop(f.name) for f in fields(kind)})
            return function(*args, **values)

        return cast(F, command)

    return decorate


def result_options(*formats: str) -> Callable[[F], F]:
    """--format (as `fmt`), the first is the default; -o and --force of the result."""
    return with_options(
        click.option(
            "--format", "fmt", type=click.Choice(formats), default=formats[0], show_default=True
        ),
        click.option("-o", "--output", help="Write to a file instead of stdout."),
        click.option("--force", is_flag=True, help="Replace the output file."),
    )


# Two recorded runs of one workflow.
runs_before_and_after = with_options(
    click.argument("before", type=click.Path()), click.argument("after", type=click.Path())
)

# The same, or none: then those of the project.
last_runs_or_two = with_options(
    click.argument("before", type=click.Path(), required=False),
    click.argument("after", type=click.Path(), required=False),
)

placement_option = click.option(
    "--default-placement",
    type=click.Choice(["striped", "one-node", "local"]),
    default="striped",
    show_default=True,
    help="What the store does without hints.",
)

seed_option = click.option(
    "--seed",
    type=click.IntRange(0, 1 << 20),
    default=1,
    show_default=True,
    help="Start of the random numbers: the same seed, the same result.",
)

# Wherever a saving is computed or a hint's value formed.
nodes_option = click.option(
    "--nodes",
    type=click.IntRange(1, 1_000_000),
    default=None,
    help="Nodes of the cluster that savings are counted for; copies of a file never exceed them."
    " Default: the run's hosts, or its most tasks at one time.",
)
