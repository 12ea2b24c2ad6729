"""A declared input that the task never opened.

## What it finds
Files that the workflow declares as inputs of a task and that none of the
task's processes opened. Programs that the task executed count as used, and so
do files of a set (`ref.nsq`, `ref.ntf`) of which the task opened another one.

## Why it costs
Engines that stage inputs (Makeflow with Work Queue, Confuga, Condor) send the
file to the node for nothing; all engines wait for its producer for nothing.

## Example
`mImgtbl` declares the area files of all images and reads the images only.

## What to do
Remove the file from the rule's inputs, if the program never needs it.

## What it cannot see
Inputs that other parameters or other data would make the program read, and
files that exist only to force an order (empty ones are left out).
"""

from __future__ import annotations

from collections.abc import Iterator

from tracehint.hintgen.lint.context import Context, set_sql
from tracehint.hintgen.lint.finding import Finding, LintRule
from tracehint.hintgen.text.units import plural, size

RULE = LintRule("TD003", "unread-declared-input", "warning", "0.1.0", needs=("declared",))

# Of a set (database, index) that the task did read, programs open what they need at that time.
_SQL = f"""
    WITH asked AS (SELECT d.*, t.type FROM d_io d JOIN work t USING (task)
                   WHERE d.direction = 'in' AND t.source <> 'declared'),
         unread AS MATERIALIZED (
           SELECT d.*, p.path, p.path_text FROM asked d JOIN d_path p USING (number)
           WHERE NOT EXISTS (FROM consumers c JOIN d_named n USING (file)
                             WHERE c.task = d.task AND n.number = d.number)),
         read AS MATERIALIZED (SELECT task, file FROM consumers
                               WHERE task IN (SELECT task FROM unread)),
         opened AS (SELECT task, {set_sql("path_text")} AS of_set FROM b_io
                    WHERE task IN (SELECT task FROM unread)
                    UNION SELECT task, {set_sql("path_text")} FROM read JOIN files USING (file)),
         last AS (SELECT path_text, min(path) AS path, max(size_bytes) AS size_bytes,
                         min(template) AS template, min(file) AS file
                  FROM files WHERE path_text IN (SELECT path_text FROM unread) GROUP BY path_text)
    SELECT coalesce(l.template, d.path_text) AS template, count(DISTINCT d.path_text) AS files,
           list_distinct(min(coalesce(l.path, d.path), 5)) AS examples,
           coalesce(min(ft.producers), '') AS producers, d.type AS consumers,
           sum(coalesce(d.size_bytes, l.size_bytes, 0)) AS bytes,
           sum(coalesce(d.size_bytes, l.size_bytes, 0)) AS network_bytes,
           count(DISTINCT d.task) AS tasks
    FROM unread d LEFT JOIN last l USING (path_text) LEFT JOIN file_types ft ON ft.file = l.file
    WHERE coalesce(d.size_bytes, l.size_bytes, 1) > 0
      AND NOT EXISTS (FROM d_dir x WHERE x.task = d.task AND x.path_text = d.path_text)
      AND NOT EXISTS (FROM opened o WHERE o.task = d.task
                      AND o.of_set = {set_sql("d.path_text")})
      AND NOT EXISTS (FROM b_exe e WHERE e.task = d.task AND e.path_text = d.path_text)
    GROUP BY 1, d.type, ft.producers"""


def check(context: Context) -> Iterator[Finding]:
    """Declared inputs that were never opened, by template and task type."""
    for row in context.rows(_SQL):
        message = (
            f"{plural(row['tasks'], 'task')} never opened {plural(row['files'], 'declared input')}"
            f" ({size(row['bytes'])} if staged)"
        )
        yield context.finding(
            RULE,
            row,
            message,
            evidence=("tasks",),
            assumed=("the engine stages declared inputs",),
            fix="remove the file from the declared inputs",
        )
