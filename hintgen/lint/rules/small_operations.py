"""Many reads or writes of less than 4 KiB.

## What it finds
Task types that make at least 1,000 calls on files of one template, at least
half of them of less than 4 KiB, in sessions of 16 calls or more.

## Why it costs
Each call pays the full way to the store: on a parallel file system that is
hundreds of microseconds for a few bytes.

## Example
A script writes a table cell by cell with unbuffered `write`.

## What to do
Let the language buffer (`buffering=1 << 20`, `setvbuf`, `BufferedWriter`), or
write to node-local space and copy once.

## What it cannot see
Whether a client cache joins the calls before they leave the node.
"""

from __future__ import annotations

from collections.abc import Iterator

from tracehint.hintgen.lint.context import Context
from tracehint.hintgen.lint.finding import Finding, LintRule
from tracehint.hintgen.text.units import plural, size

RULE = LintRule("TV005", "small-operations", "warning", "0.1.0", needs=("bundle",))

_SQL = """
    SELECT f.template, count(DISTINCT f.path) AS files,
           list_distinct(min(f.path, 5)) AS examples,
           CASE WHEN sum(b.write_ops) > 0 THEN b.type ELSE '' END AS producers,
           CASE WHEN sum(b.read_ops) > 0 THEN b.type ELSE '' END AS consumers,
           sum(b.read_bytes + b.write_bytes)::BIGINT AS bytes,
           sum(b.read_ops + b.write_ops)::BIGINT AS ops, sum(b.small_ops)::BIGINT AS operations
    FROM b_io b JOIN (SELECT DISTINCT path, path_text, template FROM files
                   WHERE data AND path_text IN (SELECT path_text FROM b_io)) f
         USING (path_text)
    WHERE b.read_ops + b.write_ops >= 16
    GROUP BY f.template, b.type
    HAVING ops >= $small_op_count AND operations >= $small_op_share * ops"""


def check(context: Context) -> Iterator[Finding]:
    """Templates on which a task type makes many small calls."""
    for row in context.rows(_SQL):
        mean = row["bytes"] / row["ops"]
        message = (
            f"{plural(row['ops'], 'call')} on {plural(row['files'], 'file')}, "
            f"{row['operations'] / row['ops']:.0%} of them under 4 KiB (mean {size(mean)})"
        )
        yield context.finding(
            RULE,
            row,
            message,
            evidence=("ops", "operations"),
            fix="buffer the calls in the program, 1 MiB or more at a time",
        )
