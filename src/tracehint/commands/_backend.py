"""Who analyzes, for the commands that can leave it to Spark."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from tracehint.commands._options import F, Renamed, with_options
from tracehint.commands._stage_line import stages

if TYPE_CHECKING:
    from tracehint.analyzer.model import Options
    from tracehint.hintgen.inputs import Input


@dataclass(frozen=True)
class Backend:
    """This process or Spark, and the cluster."""

    backend: str
    master: str | None

    def load(self, source: str, options: Options) -> Input:
        """The run, analyzed there. Raises TracehintError."""
        from tracehint.hintgen.inputs import load_at, load_run

        if self.backend == "local" and self.master is None and "://" not in source:
            with stages() as seen:
                return load_run(source, options, tell=seen.tell)
        return load_at(source, options, self.backend, self.master)


def load(source: str, options: Options) -> Input:
    """The run, analyzed here; says on a terminal how far it is. Raises TracehintError."""
    return Backend("local", None).load(source, options)


class _BackendName(click.Choice[str]):
    """A backend, also by the name that it had."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The name of today."""
        from tracehint.analyzer.analyze import OLD_NAMES

        return super().convert(OLD_NAMES.get(value, value), param, ctx)


backend_options: Callable[[F], F] = with_options(
    click.option(
        "--backend",
        cls=Renamed,
        old="--engine",
        type=_BackendName(["local", "spark"]),
        default="local",
        show_default=True,
        help="Who computes: this process, or Spark. The result is the same.",
    ),
    click.option(
        "--master", metavar="URL", help="Spark's cluster (default: local[*], this machine's cores)."
    ),
)
