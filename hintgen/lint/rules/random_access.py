"""A file is read whole, but in an order that defeats read-ahead.

## What it finds
Sessions of at least 100 calls of which more than half did not begin
where the one before ended, by tasks that read at least 80 % of the file all
the same.

## Why it costs
Read-ahead fetches what is not wanted next; disks seek; a striping store talks
to another server for every call.

## Example
A program reads a row-major image column by column.

## What to do
Read in file order into memory, transpose there; or store the data in the
order in which it is read. Otherwise ask the store for small blocks
(`BlockSize`).

## What it cannot see
Calls that several threads make in turn on one descriptor can look random and
be sequential together.
"""

from __future__ import annotations

from collections.abc import Iterator

from tracehint.hintgen.lint.context import Context
from tracehint.hintgen.lint.finding import Finding, LintRule
from tracehint.hintgen.text.units import plural, size

RULE = LintRule("TV006", "random-access", "info", "0.1.0", needs=("bundle",))

_SQL = """
    WITH whole AS (SELECT c.task, f.path_text, f.path, f.template
                   FROM consumers c JOIN files f USING (file)
                   WHERE f.data AND c.cover >= 0.8 AND f.size_bytes >= $min_storage_bytes)
    SELECT w.template, count(DISTINCT w.path) AS files, list_distinct(min(w.path, 5)) AS examples,
           '' AS producers, b.type AS consumers, sum(b.read_bytes)::BIGINT AS bytes,
           sum(b.read_ops)::BIGINT AS ops,
           1 - sum(b.seq_ops) / sum(b.read_ops + b.write_ops) AS random_share
    FROM b_io b JOIN whole w ON w.task = b.task AND w.path_text = b.path_text
    WHERE b.read_ops >= $random_ops
      AND b.seq_ops < (1 - $random_share) * (b.read_ops + b.write_ops - 1)
    GROUP BY w.template, b.type"""


def check(context: Context) -> Iterator[Finding]:
    """Files read whole in random order, by template and task type."""
    for row in context.rows(_SQL):
        message = (
            f"{plural(row['files'], 'file')} ({size(row['bytes'])} read) in random order: "
            f"{row['random_share']:.0%} of {plural(row['ops'], 'call')} jump"
        )
        yield context.finding(
            RULE,
            row,
            message,
            evidence=("ops", "random_share"),
            fix="read in file order, or ask the store for small blocks (BlockSize)",
        )
