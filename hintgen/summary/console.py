"""Paragraphs, titles and tables on a terminal, in plain text or colour."""

from __future__ import annotations

import os
from typing import IO, TYPE_CHECKING, Any

from tracehint.analyzer.text import printable, shorten_head

if TYPE_CHECKING:
    from rich.console import Console

KEEP = "\N{NO-BREAK SPACE}"  # a space without a line break


def console_for(stream: IO[str]) -> Console:
    """Return a console without markup in names; colour only on terminals without NO_COLOR."""
    from rich.console import Console

    plain = bool(os.environ.get("NO_COLOR")) or not stream.isatty()
    return Console(
        file=stream,
        highlight=False,
        markup=False,
        emoji=False,
        no_color=plain,
        soft_wrap=False,
        force_terminal=False if plain else None,
    )


def name_of(text: str, width: int) -> str:
    """Return a name that is safe to print, shortened to `width`."""
    return shorten_head(printable(text), width)


def table_of(*columns: tuple[str, str]) -> Any:
    """Return a table without lines; columns: (name, "left" or "right")."""
    from rich.table import Table

    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="dim")
    for name, justify in columns:
        left = justify == "left"
        table.add_column(
            name,
            justify=justify,  # type: ignore[arg-type]
            no_wrap=True,
            overflow="ellipsis",
            ratio=None,
            min_width=8 if left else None,
        )
    return table


def heading(console: Console, text: str) -> None:
    """Print an empty line and a bold heading."""
    from rich.text import Text

    console.print()
    console.print(Text(text, "bold"))


def print_wrapped(console: Console, text: str, indent: str = "", style: str = "") -> None:
    """Print a wrapped, indented paragraph; long words (paths) are broken."""
    import textwrap

    from rich.text import Text

    for line in textwrap.wrap(text, max(20, console.width - 1 - len(indent))):
        console.print(Text(indent + line.replace(KEEP, " "), style))
