"""A task makes an exact copy of a file of the run.

## What it finds
Tasks that read one file whole and wrote another of the same size, with the
kernel's own copy calls (`copy_file_range`, `sendfile`, clone) or by `cp`,
`install` or `rsync`.

## Why it costs
The bytes exist twice, and moved twice to get there.

## Example
A step "stages" its input with `cp ../proj/p_1.fits .` on the same store.

## What to do
Use a hard or symbolic link, give the program the path of the original, or
rename instead of copying when the original is not needed again.

## What it cannot see
Copies that a program makes with plain reads and writes, and whether the copy
is changed later on.
"""

from __future__ import annotations

from collections.abc import Iterator

from tracehint.hintgen.lint.context import Context
from tracehint.hintgen.lint.finding import Finding, LintRule
from tracehint.hintgen.text.units import plural, size

RULE = LintRule("TV007", "duplicated-file", "info", "0.1.0")

# Step by step: files have few sizes, so sizes are compared within a task alone.
_SQL = """
    WITH made AS MATERIALIZED (SELECT p.task, p.file, f.size_bytes,
                         list_has_any(p.how, ['copy_file_range', 'sendfile', 'clone', 'splice'])
                         AS by_kernel
                  FROM producers p JOIN files f USING (file)
                  WHERE f.data AND NOT p.superseded AND f.version = 0
                    AND f.size_bytes >= $min_storage_bytes
                    AND p.unique_bytes = f.size_bytes),
         pair AS MATERIALIZED (SELECT m.*, c.file AS read
                  FROM made m JOIN consumers c ON c.task = m.task AND c.file <> m.file
                  WHERE c.cover >= 0.999),
         copy AS (SELECT m.task, m.file, min(o.file) AS original, bool_or(m.by_kernel) AS by_kernel
                  FROM pair m JOIN files o ON o.file = m.read
                  WHERE o.size_bytes - m.size_bytes = 0 AND o.data
                  GROUP BY m.task, m.file)
    SELECT f.template, count(DISTINCT f.named) AS files, list_distinct(min(f.path, 5)) AS examples,
           t.type AS producers, coalesce(min(ft.consumers), '') AS consumers,
           sum(f.size_bytes) AS bytes, sum(f.size_bytes) AS storage_bytes,
           2 * sum(f.size_bytes) AS network_bytes, min(o.template) AS original, 0.95 AS confidence
    FROM copy JOIN files f USING (file) JOIN files o ON o.file = copy.original
         JOIN work t USING (task) JOIN file_types ft ON ft.file = copy.file
    WHERE by_kernel OR regexp_matches(t.command, '(^|[/ ])(cp|install|rsync) ')
    GROUP BY f.template, t.type, ft.consumers"""


def check(context: Context) -> Iterator[Finding]:
    """Exact copies by template and copying task type."""
    for row in context.rows(_SQL):
        message = (
            f"{plural(row['files'], 'file')} ({size(row['bytes'])}) copied from {row['original']}"
        )
        yield context.finding(
            RULE,
            row,
            message,
            evidence=("original",),
            assumed=("original and copy lie on the shared store",),
            fix="link to the original, or rename it, instead of copying",
        )
