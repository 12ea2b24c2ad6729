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

from tracehint.hintgen.lint.context import Context
from tracehint.hintgen.lint.finding import Finding, LintRule
from tracehint.hintgen.lint.unhinted import unhinted
from tracehint.hintgen.text.units import plural, size

RULE = LintRule("TP003", "pipeline-placed-apart", "warning", "0.1.0")


def check(context: Context) -> Iterator[Finding]:
    """Pipeline files without a DP=local hint, by template."""
    if context.analysis.options.default_placement == "local":
        return
    sql = unhinted("pipeline", "name = 'DP' AND value = 'local'")
    for row in context.rows(sql):
        message = (
            f"{plural(row['files'], 'file')} ({size(row['bytes'])}) handed from one task to "
            "the next, not kept on its node"
        )
        yield context.finding(RULE, row, message, assumed=context.placement_assumed())
