"""A file of which the run reads only a part.

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

from __future__ import annotations

from collections.abc import Iterator

from tracehint.hintgen.lint.context import FILES_SQL, GROUP_SQL, Context
from tracehint.hintgen.lint.finding import Finding, LintRule
from tracehint.hintgen.text.units import plural, size

RULE = LintRule("TV003", "partly-used-file", "info", "0.1.0")

# Union of the ranges of all readers (gaps and islands) for the files where no single reader
# already covers enough.
_SQL = f"""
    WITH candidate AS (SELECT file FROM consumers JOIN work USING (task) GROUP BY file
                       HAVING max(coalesce(cover, 1)) < $used_share),
         part AS (SELECT file, r.r[1] AS a, r.r[2] AS b
                  FROM consumers JOIN candidate USING (file), unnest(ranges) AS r(r)),
         ahead AS (SELECT file, a, b, max(b) OVER (PARTITION BY file ORDER BY a, b
                       ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS reached FROM part),
         used AS (SELECT file, sum(greatest(0, b - greatest(a, coalesce(reached, 0)))) AS bytes
                  FROM ahead GROUP BY file),
         staged AS (SELECT file FROM edges WHERE via = 'engine_copy'
                    UNION SELECT file FROM d_file
                    WHERE direction = 'in' AND file IN (SELECT file FROM used))
    SELECT {FILES_SQL}, sum(f.size_bytes) AS bytes, sum(u.bytes) AS used_bytes,
           coalesce(sum(f.size_bytes - u.bytes) FILTER (f.file IN (FROM staged)), 0)
           AS network_bytes
    FROM used u JOIN files f USING (file) JOIN file_types ft USING (file)
    WHERE f.data AND f.size_bytes >= $min_storage_bytes AND u.bytes < $used_share * f.size_bytes
    GROUP BY {GROUP_SQL}"""


def check(context: Context) -> Iterator[Finding]:
    """Files of which less than half is read, by template."""
    for row in context.rows(_SQL):
        share = row["used_bytes"] / row["bytes"]
        message = (
            f"{share:.0%} of {plural(row['files'], 'file')} ({size(row['bytes'])}) is read "
            "by all tasks together"
        )
        yield context.finding(
            RULE,
            row,
            message,
            evidence=("used_bytes",),
            fix="cut out the part before the run, or read it in place instead of staging the whole",
        )
