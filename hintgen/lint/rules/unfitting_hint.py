"""A hint was in force that does not fit the way in which the file was used.

## What it finds
Files that carried a placement hint (`DP`, `Replication`) that belongs to
another pattern than the primary label that the run shows.

## Why it costs
The store followed the hint: it kept a file local that everybody reads, or
made copies of one that a single task reads.

## Example
A table was tagged `DP=local` for its single reader; since the last change of
the workflow twelve tasks read it.

## What to do
Derive the hints anew from this run and replace the old ones.

## What it cannot see
Hints set before the recording or by a program that calls `setxattr` itself:
state those with `--hints-in-force`.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from tracehint.analyzer.catalogue import asking_for
from tracehint.hintgen.lint.context import CONFIDENCE_SQL, FILES_SQL, GROUP_SQL, SAVES_SQL, Context
from tracehint.hintgen.lint.finding import Finding, LintRule
from tracehint.hintgen.text.units import plural, size

RULE = LintRule("TP008", "unfitting-hint", "warning", "0.1.0")

# hint -> patterns that it serves; a label that is not listed anywhere decides nothing
_FITS = {hint: asking_for(hint) for hint in ("local", "collocation", "scatter", "replication")}
_JUDGED = tuple(sorted({*itertools.chain(*_FITS.values()), *asking_for("distribute")}))


def check(context: Context) -> Iterator[Finding]:
    """Hinted files whose primary label asks for something else, by template and hint."""
    if not context.hinted:
        return
    fits = ", ".join(f"('{h}', '{p}')" for h, patterns in _FITS.items() for p in patterns)
    judged = ", ".join(f"'{p}'" for p in _JUDGED)
    sql = f"""
        WITH fits(kind, pattern) AS (VALUES {fits}),
             hint AS (SELECT DISTINCT path_text, name || '=' || value AS shown,
                             CASE WHEN name = 'Replication' THEN 'replication'
                                  ELSE split_part(value, '|', 1) END AS kind
                      FROM in_force WHERE name = 'DP'
                         OR (name = 'Replication' AND try_cast(value AS BIGINT) > 1))
        SELECT {FILES_SQL}, sum(f.size_bytes) AS bytes, {SAVES_SQL},
               {CONFIDENCE_SQL}, h.kind AS hint, p.pattern AS pattern, min(h.shown) AS shown
        FROM hint h JOIN files f USING (path_text) JOIN file_types ft USING (file)
             JOIN primary_label p USING (file)
        WHERE h.kind IN (SELECT kind FROM fits) AND p.pattern IN ({judged})
          AND (h.kind, p.pattern) NOT IN (SELECT (kind, pattern) FROM fits)
        GROUP BY {GROUP_SQL}, h.kind, p.pattern HAVING sum(f.size_bytes) >= $min_bytes"""
    for row in context.rows(sql):
        message = (
            f"{plural(row['files'], 'file')} ({size(row['bytes'])}) carried {row['shown']} but "
            f"were used as {row['pattern'].replace('_', ' ')}"
        )
        yield context.finding(RULE, row, message, evidence=("hint", "pattern"))
