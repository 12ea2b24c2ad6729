"""Most files of the run are tiny, and there are many of them.

## What it finds
Templates with at least 100 files of less than 64 KiB, in runs where such
files are at least half of all workflow files.

## Why it costs
Creating, opening and removing a file costs the metadata server the same
whatever its size. No placement hint repays its call on them.

## Example
One fit result of 200 bytes per pair of images, 2,833 pairs.

## What to do
Let each task append to one file per worker, write into an archive or a small
database, or keep the files in memory-backed scratch space (`/dev/shm`).

## What it cannot see
How fast the store's metadata server is: on local disks this may not matter.
"""

from __future__ import annotations

from collections.abc import Iterator

from tracehint.hintgen.lint.context import FILES_SQL, GROUP_SQL, Context
from tracehint.hintgen.lint.finding import Finding, LintRule
from tracehint.hintgen.text.units import plural, size

RULE = LintRule("TM001", "many-tiny-files", "info", "0.1.0")

_SQL = f"""
    WITH total AS (SELECT count(DISTINCT named) AS n,
                          count(DISTINCT named) FILTER (size_bytes < $tiny_file_bytes) AS tiny
                   FROM files WHERE data),
         uses AS (SELECT file, count(*) AS n FROM
                    (SELECT file FROM producers UNION ALL SELECT file FROM consumers) GROUP BY file)
    SELECT {FILES_SQL}, sum(f.size_bytes) AS bytes, sum(u.n)::BIGINT AS operations,
           max(total.tiny) / max(total.n) AS tiny_share
    FROM files f JOIN file_types ft USING (file) JOIN uses u USING (file), total
    WHERE f.data AND f.size_bytes < $tiny_file_bytes
      AND total.tiny >= $tiny_file_share * total.n
    GROUP BY {GROUP_SQL} HAVING count(DISTINCT f.named) >= $tiny_file_count"""


def check(context: Context) -> Iterator[Finding]:
    """Templates with many tiny files."""
    for row in context.rows(_SQL):
        message = (
            f"{plural(row['files'], 'file')} of {size(row['bytes'] / row['files'])} on average; "
            f"tiny files are {row['tiny_share']:.0%} of all"
        )
        yield context.finding(
            RULE,
            row,
            message,
            evidence=("tiny_share",),
            fix="collect them in one file per worker, an archive, or memory-backed scratch",
        )
