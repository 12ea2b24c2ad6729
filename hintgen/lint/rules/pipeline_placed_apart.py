"""A file that goes from one task to the next over the network.

## What it finds
Files with the primary label *pipeline* (one producer, one consumer) without a
`DP=local` hint.

## Why it costs
Striped over N nodes, (N-1)/N of the bytes cross the network twice, once to be
written and once to be read, although a local disk and a scheduler that runs
the consumer there would move none.

## Example
`mDiff` writes a difference image, `mFitplane` reads it and nobody else ever
does.

## What to do
Tag the file `DP=local` before its producer writes it, and let the engine run
the consumer where the file lies (`tracehint emit --workflow-engine`).

## What it cannot see
Stores that write locally by default: say so with `--default-placement local`.
"""

from __future__ import annotations

from collections.abc import Iterator

from tracehint.hintgen.lint.context import (
    CONFIDENCE_SQL,
    ENOUGH_SQL,
    FILES_SQL,
    GROUP_SQL,
    PAYS_SQL,
    SAVES_SQL,
    Context,
)
from tracehint.hintgen.lint.finding import Finding, Rule
from tracehint.hintgen.units import plural, size

RULE = Rule("TP003", "pipeline-placed-apart", "warning", "0.1.0")


def check(context: Context) -> Iterator[Finding]:
    """Pipeline files without a DP=local hint, by template."""
    if context.analysis.options.default_placement == "local":
        return
    sql = f"""
        SELECT {FILES_SQL}, sum(f.size_bytes) AS bytes, {SAVES_SQL},
               {CONFIDENCE_SQL}
        FROM primary_label p JOIN files f USING (file) JOIN file_types ft USING (file)
        WHERE p.pattern = 'pipeline' AND f.data AND {PAYS_SQL}
          AND f.path_text NOT IN (SELECT path_text FROM in_force
                                  WHERE name = 'DP' AND value = 'local')
        GROUP BY {GROUP_SQL} HAVING {ENOUGH_SQL}"""
    for row in context.rows(sql):
        message = (
            f"{plural(row['files'], 'file')} ({size(row['bytes'])}) handed from one task to "
            "the next, not kept on its node"
        )
        yield context.finding(RULE, row, message, assumed=context.placement_assumed())
