"""A file that many tasks read, with one copy.

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

from __future__ import annotations

from collections.abc import Iterator

from tracehint.hintgen.lint.context import Context
from tracehint.hintgen.lint.finding import Finding, LintRule
from tracehint.hintgen.lint.unhinted import unhinted
from tracehint.hintgen.text.units import plural, size

RULE = LintRule("TP001", "broadcast-without-replicas", "warning", "0.1.0")


def check(context: Context) -> Iterator[Finding]:
    """Broadcast files without a Replication hint, by template."""
    sql = unhinted(
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
            RULE,
            row,
            message,
            evidence=("readers", "placement"),
            assumed=context.placement_assumed(),
        )
