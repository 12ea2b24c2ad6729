"""A task failed, and others went on with what it left.

## What it finds
Tasks with a non-zero exit status whose files other tasks read, without a
later attempt that replaced them.

## Why it costs
The result may rest on half-written files: a wrong answer costs more than
any transfer.

## Example
`a.sh | tee log` hides the status of `a.sh`; the next step reads a table that
ends in the middle of a line.

## What to do
Stop at failures (`set -euo pipefail`), or declare that the status is meant.

## What it cannot see
Programs that use the exit status for other news, as `grep` and `diff` do.
"""

from __future__ import annotations

from collections.abc import Iterator

from tracehint.hintgen.lint.context import FILES_SQL, Context
from tracehint.hintgen.lint.finding import Finding, LintRule
from tracehint.hintgen.text.units import plural

RULE = LintRule("TH005", "failed-task-used", "error", "0.1.0")

_SQL = f"""
    WITH failed AS (SELECT * FROM work t WHERE exit_status <> 0
                    AND NOT EXISTS (FROM work l WHERE l.name = t.name AND l.attempt > t.attempt))
    SELECT {FILES_SQL}, sum(e.bytes) AS bytes, count(DISTINCT t.task) AS tasks,
           min(t.exit_status) AS status
    FROM failed t JOIN edges e ON e.producer = t.task JOIN files f USING (file)
         JOIN file_types ft USING (file)
    GROUP BY f.template, t.type, ft.producers, ft.consumers"""


def check(context: Context) -> Iterator[Finding]:
    """Files of failed tasks that others read, by template."""
    for row in context.rows(_SQL):
        message = (
            f"{plural(row['tasks'], 'task')} failed (status {row['status']}), and "
            f"{row['consumers']} read {plural(row['files'], 'file')} that they left"
        )
        yield context.finding(
            RULE,
            row,
            message,
            evidence=("tasks", "status"),
            fix="stop the workflow at failures (set -euo pipefail)",
        )
