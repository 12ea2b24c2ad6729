"""Help of one screen: rarely needed options are listed by `--help-thresholds` only."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import click

WHOLE = "tracehint.whole_help"  # key in a context's meta: list all options


class FoldedCommand(click.Command):
    """A command whose `--help` leaves the options named in `rare` to `--help-thresholds`."""

    def __init__(self, *args: Any, rare: Collection[str] = (), **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.rare = rare
        self.params.append(_help_thresholds())

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The usual options; in the whole help the rare ones below them."""
        options = [p for p in self.get_params(ctx) if isinstance(p, click.Option)]
        records = [(p.name in self.rare, p.get_help_record(ctx)) for p in options]
        with formatter.section("Options"):
            formatter.write_dl([r for rare, r in records if r is not None and not rare])
        if ctx.meta.get(WHOLE):
            with formatter.section("Thresholds and rarely needed options"):
                formatter.write_dl([r for rare, r in records if r is not None and rare])


def _help_thresholds() -> click.Option:
    def show(ctx: click.Context, _param: click.Parameter, wanted: bool) -> None:
        if wanted and not ctx.resilient_parsing:
            ctx.meta[WHOLE] = True
            click.echo(ctx.get_help(), color=ctx.color)
            ctx.exit()

    return click.Option(
        ["--help-thresholds"],
        is_flag=True,
        is_eager=True,
        expose_value=False,
        callback=show,
        help="Show all options, thresholds of the patterns among them.",
    )
