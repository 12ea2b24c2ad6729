"""A task wrote a file that the workflow does not declare as its output.

## What it finds
Files that a task wrote, that still exist at the end or that another task
read, and that are neither declared outputs of that task nor below a declared
directory. Left out are logs (`*.log`, `*.err`, `log/`, what Snakemake declares
as `log:`), files that the task did not open itself (the output of the whole run
that a shell sent to a file), and copies by the engine (`publishDir`).

## Why it costs
The engine does not know of the file: it is not brought back from a remote
node, not cleaned up after a failure, not rebuilt when it is missing, and no
hint of the workflow's own can name it.

## Example
`mProject` writes `p_area.fits` beside the declared `p.fits`.

## What to do
Add the file to the rule's outputs, or write it to scratch space.

## What it cannot see
By-products that are there on purpose: put those findings into the baseline.
"""

from __future__ import annotations

from collections.abc import Iterator

from tracehint.hintgen.lint.context import Context
from tracehint.hintgen.lint.finding import Finding, LintRule
from tracehint.hintgen.text.units import plural, size

RULE = LintRule("TD002", "undeclared-output", "warning", "0.1.0", needs=("declared",))

# By their names; engines that know of a task's log declare it as one of its files.
_LOG = r"(^|/)logs?/|\.(log|err|stderr|stdout)(\.[0-9]+)?$|(^|/)slurm-[^/]*\.out$"

# A file that only others opened came to the task as its output (the shell sent the whole run's
# there), or an engine copied it.
_SQL = """
    WITH other AS MATERIALIZED (
      SELECT * FROM producers p WHERE NOT superseded AND task IN (SELECT task FROM d_task)
      AND NOT EXISTS (FROM d_file d WHERE d.task = p.task AND d.file = p.file))
    SELECT f.template, count(DISTINCT f.named) AS files,
           list_distinct(min(f.path, 5)) AS examples, t.type AS producers,
           coalesce(min(ft.consumers), '') AS consumers, sum(p.unique_bytes) AS bytes,
           count(DISTINCT p.task) AS tasks, bool_or(f.role = 'intermediate') AS used
    FROM other p JOIN work t USING (task) JOIN files f USING (file)
         JOIN file_types ft USING (file)
    WHERE f.data AND NOT regexp_matches(f.path_text, $log)
      AND (NOT EXISTS (FROM b_opener o WHERE o.path_text = f.path_text)
           OR EXISTS (FROM b_opener o WHERE o.path_text = f.path_text AND o.task = p.task))
      AND p.how <> ['engine_copy']  -- what the engine publishes is not the task's to declare
      AND (f.role = 'intermediate' OR (f.role = 'output' AND NOT f.deleted))
      AND NOT EXISTS (FROM d_dir d WHERE d.task = p.task
                      AND starts_with(f.path_text, d.path_text || '/'))
    GROUP BY f.template, t.type, ft.consumers"""


def check(context: Context) -> Iterator[Finding]:
    """Undeclared outputs by template and writing task type."""
    for row in context.rows(_SQL, log=_LOG):
        them = "it" if row["files"] == 1 else "them"
        used = f"; other tasks read {them}" if row["used"] else ""
        message = (
            f"{plural(row['tasks'], 'task')} wrote {plural(row['files'], 'undeclared file')} "
            f"({size(row['bytes'])}){used}"
        )
        yield context.finding(
            RULE, row, message, evidence=("tasks",), fix="add the file to the declared outputs"
        )
