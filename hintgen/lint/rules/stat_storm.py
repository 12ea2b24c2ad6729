"""Tasks ask for the attributes of files again and again.

## What it finds
Task types with at least 1,000 `stat` or `access` calls below the data roots
and at least 20 per file that they opened.

## Why it costs
On shared file systems each `stat` is a round trip to the metadata server,
and striped files make it ask every data server for the size.

## Example
A task polls for its input with `while [ ! -e x ]`, or lists a directory of
10,000 files with `ls -l` in every one of 300 tasks.

## What to do
Wait for the event (the engine knows when the file is complete), list once and
pass the list on, use `ls` without `-l` or `--color`.

## What it cannot see
Calls that the client's attribute cache answers.
"""

from __future__ import annotations

from collections.abc import Iterator

from tracehint.hintgen.lint.context import Context
from tracehint.hintgen.lint.finding import Finding, LintRule
from tracehint.hintgen.lint.storms import storm
from tracehint.hintgen.text.units import number, plural

RULE = LintRule("TM002", "stat-storm", "warning", "0.1.0", needs=("bundle",))


def check(context: Context) -> Iterator[Finding]:
    """Task types with many stat calls per opened file."""
    for row in context.rows(storm("stat", "access")):
        message = (
            f"{number(row['calls'])} stat or access calls by {row['consumers']} for "
            f"{plural(row['files'], 'opened file')}"
        )
        yield context.finding(
            RULE,
            row,
            message,
            evidence=("calls",),
            fix="list once and pass the list on; wait for the engine instead of polling",
        )
