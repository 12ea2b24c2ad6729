"""A task read a file while another one was still writing it.

## What it finds
Edges whose order is uncertain: the reader's and the writer's accesses
overlap in time, so which bytes the reader got depends on timing.

## Why it costs
Another run, another node count or another store may give another result; no
placement can be chosen well for data that moves while it is made.

## Example
A monitor script reads a log that the simulation appends to.

## What to do
Make the reader depend on the writer's end, or hand over finished pieces by
renaming them into place.

## What it cannot see
Programs that coordinate by locks or messages.
"""

from __future__ import annotations

from collections.abc import Iterator

from tracehint.hintgen.lint.context import FILES_SQL, GROUP_SQL, Context
from tracehint.hintgen.lint.finding import Finding, LintRule
from tracehint.hintgen.text.units import plural, size

RULE = LintRule("TH006", "read-while-written", "warning", "0.1.0")

_SQL = f"""
    SELECT {FILES_SQL}, sum(e.bytes) AS bytes, count(*) AS pairs
    FROM edges e JOIN files f USING (file) JOIN file_types ft USING (file)
    WHERE e."order" = 'uncertain' AND e.via = 'data'
    GROUP BY {GROUP_SQL}"""


def check(context: Context) -> Iterator[Finding]:
    """Files that were read while they were written, by template."""
    for row in context.rows(_SQL):
        message = (
            f"{plural(row['files'], 'file')} ({size(row['bytes'])}) read while another task "
            f"still wrote, {plural(row['pairs'], 'pair')} of tasks"
        )
        yield context.finding(
            RULE,
            row,
            message,
            evidence=("pairs",),
            fix="let the reader wait for the writer, or rename finished files into place",
        )
