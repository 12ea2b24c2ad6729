"""A shared input below Confuga's pull-threshold: it is brought for each job anew.

## What it finds
Inputs of several tasks that are smaller than the `pull-threshold` of the
head's URI, which the setting `pull-threshold` of the lint tells (0, the
default: no Confuga). Confuga's own default is 128 MB.

## Why it costs
Below the threshold Confuga brings an input to the node of every job that
declares it, and keeps nothing. Above it the input is copied once to each node
and stays there, for later runs as well.

## Example
Ten tasks read one `db.bin` of 64 MB; with the usual threshold most of them
fetch it, in every run.

## What to do
Start the head with a threshold between the largest private input and the
smallest shared one: `tracehint emit --workflow-engine confuga` tells it.

## What it cannot see
Which tasks ran on the node that has the file: those fetched nothing.
"""

from __future__ import annotations

from collections.abc import Iterator

from tracehint.hintgen.lint.context import FILES_SQL, GROUP_SQL, Context
from tracehint.hintgen.lint.finding import Finding, LintRule
from tracehint.hintgen.text.units import plural, size

RULE = LintRule("TP010", "pull-threshold", "warning", "0.1.0")

_SQL = f"""
    WITH shared AS (SELECT c.file, count(DISTINCT c.task) AS tasks
                    FROM consumers c JOIN files f USING (file)
                    WHERE f.data AND f.size_bytes < $pull_threshold
                    GROUP BY c.file HAVING count(DISTINCT c.task) > 1)
    SELECT {FILES_SQL}, sum(f.size_bytes) AS bytes, max(s.tasks) AS tasks,
           sum(f.size_bytes * (s.tasks - least(s.tasks, $nodes)))::BIGINT AS network_bytes
    FROM shared s JOIN files f USING (file) JOIN file_types ft USING (file)
    GROUP BY {GROUP_SQL}
    HAVING sum(f.size_bytes * s.tasks) >= $min_bytes"""


def check(context: Context) -> Iterator[Finding]:
    """Shared inputs below the threshold, by template."""
    for row in context.rows(_SQL, nodes=context.nodes):
        limit = size(context.settings.pull_threshold)
        message = (
            f"{plural(row['files'], 'file')} of {size(row['bytes'])} that up to {row['tasks']} "
            f"tasks read are below the pull-threshold of {limit}: brought for each job"
        )
        yield context.finding(
            RULE,
            row,
            message,
            evidence=("tasks",),
            assumed=("Confuga as the store", f"{context.nodes} storage nodes"),
            fix="a smaller pull-threshold: tracehint emit H --workflow-engine confuga W --like RUN",
        )
