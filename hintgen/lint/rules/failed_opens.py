"""Tasks try to open files that do not exist, many times.

## What it finds
Task types with at least 1,000 failed opens below the data roots and at least
20 for every file that they did open.

## Why it costs
A name that does not exist is not cached by most shared file systems: each
attempt goes to the metadata server, from every task at the same time.

## Example
A program looks for its configuration in 30 directories, the last of which
has it; 400 tasks do so at once.

## What to do
Give the full path, or put the directory that has the file first on the
search path.

## What it cannot see
Failed opens outside the data roots (software on a shared file system).
"""

from __future__ import annotations

from collections.abc import Iterator

from tracehint.hintgen.lint.context import Context
from tracehint.hintgen.lint.finding import Finding, LintRule
from tracehint.hintgen.lint.storms import storm
from tracehint.hintgen.text.units import number, plural

RULE = LintRule("TM003", "failed-opens", "warning", "0.1.0", needs=("bundle",))


def check(context: Context) -> Iterator[Finding]:
    """Task types with many failed opens per opened file."""
    for row in context.rows(storm("failed_open")):
        message = (
            f"{number(row['calls'])} failed opens by {row['consumers']} for "
            f"{plural(row['files'], 'opened file')}"
        )
        yield context.finding(
            RULE, row, message, evidence=("calls",), fix="give full paths, or reorder search paths"
        )
