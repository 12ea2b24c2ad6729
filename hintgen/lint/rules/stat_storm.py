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
from tracehint.hintgen.lint.finding import Finding, Rule
from tracehint.hintgen.units import number, plural

RULE = Rule("TM002", "stat-storm", "warning", "0.1.0", needs=("bundle",))

_SQL = """
    WITH opened AS (SELECT type, count(DISTINCT path_text) AS files FROM b_io GROUP BY type),
         calls AS (SELECT type, arg_max(dir, n) AS dir, sum(n)::BIGINT AS n, sum(tasks) AS tasks
                   FROM (SELECT type, dir_text AS dir, sum(count) AS n,
                                count(DISTINCT task) AS tasks
                         FROM b_meta WHERE op IN ('stat', 'access') AND inside GROUP BY ALL)
                   GROUP BY type)
    SELECT c.dir || '/' AS template, coalesce(o.files, 0) AS files, 0 AS bytes,
           '' AS producers, c.type AS consumers, c.n AS operations, c.n AS calls
    FROM calls c LEFT JOIN opened o USING (type)
    WHERE c.n >= $storm_ops AND c.n >= $stat_ops_per_file * greatest(1, coalesce(o.files, 0))"""


def check(context: Context) -> Iterator[Finding]:
    """Task types with many stat calls per opened file."""
    for row in context.rows(_SQL):
        message = (
            f"{number(row['calls'])} stat or access calls by {row['consumers']} for "
            f"{plural(row['files'], 'opened file')}"
        )
        yield context.finding(
            RULE, row, message, evidence=("calls",),
            fix="list once and pass the list on; wait for the engine instead of polling",
        )  # fmt: skip
