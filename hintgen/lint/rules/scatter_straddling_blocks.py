"""Tasks that read disjoint regions of a file, with blocks that hold parts of two regions.

## What it finds
Files with the primary label *scatter* whose regions do not start and end on
block boundaries of the store, so that one block serves two readers.

## Why it costs
A block lies on one node. A reader placed at its region still fetches the part
of the block that was placed with the neighbour; with a block larger than the
region the whole file lies in one place.

## Example
16 tasks read 5 MiB each of an 80 MiB file that the store cuts into blocks of
4 MiB: three of four boundaries fall inside a block.

## What to do
Create the file with a block size that divides the region, and say how many
blocks make a region: `BlockSize=<bytes>` and `DP=scatter|<blocks>`.

## What it cannot see
The block size of the store, unless it was recorded. `--block-size` states it;
the default is 4 MiB. The finding says which one it took.
"""

from __future__ import annotations

from collections.abc import Iterator

from tracehint.hintgen.lint.blocks import BLOCK_SQL, PART_SQL, by_template
from tracehint.hintgen.lint.context import Context
from tracehint.hintgen.lint.finding import Finding, LintRule
from tracehint.hintgen.text.units import plural, size

RULE = LintRule("TP004", "scatter-straddling-blocks", "warning", "0.1.0")

# A reader's region of a block is what it read of it. Of a block with several readers all but
# the largest part crosses the network. Only a range's first and last block can be shared
# (a block inside a range is read by that reader alone, or the file would be no scatter).
_SQL = f"""
    WITH p AS (SELECT * FROM primary_label WHERE pattern = 'scatter'),{BLOCK_SQL},
         own AS MATERIALIZED (SELECT file, task, ranges FROM consumers
                              WHERE file IN (SELECT file FROM p) AND NOT peek),
         region AS (SELECT c.file, c.task, r.r[1] AS a, r.r[2] AS b
                    FROM own c, unnest(c.ranges) AS r(r)),{PART_SQL},
         whole AS (SELECT file, k, task, sum(bytes) AS bytes FROM part GROUP BY ALL),
         shared AS (SELECT file, k, sum(bytes) - max(bytes) AS moved
                    FROM whole GROUP BY file, k HAVING count(*) > 1),
{by_template("n_readers", "readers")}"""


def check(context: Context) -> Iterator[Finding]:
    """Scatter files with blocks that serve several readers, by template."""
    for row in context.rows(_SQL):
        message = (
            f"{plural(row['files'], 'file')} ({size(row['bytes'])}) read in disjoint regions by "
            f"{plural(row['readers'], 'task')}: {plural(row['blocks'], 'block')} of "
            f"{size(row['block_size'])} straddle{'s' if row['blocks'] == 1 else ''} regions"
        )
        yield context.finding(
            RULE,
            row,
            message,
            evidence=("blocks", "block_size", "readers"),
            assumed=(f"block size {size(row['block_size'])}", *context.placement_assumed()[1:]),
        )
