"""Files of many tasks that one task reads, spread over the nodes.

## What it finds
Groups with the primary label *reduce* (one task is the only reader of files
from several producers) without a common `DP=collocation|<group>` hint.

## Why it costs
The reader has to fetch every file from another node, after the last producer
has finished: nothing overlaps, and one network link carries everything.

## Example
`mConcatFit` reads 2,800 small fit tables that 2,800 tasks wrote on 64 nodes.

## What to do
Tag the files with one collocation group before their producers write them,
and run the reader where the store put the group (`tracehint locate`).

## What it cannot see
Whether the node that gets the group has room for it. `tracehint hints`
refuses groups that are larger than the node's capacity where that is given.
"""

from __future__ import annotations

from collections.abc import Iterator

from tracehint.hintgen.lint.context import Context
from tracehint.hintgen.lint.finding import Finding, LintRule
from tracehint.hintgen.lint.unhinted import unhinted
from tracehint.hintgen.text.units import plural, size

RULE = LintRule("TP002", "reduce-without-collocation", "warning", "0.1.0")


def check(context: Context) -> Iterator[Finding]:
    """Members of reduce groups without a collocation hint, by template and reader."""
    sql = unhinted(
        "reduce",
        "name = 'DP' AND starts_with(value, 'collocation')",
        'count(DISTINCT p."group") AS groups',
    )
    for row in context.rows(sql):
        message = (
            f"{plural(row['files'], 'file')} ({size(row['bytes'])}) brought together in "
            f"{plural(row['groups'], 'task')} but placed apart"
        )
        yield context.finding(
            RULE, row, message, evidence=("groups",), assumed=context.placement_assumed()
        )
