"""A task ran on another host than the one on which most of its input was written.

## What it finds
Tasks of which more than half of the input bytes that the run itself made were
written on one host, while the task ran on another host that had less of them.

## Why it costs
On a store that places locally those bytes crossed the network although an
equally good node had them.

## Example
`mFitplane` ran on node 7 for an image that `mDiff` wrote on node 3.

## What to do
Start each task on the node that holds its input (`tracehint place`), let the
engine ask where the data is (`tracehint locate`), or write the location into
the workflow (`tracehint emit --workflow-engine`).

## What it cannot see
Where a striping store put the bytes; it goes by the host that wrote them.
"""

from __future__ import annotations

from collections.abc import Iterator

from tracehint.hintgen.lint.context import FILES_SQL, GROUP_SQL, Context
from tracehint.hintgen.lint.finding import Finding, LintRule
from tracehint.hintgen.text.units import plural, size

RULE = LintRule("TP007", "consumer-away-from-data", "warning", "0.1.0", needs=("hosts",))

_SQL = f"""
    WITH flow AS (SELECT e.consumer, c.host AS here, p.host AS there, sum(e.bytes) AS bytes
                  FROM edges e JOIN work c ON c.task = e.consumer
                  JOIN work p ON p.task = e.producer GROUP BY ALL),
         total AS (SELECT consumer, sum(bytes) AS bytes,
                          coalesce(sum(bytes) FILTER (here = there), 0) AS own
                   FROM flow GROUP BY 1),
         best AS (SELECT consumer, arg_max(there, bytes) AS host, max(bytes) AS bytes
                  FROM flow WHERE here <> there GROUP BY 1),
         away AS (SELECT t.consumer, b.host, b.bytes - t.own AS moved, t.bytes AS total
                  FROM total t JOIN best b USING (consumer)
                  WHERE b.bytes > $away_share * t.bytes AND b.bytes > t.own)
    SELECT {FILES_SQL}, sum(e.bytes) AS bytes, sum(e.bytes) AS network_bytes,
           count(DISTINCT a.consumer) AS tasks
    FROM away a JOIN edges e USING (consumer) JOIN work p ON p.task = e.producer
         JOIN files f USING (file) JOIN file_types ft USING (file)
    WHERE p.host = a.host
    GROUP BY {GROUP_SQL} HAVING sum(e.bytes) >= $min_bytes"""


def check(context: Context) -> Iterator[Finding]:
    """Tasks that ran away from the host with most of their input, by file template."""
    for row in context.rows(_SQL):
        message = (
            f"{plural(row['tasks'], 'task')} read {plural(row['files'], 'file')} "
            f"({size(row['bytes'])}) from another host that had most of "
            f"{'its' if row['tasks'] == 1 else 'their'} input"
        )
        yield context.finding(
            RULE,
            row,
            message,
            evidence=("tasks",),
            assumed=("files lie where they were written",),
            fix="start the tasks where their input lies: tracehint place, or the engine's own way",
        )
