"""A whole directory is declared as input, and the task uses little of it.

## What it finds
Declared inputs that are directories, of whose files (as far as the run
touched them) the task read less than half by bytes.

## Why it costs
The engine stages the directory whole, and every file in it becomes a
dependency: one new log file there makes the task run again.

## Example
A rule declares `proj/` and reads one image of 300.

## What to do
Declare the files, or a directory that holds only what the task needs.

## What it cannot see
Files in the directory that nothing in the run opened: they come on top.
"""

from __future__ import annotations

from collections.abc import Iterator

from tracehint.hintgen.lint.context import Context
from tracehint.hintgen.lint.finding import Finding, LintRule
from tracehint.hintgen.text.units import plural, size

RULE = LintRule("TD004", "over-declared-directory", "warning", "0.1.0", needs=("declared",))

# What lies in a directory is counted once, not once per task that declares it. In the order of
# bytes the names in `d/` are those from `d/` to `d0`: "0" follows "/".
_SQL = """
    WITH folder AS (SELECT DISTINCT path_text AS folder FROM d_dir WHERE direction = 'in'),
         last AS (SELECT folder, path_text, min(path) AS path, max(size_bytes) AS size_bytes
                  FROM folder JOIN files f ON f.path_text >= folder || '/'
                                          AND f.path_text < folder || '0'
                  GROUP BY folder, path_text),
         inside AS (SELECT folder, list_distinct(min(path, 5)) AS examples,
                           count(*) AS files, sum(size_bytes) AS bytes
                    FROM last GROUP BY folder),
         used AS (SELECT task, folder, sum(size_bytes) AS bytes
                  FROM (SELECT DISTINCT d.task, d.path_text AS folder, l.path_text, l.size_bytes
                        FROM d_dir d JOIN consumers c USING (task) JOIN files f USING (file)
                             JOIN last l ON l.folder = d.path_text AND l.path_text = f.path_text
                        WHERE d.direction = 'in')
                  GROUP BY task, folder),
         per_task AS (SELECT d.task, i.*, coalesce(u.bytes, 0) AS used_bytes
                      FROM (SELECT DISTINCT task, path_text AS folder FROM d_dir
                            WHERE direction = 'in') d
                           JOIN inside i USING (folder) LEFT JOIN used u USING (task, folder))
    SELECT folder || '/' AS template, max(files) AS files, any_value(examples) AS examples,
           '' AS producers, t.type AS consumers, sum(bytes) AS bytes,
           sum(bytes - used_bytes) AS network_bytes, count(*) AS tasks,
           sum(used_bytes) / sum(bytes) AS used_share
    FROM per_task JOIN work t USING (task)
    WHERE bytes > 0 AND used_bytes < $used_share * bytes
    GROUP BY folder, t.type HAVING sum(bytes - used_bytes) >= $min_bytes"""


def check(context: Context) -> Iterator[Finding]:
    """Declared directories of which little was read, by directory and task type."""
    for row in context.rows(_SQL):
        message = (
            f"{plural(row['tasks'], 'task')} declare a directory of {plural(row['files'], 'file')} "
            f"and read {row['used_share']:.0%} of its bytes"
            f" ({size(row['network_bytes'])} staged for nothing)"
        )
        yield context.finding(
            RULE,
            row,
            message,
            evidence=("tasks", "used_share"),
            assumed=("the engine stages declared inputs",),
            fix="declare the files that are read",
        )
