"""Several tasks that write one file at the same time, with blocks that two of them share.

## What it finds
Files with the primary label *gather* (several producers own disjoint ranges)
in which at least one block of the store holds ranges of two tasks that wrote
at the same time.

## Why it costs
A block has one lock and one home. Two writers of one block wait for each
other, and the bytes of all but one of them cross the network.

## Example
Ten ranks write 1 MiB records into a file with blocks of 4 MiB: four ranks
queue for every block.

## What to do
Give the file a block size that divides the region of one writer
(`BlockSize=<bytes>`) before it is created, or let the writers align their
regions to the block.

## What it cannot see
The block size of the store, unless a hint set it (`BlockSize`); `--block-size` states it.
Writers whose library collects the writes before they reach the store.
"""

from __future__ import annotations

from collections.abc import Iterator

from tracehint.hintgen.lint.blocks import BLOCK_SQL, PART_SQL, by_template
from tracehint.hintgen.lint.context import Context
from tracehint.hintgen.lint.finding import Finding, LintRule
from tracehint.hintgen.text.units import plural, size

RULE = LintRule("TP005", "gather-sharing-blocks", "warning", "0.1.0")

# As in scatter-straddling-blocks, on what was written; a block counts when one of its writers
# began before an earlier one had finished.
_SQL = f"""
    WITH p AS (SELECT * FROM primary_label WHERE pattern = 'gather'),{BLOCK_SQL},
         own AS MATERIALIZED (SELECT file, task, first_s, last_s, ranges FROM producers
                              WHERE file IN (SELECT file FROM p) AND NOT superseded),
         region AS (SELECT c.file, c.task, c.first_s, c.last_s, r.r[1] AS a, r.r[2] AS b
                    FROM own c, unnest(c.ranges) AS r(r)),{PART_SQL},
         whole AS (SELECT file, k, task, sum(bytes) AS bytes, min(first_s) AS first_s,
                          max(last_s) AS last_s FROM part GROUP BY file, k, task),
         timed AS (SELECT *, first_s < max(last_s) OVER (
                       PARTITION BY file, k ORDER BY first_s, task
                       ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS meets FROM whole),
         shared AS (SELECT file, k, sum(bytes) - max(bytes) AS moved
                    FROM timed GROUP BY file, k HAVING bool_or(meets)),
{by_template("n_producers", "writers")}"""


def check(context: Context) -> Iterator[Finding]:
    """Gather files with blocks that several tasks wrote at the same time, by template."""
    for row in context.rows(_SQL):
        message = (
            f"{plural(row['files'], 'file')} ({size(row['bytes'])}) written by "
            f"{plural(row['writers'], 'task')}: {plural(row['blocks'], 'block')} of "
            f"{size(row['block_size'])} with writers at the same time"
        )
        yield context.finding(
            RULE,
            row,
            message,
            evidence=("blocks", "block_size", "writers"),
            assumed=(f"block size {size(row['block_size'])}",),
        )
