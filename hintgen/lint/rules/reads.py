"""Bytes that are read needlessly, repeatedly, in small pieces or out of order."""

from __future__ import annotations

from collections.abc import Iterator

from tracehint.hintgen.lint.context import FILES_SQL, GROUP_SQL, Context
from tracehint.hintgen.lint.finding import Finding, lint_rule
from tracehint.hintgen.text.units import size
from tracehint.schemas.wording import plural

_PARTLY_USED_FILE = """\
A file of which the run reads only a part.

## What it finds
Files of at least 1 MiB of which all tasks together read less than half.

## Why it costs
Engines and stores that move whole files (staging, `DP=local` copies,
replicas) move and keep the rest for nothing.

## Example
Each task needs one chromosome of a 3 GiB reference that is staged whole.

## What to do
Cut the file once, before the run, or read the part in place instead of
staging the whole.

## What it cannot see
Whether another run with other parameters needs the rest. A saving is stated
only where the file is a declared input or was copied by the engine; on a
store that serves single ranges the unread part costs space only.
"""


# Union of the ranges of all readers (gaps and islands) for the files where no single reader
# already covers enough.
_PARTLY_USED_FILE_SQL = f"""
    WITH candidate AS (SELECT file FROM consumers JOIN work USING (task) GROUP BY file
                       HAVING max(coalesce(cover, 1)) < $used_share),
         part AS (SELECT file, r.r[1] AS a, r.r[2] AS b
                  FROM consumers JOIN candidate USING (file), unnest(ranges) AS r(r)),
         ahead AS (SELECT file, a, b, max(b) OVER (PARTITION BY file ORDER BY a, b
                       ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS reached FROM part),
         used AS (SELECT file, sum(greatest(0, b - greatest(a, coalesce(reached, 0)))) AS bytes
                  FROM ahead GROUP BY file)
    SELECT {FILES_SQL}, sum(f.size_bytes) AS bytes, sum(u.bytes) AS used_bytes
    FROM used u JOIN files f USING (file) JOIN file_types ft USING (file)
    WHERE f.data AND f.size_bytes >= $min_storage_bytes AND u.bytes < $used_share * f.size_bytes
    GROUP BY {GROUP_SQL}"""


@lint_rule("TV003", "info", "0.1.0", _PARTLY_USED_FILE)
def partly_used_file(context: Context) -> Iterator[Finding]:
    """Files of which less than half is read, by template."""
    for row in context.rows(_PARTLY_USED_FILE_SQL):
        share = row["used_bytes"] / row["bytes"]
        message = (
            f"{share:.0%} of {plural(row['files'], 'file')} ({size(row['bytes'])}) is read "
            "by all tasks together"
        )
        yield context.finding(
            partly_used_file,
            row,
            message,
            evidence=("used_bytes",),
            fix="cut out the part before the run, or read it in place instead of staging the whole",
        )


_REREAD_FILE = """\
A task reads the same bytes of a file several times.

## What it finds
Files of which a task read at least 1.5 times as many bytes as it distinctly
needed, with at least 1 MiB read again.

## Why it costs
What no cache holds crosses the network again on every pass.

## Example
A program makes one pass per column over a 2 GiB table.

## What to do
Read once and keep, copy the file to node-local space first, or ask the store
for a cache of the working set (`CacheSize`).

## What it cannot see
Whether a page cache served the second pass.
"""


_REREAD_FILE_SQL = f"""
    SELECT {FILES_SQL}, sum(c.unique_bytes) AS bytes,
           sum(c.bytes) / sum(c.unique_bytes) AS factor, count(DISTINCT c.task) AS tasks
    FROM consumers c JOIN work t USING (task) JOIN files f USING (file)
         JOIN file_types ft USING (file)
    WHERE f.data AND c.unique_bytes > 0 AND c.bytes >= $reread_factor * c.unique_bytes
    GROUP BY {GROUP_SQL} HAVING sum(c.bytes - c.unique_bytes) >= $min_storage_bytes"""


@lint_rule("TV004", "info", "0.1.0", _REREAD_FILE)
def reread_file(context: Context) -> Iterator[Finding]:
    """Files that single tasks read more than once, by template."""
    for row in context.rows(_REREAD_FILE_SQL):
        message = (
            f"{plural(row['tasks'], 'task')} read {plural(row['files'], 'file')} "
            f"({size(row['bytes'])}) {row['factor']:.1f} times over"
        )
        yield context.finding(
            reread_file,
            row,
            message,
            evidence=("factor", "tasks"),
            assumed=("no cache on the reading node",),
        )


_SMALL_OPERATIONS = """\
Many reads or writes of less than 4 KiB.

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


_SMALL_OPERATIONS_SQL = """
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


@lint_rule("TV005", "warning", "0.1.0", _SMALL_OPERATIONS, needs=("bundle",))
def small_operations(context: Context) -> Iterator[Finding]:
    """Templates on which a task type makes many small calls."""
    for row in context.rows(_SMALL_OPERATIONS_SQL):
        mean = row["bytes"] / row["ops"]
        message = (
            f"{plural(row['ops'], 'call')} on {plural(row['files'], 'file')}, "
            f"{row['operations'] / row['ops']:.0%} of them under 4 KiB (mean {size(mean)})"
        )
        yield context.finding(
            small_operations,
            row,
            message,
            evidence=("ops", "operations"),
            fix="buffer the calls in the program, 1 MiB or more at a time",
        )


_RANDOM_ACCESS = """\
A file is read whole, but in an order that defeats read-ahead.

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


_RANDOM_ACCESS_SQL = """
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


@lint_rule("TV006", "info", "0.1.0", _RANDOM_ACCESS, needs=("bundle",))
def random_access(context: Context) -> Iterator[Finding]:
    """Files read whole in random order, by template and task type."""
    for row in context.rows(_RANDOM_ACCESS_SQL):
        message = (
            f"{plural(row['files'], 'file')} ({size(row['bytes'])} read) in random order: "
            f"{row['random_share']:.0%} of {plural(row['ops'], 'call')} jump"
        )
        yield context.finding(
            random_access,
            row,
            message,
            evidence=("ops", "random_share"),
            fix="read in file order, or ask the store for small blocks (BlockSize)",
        )
