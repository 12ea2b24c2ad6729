"""Tasks failed and were run again.

## What it finds
Tasks with a second or later attempt, and the bytes that the failed attempts
wrote for nothing.

## Why it costs
Each retry costs the whole task again, and on a shared store its I/O too.

## Example
12 of 300 alignments ran out of memory and were repeated on a larger node.

## What to do
Look at the exit status and the log of the first attempt; give the task what
it lacked the first time.

## What it cannot see
Retries inside a task.
"""

from __future__ import annotations

from collections.abc import Iterator

from tracehint.hintgen.lint.context import Context
from tracehint.hintgen.lint.finding import Finding, LintRule
from tracehint.hintgen.text.units import plural, size

RULE = LintRule("TH003", "retried-task", "info", "0.1.0")

_SQL = """
    WITH again AS (SELECT type, count(DISTINCT name) AS tasks, sum(end_s - start_s) AS seconds
                   FROM work WHERE attempt > 1 GROUP BY type),
         wasted AS (SELECT t.type, count(DISTINCT f.named) AS files, sum(p.bytes) AS bytes,
                           list_distinct(min(f.path, 5)) AS examples,
                           CASE WHEN count(DISTINCT f.template) = 1 THEN min(f.template)
                                ELSE '' END AS template
                    FROM producers p JOIN work t USING (task) JOIN files f USING (file)
                    WHERE p.superseded GROUP BY t.type)
    SELECT coalesce(w.template, '') AS template, coalesce(w.files, 0) AS files,
           coalesce(w.bytes, 0) AS bytes, w.examples, a.type AS producers, '' AS consumers,
           coalesce(w.bytes, 0) AS network_bytes, a.tasks
    FROM again a LEFT JOIN wasted w USING (type)"""


def check(context: Context) -> Iterator[Finding]:
    """Retried tasks by type."""
    for row in context.rows(_SQL):
        wasted = f"; {size(row['bytes'])} were written for nothing" if row["bytes"] else ""
        message = f"{plural(row['tasks'], 'task')} of {row['producers']} ran again{wasted}"
        yield context.finding(
            RULE, row, message, evidence=("tasks",), fix="look at why the first attempt failed"
        )
