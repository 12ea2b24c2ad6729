"""Files whose placement in the store ignores their use."""

from __future__ import annotations

from collections.abc import Iterator

from tracehint.hintgen.lint.context import Context
from tracehint.hintgen.lint.finding import Finding, lint_rule
from tracehint.hintgen.lint.queries import BLOCK_SQL, PART_SQL, by_template, select_unhinted
from tracehint.hintgen.text.units import size
from tracehint.schemas.wording import plural

_BROADCAST_WITHOUT_REPLICAS = """\
A file that many tasks read, with one copy.

## What it finds
Files with the primary label *broadcast* (several tasks read most of the same
bytes) for which no `Replication` hint was in force.

## Why it costs
All readers pull their bytes from the same copy. The node that holds it, or the
stripes of the file, become the bottleneck exactly when all readers start at
the same time.

## Example
A calibration table of 40 MiB that 64 workers read: 2.5 GiB leave one place.

## What to do
Ask the store for replicas before the readers start: `Replication=<n>`, one
copy for every two or three concurrent readers, never more than nodes. The
fix line writes the hint for every store that tracehint knows.

## What it cannot see
Replicas that the store makes by default, client caches, and hints that were
set before the run. State those with `--hints-in-force`.
"""


@lint_rule("TP001", "warning", "0.1.0", _BROADCAST_WITHOUT_REPLICAS)
def broadcast_without_replicas(context: Context) -> Iterator[Finding]:
    """Broadcast files without a Replication hint, by template."""
    sql = select_unhinted(
        "broadcast",
        "name = 'Replication'",
        "max(ft.n_readers) AS readers",
        "min(p.placement) AS placement",
    )
    for row in context.rows(sql):
        message = (
            f"{plural(row['files'], 'file')} ({size(row['bytes'])}) with a single copy, read by "
            f"{'up to ' if row['files'] > 1 else ''}{plural(row['readers'], 'task')}"
            f"{' each' if row['files'] > 1 else ''}"
        )
        yield context.finding(
            broadcast_without_replicas,
            row,
            message,
            evidence=("readers", "placement"),
            assumed=context.placement_assumed(),
        )


_REDUCE_WITHOUT_COLLOCATION = """\
Files of many tasks that one task reads, spread over the nodes.

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


@lint_rule("TP002", "warning", "0.1.0", _REDUCE_WITHOUT_COLLOCATION)
def reduce_without_collocation(context: Context) -> Iterator[Finding]:
    """Members of reduce groups without a collocation hint, by template and reader."""
    sql = select_unhinted(
        "reduce",
        "name = 'DP' AND starts_with(value, 'collocation')",
        'count(DISTINCT p."group") AS groups',
    )
    for row in context.rows(sql):
        message = (
            f"{plural(row['files'], 'input')} ({size(row['bytes'])}) of "
            f"{plural(row['groups'], 'task')} not co-located"
        )
        yield context.finding(
            reduce_without_collocation,
            row,
            message,
            evidence=("groups",),
            assumed=context.placement_assumed(),
        )


_PIPELINE_PLACED_APART = """\
A file that goes from one task to the next over the network.

## What it finds
Files with the primary label *pipeline* (one producer, one consumer) without a
`DP=local` hint.

## Why it costs
Striped over N nodes, (N-1)/N of the bytes cross the network twice, once to be
written and once to be read, although a local disk and a scheduler that runs
the consumer there would move none.

## Example
`mDiff` writes a difference image, `mFitplane` reads it and no other task
does.

## What to do
Tag the file `DP=local` before its producer writes it, and let the engine run
the consumer on the node of the file (`tracehint emit --workflow-engine`).

## What it cannot see
Stores that write locally by default: set `--default-placement local`.
"""


@lint_rule("TP003", "warning", "0.1.0", _PIPELINE_PLACED_APART)
def pipeline_placed_apart(context: Context) -> Iterator[Finding]:
    """Pipeline files without a DP=local hint, by template."""
    if context.analysis.options.default_placement == "local":
        return
    sql = select_unhinted("pipeline", "name = 'DP' AND value = 'local'")
    for row in context.rows(sql):
        message = (
            f"{plural(row['files'], 'intermediate file')} ({size(row['bytes'])}) not kept local "
            "to the producer"
        )
        yield context.finding(
            pipeline_placed_apart, row, message, assumed=context.placement_assumed()
        )


_SCATTER_STRADDLING_BLOCKS = """\
Tasks that read disjoint regions of a file, with blocks that hold parts of two regions.

## What it finds
Files with the primary label *scatter* whose regions do not start and end on
block boundaries of the store, so that one block serves two readers.

## Why it costs
A block is stored on one node. A reader placed at its region still fetches the part
of the block that was placed with the neighbour; with a block larger than the
region the whole file is in one place.

## Example
16 tasks read 5 MiB each of an 80 MiB file that the store cuts into blocks of
4 MiB: three of four boundaries fall inside a block.

## What to do
Create the file with a block size that divides the region, and state how many
blocks make a region: `BlockSize=<bytes>` and `DP=scatter|<blocks>`.

