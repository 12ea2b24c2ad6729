"""The collector cannot see something that this run did.

## What it finds
Runs recorded by a collector with known blind spots where they show: files
whose bytes are not known exactly, or tasks of which no I/O at all was seen.

## Why it costs
Patterns and savings of those files rest on estimates; an unseen reader turns
a broadcast into a pipeline.

## Example
Darshan sees no statically linked program; the light mode of strace counts no
bytes.

## What to do
Record with a collector that sees it; `tracehint doctor` lists what each one
misses on this machine.

## What it cannot see
Blind spots that leave no trace at all, such as an unseen process that reads
what others read too.
"""

from __future__ import annotations

from collections.abc import Iterator

from tracehint.hintgen.lint.context import Context
from tracehint.hintgen.lint.finding import Finding, LintRule
from tracehint.hintgen.text.units import plural, size

RULE = LintRule("TH002", "blind-spot", "warning", "0.1.0")

_SQL = """
    WITH busy AS (SELECT task FROM producers UNION SELECT task FROM consumers)
    SELECT '' AS template, count(*) FILTER (exact_share < 0.95) AS files,
           coalesce(sum(size_bytes) FILTER (exact_share < 0.95), 0) AS bytes,
           list_distinct(min(path, 5) FILTER (exact_share < 0.95)) AS examples,
           (SELECT count(*) FROM work WHERE source <> 'declared'
            AND task NOT IN (FROM busy)) AS silent
    FROM files WHERE data"""


def check(context: Context) -> Iterator[Finding]:
    """One finding when a blind spot of the collector shows."""
    blind = context.analysis.run["completeness"]["blind_to"]
    (row,) = context.rows(_SQL)
    if not blind or not (row["files"] or row["silent"]):
        return
    parts = []
    if row["files"]:
        parts.append(f"{plural(row['files'], 'file')} ({size(row['bytes'])}) known by estimate")
    if row["silent"]:
        parts.append(f"{plural(row['silent'], 'task')} without any recorded I/O")
    message = f"{context.analysis.run['collector']} is blind to {', '.join(blind)}: " + ", ".join(
        parts
    )
    yield context.finding(RULE, row, message, evidence=("silent",), fix="tracehint doctor")
