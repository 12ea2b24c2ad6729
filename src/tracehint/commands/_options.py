"""Options that several commands share come as one decorator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])


def with_options(*options: Callable[[F], F]) -> Callable[[F], F]:
    """A decorator that adds click options and arguments, in this order."""

    def decorate(function: F) -> F:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate


# Wherever a saving is computed or a hint's value formed.
nodes_option = click.option(
    "--nodes",
    type=click.IntRange(1, 1_000_000),
    default=None,
    help="Nodes of the cluster that savings are counted for; copies of a file never exceed them."
    " Default: the run's hosts, or its most tasks at one time.",
)
