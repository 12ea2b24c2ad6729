"""Write docs/reference/commands.md from the commands' own help; `--check` only compares."""

from __future__ import annotations

import os
import sys
from collections import Counter
from pathlib import Path

import click
from generated import EXIT_CODES, write_or_check

TARGET = Path(__file__).parent.parent / "docs" / "reference" / "commands.md"
INTRO = """# Commands

Made from `tracehint COMMAND --help` by `make pages`. Data goes to stdout, everything else to
stderr. `record`, `profile`, `task` and `place` pass the command's own code through.

| exit code | meaning |
|---|---|
"""


Rows = list[tuple[str, str]]
SHARED = 2  # number of commands with the same option from which it is listed once


def options_of(context: click.Context) -> Rows:
    """Return all options of a command, including rare ones, as in its help, without --help."""
    records = (p.get_help_record(context) for p in context.command.get_params(context))
    return [r for r in records if r is not None and r[1] and not r[0].startswith("-h,")]


def block(context: click.Context, rows: Rows, *, usage: bool = True) -> str:
    """Format usage, text and the options in `rows` as `--help` prints them."""
    formatter = context.make_formatter()
    if usage:
        context.command.format_usage(context, formatter)
        context.command.format_help_text(context, formatter)
    if rows:
        with formatter.section("Options"):
            formatter.write_dl(rows)
    return f"```text\n{formatter.getvalue().strip()}\n```\n"


def page() -> str:
    """Return the text of the page."""
    from tracehint.cli import COMMANDS, cli

    parts = [INTRO, *(f"| {code} | {meaning} |\n" for code, meaning in EXIT_CODES)]
    root = click.Context(cli, info_name="tracehint", terminal_width=90, **cli.context_settings)
    contexts: dict[str, click.Context] = {}
    for name in COMMANDS:
        command = cli.get_command(root, name)
        assert command is not None
        contexts[name] = click.Context(command, info_name=name, parent=root, terminal_width=90)
    listed = {name: options_of(context) for name, context in contexts.items()}
    uses = Counter(row for rows in listed.values() for row in rows)
    shared = [row for row in uses if uses[row] >= SHARED]
    for name, context in contexts.items():
        own = block(context, [row for row in listed[name] if row not in shared])
        parts.append(f"\n## {name}\n\n{own}")
        if also := ", ".join(f"`{row[0].split()[0]}`" for row in listed[name] if row in shared):
            parts.append(f"\n[Common](#common-options): {also}.\n")
    parts.append(f"\n## Common options\n\n{block(root, shared, usage=False)}")
    return "".join(parts)


def main() -> int:
    os.environ.setdefault("COLUMNS", "90")
    return write_or_check(TARGET, page(), "gen_cli_docs.py")


if __name__ == "__main__":
    sys.exit(main())
