"""A hint was set after the file already had bytes.

## What it finds
Files on which `DP` or `BlockSize` was set after the first write, or
`Replication` after the first read.

## Why it costs
Most stores place a file when it is created. The attribute is stored and
changes nothing: a tag without an effect looks like a tag with one.

## Example
A rule runs `mProject ... && setfattr -n user.DP -v local out.fits`.

## What to do
Set the hint before the producer starts: on the directory, or on the empty
file, as the scripts of `tracehint emit` do.

## What it cannot see
Stores that migrate data when a hint changes; there the finding is harmless.
"""

from __future__ import annotations

from collections.abc import Iterator

from tracehint.hintgen.lint.context import FILES_SQL, GROUP_SQL, Context
from tracehint.hintgen.lint.finding import Finding, LintRule
from tracehint.hintgen.text.units import plural, size

RULE = LintRule("TP009", "late-hint", "warning", "0.1.0", needs=("bundle",))

_SQL = f"""
    WITH used AS (SELECT f.file, f.path_text, min(p.first_s) AS written_s, min(c.first_s) AS read_s
                  FROM files f LEFT JOIN producers p USING (file) LEFT JOIN consumers c USING (file)
                  WHERE f.path_text IN (SELECT path_text FROM in_force) GROUP BY ALL),
         late AS (SELECT u.file, h.name, h.set_s FROM in_force h JOIN used u USING (path_text)
                  WHERE (h.name IN ('DP', 'BlockSize') AND h.set_s > u.written_s)
                     OR (h.name = 'Replication' AND h.set_s > u.read_s))
    SELECT {FILES_SQL}, sum(f.size_bytes) AS bytes, string_agg(DISTINCT l.name, ', ') AS hints
    FROM (SELECT file, string_agg(DISTINCT name, ', ' ORDER BY name) AS name FROM late
          GROUP BY file) l
         JOIN files f USING (file) JOIN file_types ft USING (file)
    GROUP BY {GROUP_SQL}, l.name"""


def check(context: Context) -> Iterator[Finding]:
    """Files that were hinted after their first use, by template."""
    for row in context.rows(_SQL) if context.hinted else ():
        message = (
            f"{row['hints']} set on {plural(row['files'], 'file')} ({size(row['bytes'])}) after "
            "the data was there"
        )
        yield context.finding(RULE, row, message, evidence=("hints",))
