"""The workflow makes a task wait for another one from which it reads nothing.

## What it finds
Declared dependencies between two tasks where no file goes from the one to
the other, neither in the declaration nor in what was observed.

## Why it costs
The task waits, and the step loses parallelism, for no data.

## Example
A stage that was once fed by another still carries `after: [prepare]`.

## What to do
Remove the dependency, if nothing but data has to be ordered.

## What it cannot see
Side effects outside the data roots: a service that must run, a database that
must be filled.
"""

from __future__ import annotations

from collections.abc import Iterator

from tracehint.hintgen.lint.context import Context
from tracehint.hintgen.lint.finding import Finding, LintRule
from tracehint.hintgen.text.units import plural

RULE = LintRule("TD005", "dependency-without-data", "info", "0.1.0", needs=("declared",))

_SQL = """
    SELECT '' AS template, 0 AS files, 0 AS bytes, p.type AS producers, c.type AS consumers,
           count(*) AS pairs
    FROM d_parent d JOIN work p ON p.task = d.parent JOIN work c ON c.task = d.task
    WHERE p.source <> 'declared' AND c.source <> 'declared'
      AND NOT EXISTS (FROM edges e WHERE e.producer = d.parent AND e.consumer = d.task)
      AND NOT EXISTS (FROM d_io o JOIN d_io i USING (name)
                      WHERE o.task = d.parent AND o.direction = 'out'
                        AND i.task = d.task AND i.direction = 'in')
    GROUP BY p.type, c.type"""


def check(context: Context) -> Iterator[Finding]:
    """Dependencies without data, by pair of task types."""
    for row in context.rows(_SQL):
        message = (
            f"{row['consumers']} waits for {row['producers']} in {plural(row['pairs'], 'pair')} "
            "of tasks and reads nothing from it"
        )
        yield context.finding(
            RULE, row, message, evidence=("pairs",), fix="remove the dependency from the workflow"
        )
