"""Write docs/man/tracehint.1 from the commands' own help; `--check` only compares."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

from generated import EXIT_CODES, write_or_check

TARGET = Path(__file__).parent.parent / "docs" / "man" / "tracehint.1"
VARIABLES = (
    ("TRACEHINT_TASK", "Processes with the same value are one task of that name."),
    ("TRACEHINT_BUNDLE_DIR", "Directory of bundles that are written without -o."),
    ("TRACEHINT_NODE_DIR", "Where record --node meets its tasks, instead of /tmp/tracehint-UID."),
    ("TRACEHINT_LIMITS", "NAME=N,...: what readers take at most (docs/reference/limits.md)."),
    ("TRACEHINT_CACHE", "off: no analysis is kept or taken again (docs/reference/cache.md)."),
    ("TRACEHINT_SHARED", "Directories, colon-separated, that all hosts see as one tree."),
    ("DARSHAN_LIB", "Darshan's library, for the collector darshan."),
    ("NO_COLOR", "No colour, also on a terminal."),
)


def escape(text: str) -> str:
    """Text as roff shows it unchanged."""
    text = text.replace("\\", "\\e").replace("-", "\\-")
    text = text.replace("'", "\\(aq").replace("`", "\\(ga").replace("^", "\\(ha")
    text = text.replace("~", "\\(ti").replace('"', "\\(dq")
    return "\n".join(
        f"\\&{line}" if line.startswith((".", "'")) else line for line in text.split("\n")
    )


def tagged(term: str, text: str) -> list[str]:
    """A term and what it means."""
    broken = escape(term).replace("|", "|\\:")  # a long list of choices may be broken there
    return [".TP", f".B {broken}", escape(" ".join(text.split()))]


def prose(text: str) -> list[str]:
    """The paragraphs of a docstring; an example keeps its line."""
    lines: list[str] = []
    for block in re.split(r"\n\s*\n", text.strip()):
        block = " ".join(block.split())
        if block.startswith("Example: "):
            lines += [
                ".PP",
                "Example:",
                ".PP",
                ".RS 4",
                ".nf",
                escape(block.removeprefix("Example: ")),
                ".fi",
                ".RE",
            ]
        else:
            lines += [".PP", escape(block)]
    return lines


def section(name: str, command: Any, parent: Any) -> list[str]:
    """One command: how it is called, what it does, its options."""
    import click

    context = click.Context(command, info_name=name, parent=parent, terminal_width=78)
    pieces = " ".join(command.collect_usage_pieces(context))
    lines = [f".SS tracehint {escape(name)} {escape(pieces)}", *prose(command.help or "")]
    for parameter in command.get_params(context):
        record = parameter.get_help_record(context)
        if record is not None and record[1]:  # arguments have no text of their own
            lines += tagged(*record)
    return lines


def page() -> str:
    """The whole page, in the macros of man(7)."""
    import click

    from tracehint.cli import COMMANDS, cli
    from tracehint.version import __version__

    lines = [
        '.\\" Made by scripts/gen_man.py from the help of the commands.',
        f'.TH TRACEHINT 1 "" "tracehint {__version__}" "User Commands"',
        ".SH NAME",
        f"tracehint \\- {escape('find the storage hints of a workflow by watching one run of it')}",
        ".SH SYNOPSIS",
        ".B tracehint",
        ".I COMMAND",
        "[ARGS]...",
        ".SH DESCRIPTION",
        *prose(cli.help or "")[1:],
        ".PP",
        "Data goes to standard output, everything else to standard error.",
        ".SH COMMANDS",
    ]
    root = click.Context(cli, info_name="tracehint", terminal_width=78, **cli.context_settings)
    for name in COMMANDS:
        command = cli.get_command(root, name)
        assert command is not None, name
        lines += section(name, command, root)
    lines.append(".SH EXIT STATUS")
    for code, meaning in EXIT_CODES:
        lines += tagged(code, meaning)
    lines.append(".SH ENVIRONMENT")
    for variable, meaning in VARIABLES:
        lines += tagged(variable, meaning)
    lines += [".SH SEE ALSO", ".BR strace (1),", ".BR setfattr (1),", ".BR makeflow (1)"]
    return "\n".join(lines) + "\n"


def main() -> int:
    return write_or_check(TARGET, page(), "gen_man.py")


if __name__ == "__main__":
    sys.exit(main())
