"""A task takes far longer than its siblings and moves far more bytes.

## What it finds
Task types with at least four tasks, of which one took more than twice the
median time (and over a second) and moved more than twice the median bytes.

## Why it costs
The step waits for it. The bytes explain the time: more compute nodes do not
help, a better cut of the data does.

## Example
One of 64 chunks holds the repetitive region and is nine times as large.

## What to do
Cut the data by bytes, start the large pieces first, or place the large
piece's input on the node that works on it.

## What it cannot see
Slow disks, a busy network or a swapping node: those make stragglers that
move no more bytes than the others, and are not reported.
"""

from __future__ import annotations

from collections.abc import Iterator

from tracehint.hintgen.lint.context import Context
from tracehint.hintgen.lint.finding import Finding, LintRule
from tracehint.hintgen.text.units import plural, seconds, size

RULE = LintRule("TH004", "io-straggler", "info", "0.1.0")

_SQL = """
    WITH io AS (SELECT task, sum(bytes) AS bytes FROM
                  (SELECT task, bytes FROM producers UNION ALL SELECT task, bytes FROM consumers)
                GROUP BY task),
         load AS (SELECT t.task, t.type, t.end_s - t.start_s AS s, coalesce(io.bytes, 0) AS bytes
                  FROM work t LEFT JOIN io USING (task) WHERE t.end_s IS NOT NULL),
         usual AS (SELECT type, count(*) AS n, median(s) AS s, median(bytes) AS bytes
                   FROM load GROUP BY type HAVING n >= $straggler_tasks)
    SELECT '' AS template, 0 AS files, sum(l.bytes)::BIGINT AS bytes, '' AS producers,
           l.type AS consumers, count(*) AS tasks, max(l.s) AS slowest_s, any_value(u.s)
           AS median_s, any_value(u.bytes) AS median_bytes, max(l.bytes) AS most_bytes
    FROM load l JOIN usual u USING (type)
    WHERE l.s >= $straggler_seconds AND l.s > $straggler_factor * u.s
      AND l.bytes > $straggler_factor * u.bytes AND l.bytes - u.bytes >= $min_storage_bytes
    GROUP BY l.type"""


def check(context: Context) -> Iterator[Finding]:
    """Stragglers explained by their bytes, by task type."""
    for row in context.rows(_SQL):
        message = (
            f"{plural(row['tasks'], 'task')} of {row['consumers']} took up to "
            f"{seconds(row['slowest_s'])} and moved {size(row['most_bytes'])}; the median is "
            f"{seconds(row['median_s'])} and {size(row['median_bytes'])}"
        )
        yield context.finding(
            RULE,
            row,
            message,
            fix="cut the data by bytes, or start the large pieces first",
            evidence=("tasks", "slowest_s", "median_s", "most_bytes", "median_bytes"),
        )
