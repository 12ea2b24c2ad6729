"""A by-product that no task reads, of tasks whose other files are read.

## What it finds
Output files that nobody read, written by tasks whose *other* output the run
did use. What the last tasks of a workflow write is its result and no finding, nor
is a file of a set (`ref.nsq`, `ref.ntf`) of which another one is read.

## Why it costs
The bytes were computed, sent and stored for nothing, and often the program
has a switch that leaves them out.

## Example
An image tool writes a weight map beside each image; the step after reads the
images only.

## What to do
Switch the by-product off, or write it to the node's scratch space and let it
go with the task.

## What it cannot see
Readers outside the run. Where a by-product is a result of its own, suppress
the finding in the baseline.
"""

from __future__ import annotations

from collections.abc import Iterator

from tracehint.hintgen.lint.context import FILES_SQL, GROUP_SQL, Context, set_sql
from tracehint.hintgen.lint.finding import Finding, LintRule
from tracehint.hintgen.text.units import plural, size

RULE = LintRule("TV002", "output-never-read", "info", "0.1.0")


def check(context: Context) -> Iterator[Finding]:
    """Unread outputs of task types that feed other tasks, by template."""
    sql = f"""
        WITH feeds AS (SELECT DISTINCT producer AS task FROM edges WHERE via <> 'declared'),
             unread AS (SELECT p.file, bool_and(p.task IN (FROM feeds)) AS midway
                        FROM producers p JOIN work t USING (task) GROUP BY p.file),
             beside AS MATERIALIZED (
               SELECT f.* FROM unread u JOIN files f USING (file) JOIN file_types ft USING (file)
               WHERE u.midway AND f.role IN ('output', 'intermediate') AND NOT f.deleted
                 AND coalesce(ft.n_consumers, 0) = 0),
             sets AS (SELECT DISTINCT {set_sql("path_text")} FROM files
                      WHERE path_text IS NOT NULL AND dir IN (SELECT dir FROM beside)
                        AND file IN (SELECT file FROM readers))
        SELECT {FILES_SQL}, sum(f.size_bytes) AS bytes, sum(f.size_bytes) AS storage_bytes
        FROM beside f JOIN file_types ft USING (file)
        WHERE {set_sql("f.path_text")} NOT IN (FROM sets)
        GROUP BY {GROUP_SQL} HAVING sum(f.size_bytes) >= $min_storage_bytes"""
    for row in context.rows(sql):
        message = (
            f"{plural(row['files'], 'file')} ({size(row['bytes'])}) written beside files that "
            "are used, and read by no task"
        )
        yield context.finding(
            RULE,
            row,
            message,
            fix="leave the by-product out, or write it to node-local scratch space",
        )
