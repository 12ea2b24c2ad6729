"""Write docs/man, a page per command, from the commands' help; `--check` only compares."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import click
from generated import EXIT_CODES, write_or_check

from tracehint.cli import COMMANDS, cli

FOLDER = Path(__file__).parent.parent / "docs" / "man"
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
    """Escape text so that roff prints it unchanged."""
    text = text.replace("\\", "\\e").replace("-", "\\-")
    text = text.replace("'", "\\(aq").replace("`", "\\(ga").replace("^", "\\(ha")
    text = text.replace("~", "\\(ti").replace('"', "\\(dq")
    return "\n".join(
        f"\\&{line}" if line.startswith((".", "'")) else line for line in text.split("\n")
    )


def tagged(term: str, text: str) -> list[str]:
    """Format a term and its meaning."""
    broken = escape(term).replace("|", "|\\:")  # a long list of choices may be broken there
    return [".TP", f".B {broken}", escape(" ".join(text.split()))]


def prose(text: str) -> list[str]:
    """Format the paragraphs of a docstring; an example keeps its own line."""
    lines: list[str] = []
    for block in re.split(r"\n\s*\n", text.strip()):
        block = " ".join(block.split())
        if block.startswith("Example: "):
            example = escape(block.removeprefix("Example: "))
            lines += [".PP", "Example:", ".PP", ".RS 4", ".nf", example, ".fi", ".RE"]
        else:
            lines += [".PP", escape(block)]
    return lines


def head(name: str, line: str) -> list[str]:
    """Return title and name of a page."""
    from tracehint.version import __version__

    return [
        '.\\" Made by scripts/gen_man.py from the help of the commands.',
        f'.TH {name.upper()} 1 "" "tracehint {__version__}" "User Commands"',
        ".SH NAME",
        f"{escape(name)} \\- {escape(line)}",
        ".SH SYNOPSIS",
    ]


def command_page(name: str, line: str, command: click.Command, parent: click.Context) -> str:
    """Return the page of a command: synopsis, description and options, in macros of man(7)."""
    context = click.Context(command, info_name=name, parent=parent, terminal_width=78)
    pieces = escape(" ".join(command.collect_usage_pieces(context)))
    lines = [
        *head(f"tracehint-{name}", line.rstrip(".")),
        f".B tracehint {escape(name)}",
        pieces,
        ".SH DESCRIPTION",
        *prose(command.help or "")[1:],
        ".SH OPTIONS",
    ]
    for parameter in command.get_params(context):
        record = parameter.get_help_record(context)
        if record is not None and record[1]:  # arguments have no text of their own
            lines += tagged(*record)
    lines += [".SH SEE ALSO", ".BR tracehint (1)"]
    return "\n".join(lines) + "\n"


def main_page(root: click.Context) -> str:
    """Return the page of the program: its commands, exit codes and variables."""
    lines = [
        *head("tracehint", "find the storage hints of a workflow by watching one run of it"),
        ".B tracehint",
        ".I COMMAND",
        "[ARGS]...",
        ".SH DESCRIPTION",
        *prose(root.command.help or "")[1:],
        ".PP",
        "Data goes to standard output, everything else to standard error.",
        ".SH COMMANDS",
    ]
    for name, (_, line) in COMMANDS.items():
        lines += [".TP", f".BR tracehint\\-{escape(name)} (1)", escape(line)]
    lines.append(".SH EXIT STATUS")
    for code, meaning in EXIT_CODES:
        lines += tagged(code, meaning)
    lines.append(".SH ENVIRONMENT")
    for variable, meaning in VARIABLES:
        lines += tagged(variable, meaning)
    lines += [".SH SEE ALSO", ".BR strace (1),", ".BR setfattr (1),", ".BR makeflow (1)"]
    return "\n".join(lines) + "\n"


def main() -> int:
    root = click.Context(cli, info_name="tracehint", terminal_width=78, **cli.context_settings)
    pages = {"tracehint": main_page(root)}
    for name, (_, line) in COMMANDS.items():
        command = cli.get_command(root, name)
        assert command is not None, name
        pages[f"tracehint-{name}"] = command_page(name, line, command, root)
    return max(write_or_check(FOLDER / f"{n}.1", text, "gen_man.py") for n, text in pages.items())


if __name__ == "__main__":
    sys.exit(main())