## What it cannot see
The block size of the store, unless it was recorded. `--block-size` states it;
the default is 4 MiB. The finding states the one it used.
"""


# A reader's region of a block is the part that it read. Of a block with several readers, all but
# the largest part crosses the network. Only a range's first and last block can be shared
# (a block inside a range has one reader, otherwise the file would not be a scatter).
_SCATTER_STRADDLING_BLOCKS_SQL = f"""
    WITH p AS (SELECT * FROM primary_label WHERE pattern = 'scatter'),{BLOCK_SQL},
         own AS MATERIALIZED (SELECT file, task, ranges FROM consumers
                              WHERE file IN (SELECT file FROM p) AND NOT peek),
         region AS (SELECT c.file, c.task, r.r[1] AS a, r.r[2] AS b
                    FROM own c, unnest(c.ranges) AS r(r)),{PART_SQL},
         whole AS (SELECT file, k, task, sum(bytes) AS bytes FROM part GROUP BY ALL),
         shared AS (SELECT file, k, sum(bytes) - max(bytes) AS moved
                    FROM whole GROUP BY file, k HAVING count(*) > 1),
{by_template("n_readers", "readers")}"""


@lint_rule("TP004", "warning", "0.1.0", _SCATTER_STRADDLING_BLOCKS)
def scatter_straddling_blocks(context: Context) -> Iterator[Finding]:
    """Scatter files with blocks that serve several readers, by template."""
    for row in context.rows(_SCATTER_STRADDLING_BLOCKS_SQL):
        message = (
            f"{plural(row['files'], 'file')} ({size(row['bytes'])}) read in disjoint regions by "
            f"{plural(row['readers'], 'task')}: {plural(row['blocks'], 'block')} of "
            f"{size(row['block_size'])} straddle{'s' if row['blocks'] == 1 else ''} regions"
        )
        yield context.finding(
            scatter_straddling_blocks,
            row,
            message,
            evidence=("blocks", "block_size", "readers"),
            assumed=(f"block size {size(row['block_size'])}", *context.placement_assumed()[1:]),
        )


_GATHER_SHARING_BLOCKS = """\
Several tasks that write one file at the same time, with blocks that two of them share.

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


# As in scatter-straddling-blocks, for written ranges; a block counts if one of its writers started
# before an earlier one had finished.
_GATHER_SHARING_BLOCKS_SQL = f"""
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


@lint_rule("TP005", "warning", "0.1.0", _GATHER_SHARING_BLOCKS)
def gather_sharing_blocks(context: Context) -> Iterator[Finding]:
    """Gather files with blocks that several tasks wrote at the same time, by template."""
    for row in context.rows(_GATHER_SHARING_BLOCKS_SQL):
        message = (
            f"{plural(row['files'], 'file')} ({size(row['bytes'])}) written by "
            f"{plural(row['writers'], 'task')}: {plural(row['blocks'], 'block')} of "
            f"{size(row['block_size'])} with writers at the same time"
        )
        yield context.finding(
            gather_sharing_blocks,
            row,
            message,
            evidence=("blocks", "block_size", "writers"),
            assumed=(f"block size {size(row['block_size'])}",),
        )


_DISTRIBUTE_UNBALANCED = """\
One task deals out files, and one consumer gets far more than its share.

## What it finds
Groups with the primary label *distribute* in which the busiest consumer reads
at least twice the mean, unless all of the group's files had the distribute hint
(`DP=distribute|...`): then their bytes are balanced over nodes.

## Why it costs
The step is over when its last task is. Placed evenly by count, the node of
the busiest consumer carries a multiple of the bytes of the others.

## Example
A splitter cuts by name, not by size: one of ten chunks holds half the data.

## What to do
Cut by bytes, into more pieces than there are workers, or place the pieces by
size: the distribute hint balances bytes over the consumers' nodes.

## What it cannot see
Whether the compute time follows the bytes.
"""


_DISTRIBUTE_UNBALANCED_SQL = """
    WITH member AS (SELECT g."group", unnest(g.files) AS file FROM groups g
                    WHERE g.pattern = 'distribute' AND g."primary"),
         hinted AS (SELECT path_text FROM in_force
                    WHERE name = 'DP' AND value LIKE 'distribute|%'),
         load AS (SELECT m."group", c.task, sum(c.bytes) AS bytes
                  FROM member m JOIN consumers c USING (file) JOIN work t USING (task)
                  WHERE NOT c.peek GROUP BY ALL),
         share AS (SELECT "group", count(*) AS readers, max(bytes) AS most, avg(bytes) AS mean
                   FROM load GROUP BY "group")
    SELECT CASE WHEN count(DISTINCT f.template) = 1 THEN min(f.template)
                ELSE count(DISTINCT f.template) || ' kinds of files' END AS template,
           count(DISTINCT f.named) AS files, list_distinct(min(f.path, 5)) AS examples,
           min(ft.producers) AS producers, min(ft.consumers) AS consumers,
           sum(f.size_bytes) AS bytes, s.readers, s.most, s.mean
    FROM share s JOIN member m USING ("group") JOIN files f USING (file)
         JOIN file_types ft USING (file)
    WHERE s.most >= $unbalanced_factor * s.mean AND s.most - s.mean >= $min_storage_bytes
          AND s."group" IN (SELECT "group" FROM member JOIN files USING (file)
                            WHERE path_text NOT IN (SELECT path_text FROM hinted))
    GROUP BY s."group", s.readers, s.most, s.mean"""


@lint_rule("TP006", "info", "0.1.0", _DISTRIBUTE_UNBALANCED)
def distribute_unbalanced(context: Context) -> Iterator[Finding]:
    """Distribute groups with one consumer far above the mean."""
    for row in context.rows(_DISTRIBUTE_UNBALANCED_SQL):
        message = (
            f"{plural(row['files'], 'file')} for {plural(row['readers'], 'task')}: the busiest "
            f"reads {size(row['most'])}, the mean is {size(row['mean'])}"
        )
        yield context.finding(
            distribute_unbalanced,
            row,
            message,
            evidence=("readers", "most", "mean"),
            fix="cut the data by bytes, or into more pieces than there are workers",
        )
