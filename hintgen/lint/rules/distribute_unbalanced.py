"""One task deals out files, and one consumer gets far more than its share.

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

from __future__ import annotations

from collections.abc import Iterator

from tracehint.hintgen.lint.context import Context
from tracehint.hintgen.lint.finding import Finding, LintRule
from tracehint.hintgen.text.units import plural, size

RULE = LintRule("TP006", "distribute-unbalanced", "info", "0.1.0")

_SQL = """
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


def check(context: Context) -> Iterator[Finding]:
    """Distribute groups with one consumer far above the mean."""
    for row in context.rows(_SQL):
        message = (
            f"{plural(row['files'], 'file')} for {plural(row['readers'], 'task')}: the busiest "
            f"reads {size(row['most'])}, the mean is {size(row['mean'])}"
        )
        yield context.finding(
            RULE,
            row,
            message,
            evidence=("readers", "most", "mean"),
            fix="cut the data by bytes, or into more pieces than there are workers",
        )
