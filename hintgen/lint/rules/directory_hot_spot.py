"""One directory takes most of the metadata work of several tasks.

## What it finds
A directory below the data roots with at least 1,000 metadata operations
(creations included) that are at least half of the run's, from two or more
tasks.

## Why it costs
A directory has one owner on most metadata servers: its operations queue
there however many servers the store has.

## Example
3,000 tasks create and remove their files in the same `tmp/`.

## What to do
Give each task, or each worker, a directory of its own; where the store can,
spread the directory (`lfs setdirstripe`, BeeGFS metadata mirroring by
directory).

## What it cannot see
Stores that split large directories by themselves.
"""

from __future__ import annotations

from collections.abc import Iterator

from tracehint.hintgen.lint.context import Context
from tracehint.hintgen.lint.finding import Finding, LintRule
from tracehint.hintgen.text.units import number, plural

RULE = LintRule("TM004", "directory-hot-spot", "info", "0.1.0", needs=("bundle",))

_SQL = """
    WITH created AS (SELECT regexp_extract(path_text, '^(.*)/[^/]*$', 1) AS dir, task, type,
                            count(*) AS n FROM b_io WHERE created GROUP BY ALL),
         every AS (SELECT dir_text AS dir, task, type, count AS n FROM b_meta WHERE inside
                   UNION ALL SELECT * FROM created),
         total AS (SELECT sum(n) AS n FROM every),
         hot AS (SELECT dir, sum(n)::BIGINT AS n, count(DISTINCT task) AS tasks,
                        string_agg(DISTINCT type, ', ' ORDER BY type) AS types
                 FROM every GROUP BY dir)
    SELECT CASE WHEN h.dir = '' THEN './' ELSE h.dir || '/' END AS template, '' AS producers,
           h.types AS consumers, h.n AS operations, h.n AS calls, h.tasks, h.n / total.n AS share,
           (SELECT count(DISTINCT path) FROM files WHERE files.dir = h.dir) AS files, 0 AS bytes
    FROM hot h, total
    WHERE h.n >= $storm_ops AND h.n >= $hot_dir_share * total.n AND h.tasks > 1"""


def check(context: Context) -> Iterator[Finding]:
    """Directories that take most metadata operations."""
    for row in context.rows(_SQL):
        message = (
            f"{number(row['calls'])} metadata operations ({row['share']:.0%} of all) by "
            f"{plural(row['tasks'], 'task')} in one directory"
        )
        yield context.finding(
            RULE,
            row,
            message,
            evidence=("calls", "tasks", "share"),
            fix="give each task or worker a directory of its own",
        )
