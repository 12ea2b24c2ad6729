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
from tracehint.hintgen.lint.finding import Finding, Rule
from tracehint.hintgen.units import number, plural

RULE = Rule("TM003", "failed-opens", "warning", "0.1.0", needs=("bundle",))

_SQL = """
    WITH opened AS (SELECT type, count(DISTINCT path_text) AS files FROM b_io GROUP BY type),
         calls AS (SELECT type, arg_max(dir, n) AS dir, sum(n)::BIGINT AS n
                   FROM (SELECT type, dir_text AS dir, sum(count) AS n FROM b_meta
                         WHERE op = 'failed_open' AND inside GROUP BY ALL) GROUP BY type)
    SELECT c.dir || '/' AS template, coalesce(o.files, 0) AS files, 0 AS bytes,
           '' AS producers, c.type AS consumers, c.n AS operations, c.n AS calls
    FROM calls c LEFT JOIN opened o USING (type)
    WHERE c.n >= $storm_ops AND c.n >= $stat_ops_per_file * greatest(1, coalesce(o.files, 0))"""


def check(context: Context) -> Iterator[Finding]:
    """Task types with many failed opens per opened file."""
    for row in context.rows(_SQL):
        message = (
            f"{number(row['calls'])} failed opens by {row['consumers']} for "
            f"{plural(row['files'], 'opened file')}"
        )
        yield context.finding(
            RULE, row, message, evidence=("calls",), fix="give full paths, or reorder search paths"
        )
