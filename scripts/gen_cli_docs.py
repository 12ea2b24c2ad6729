"""Write docs/reference/commands.md from the commands' own help; `--check` only compares."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from generated import EXIT_CODES, write_or_check

TARGET = Path(__file__).parent.parent / "docs" / "reference" / "commands.md"
INTRO = """# Commands

Made from `tracehint COMMAND --help` by `make docs`. Data goes to stdout, everything else to
stderr. `record`, `profile`, `task` and `place` pass the command's own code through.

| exit code | meaning |
|---|---|
"""


def page() -> str:
    """The whole page."""
    import click

    from tracehint.cli import COMMANDS, cli
    from tracehint.commands._folded_help import WHOLE

    parts = [INTRO, *(f"| {code} | {meaning} |\n" for code, meaning in EXIT_CODES)]
    for name in COMMANDS:
        context = click.Context(
            cli, info_name="tracehint", terminal_width=90, **cli.context_settings
        )
        command = cli.get_command(context, name)
        assert command is not None
        inner = click.Context(command, info_name=name, parent=context, terminal_width=90)
        inner.meta[WHOLE] = True
        parts.append(f"\n## {name}\n\n```text\n{command.get_help(inner)}\n```\n")
    return "".join(parts)


def main() -> int:
    os.environ.setdefault("COLUMNS", "90")
    return write_or_check(TARGET, page(), "gen_cli_docs.py")


if __name__ == "__main__":
    sys.exit(main())
