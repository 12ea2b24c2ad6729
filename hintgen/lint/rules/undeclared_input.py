"""A task read a file that the workflow does not declare as its input.

## What it finds
Files that a task read, that are not among its declared inputs or outputs nor
below a declared directory. It is an *error* where another task of the run
wrote the file and the declared graph does not order that task before the
reader: the run worked only by luck.

## Why it costs
The engine may start the reader before the file is complete. On a remote node,
in a container or a sandbox, the file is not there at all.

## Example
A rule reads `params.tbl`, which a rule beside it writes; serially it works,
with `-j 8` sometimes.

## What to do
Add the file to the rule's inputs.

## What it cannot see
Whether the file is meant to be found outside the workflow (site
configuration): put such findings into the baseline.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pyarrow as pa

from tracehint.analyzer.arrays import Bools, ints
from tracehint.hintgen.lint.context import Context
from tracehint.hintgen.lint.finding import Finding, LintRule
from tracehint.hintgen.reach import Reach
from tracehint.hintgen.text.units import plural, size

Key = tuple[str, str]

RULE = LintRule("TD001", "undeclared-input", "warning", "0.1.0", needs=("declared",))

# Jobs with `run:` or `script:` read the workflow again; the engine brings it along.
_WORKFLOW_FILE = r"(^|/)(Snakefile|[^/]+\.smk)$"
_PAIRS = """
    CREATE TEMP TABLE undeclared_read AS
    WITH other AS MATERIALIZED (
      SELECT file, task, unique_bytes FROM consumers c WHERE task IN (SELECT task FROM d_task)
      AND NOT EXISTS (FROM d_file d WHERE d.task = c.task AND d.file = c.file))
    SELECT c.file, c.task, t.type, f.template, f.path, f.path_text, c.unique_bytes AS bytes,
           f.role
    FROM other c JOIN work t USING (task) JOIN files f USING (file)
    WHERE f.data AND f.role IN ('input', 'intermediate', 'output')
      AND NOT (f.role = 'input' AND regexp_matches(f.path_text, $workflow_file))
      AND NOT EXISTS (FROM d_dir d WHERE d.task = c.task
                      AND starts_with(f.path_text, d.path_text || '/'))
      AND NOT EXISTS (FROM producers p WHERE p.file = c.file AND p.task = c.task)"""
_PRODUCERS = """
    SELECT DISTINCT p.task AS producer, u.task AS consumer, u.template, u.type
    FROM undeclared_read u JOIN writers p USING (file)
    WHERE p.task IN (SELECT task FROM d_task)"""
# Files are nodes of their own (below zero): writers times readers would be too many links.
_ORDER = """
    SELECT parent, task FROM d_parent
    UNION ALL SELECT task, -1 - name FROM d_io WHERE direction = 'out'
    UNION ALL SELECT -1 - name, task FROM d_io WHERE direction = 'in'"""
_GROUPS = """
    SELECT u.template, count(DISTINCT u.path) AS files, list_distinct(min(u.path, 5)) AS examples,
           coalesce(min(ft.producers), '') AS producers, u.type AS consumers,
           sum(u.bytes) AS bytes, count(DISTINCT u.task) AS tasks, bool_and(u.role = 'input')
           AS outside
    FROM undeclared_read u JOIN file_types ft USING (file)
    GROUP BY u.template, ft.producers, u.type"""


def check(context: Context) -> Iterator[Finding]:
    """Undeclared reads by template and reading task type."""
    context.con.execute(_PAIRS, {"workflow_file": _WORKFLOW_FILE})
    races, unknown = _races(context)
    found = context.rows(_GROUPS)
    context.con.execute("DROP TABLE undeclared_read")
    for row in found:
        key = (row["template"], row["consumers"])
        count = races[key]
        read = f"{plural(row['tasks'], 'task')} read {plural(row['files'], 'undeclared file')}"
        if count:
            message = f"{read}; nothing orders the writer first in {plural(count, 'pair')}: a race"
        elif row["outside"]:
            message = f"{read} ({size(row['bytes'])}) that would be missing on another node"
        else:
            message = f"{read} ({size(row['bytes'])}); the order is declared, the data is not"
        if unknown[key]:
            message += f"; the graph is too large to order {plural(unknown[key], 'more pair')}"
        yield context.finding(
            RULE,
            row | {"races": count},
            message,
            evidence=("tasks", "races"),
            severity="error" if count else "",
            fix="add the file to the declared inputs",
        )


def _races(context: Context) -> tuple[Counter[Key], Counter[Key]]:
    """Of (template, consumer type): pairs without a declared path from writer to reader, and pairs
    for which the graph was too large to tell."""
    pairs = context.con.sql(_PRODUCERS).to_arrow_table()
    if not pairs.num_rows:
        return Counter(), Counter()
    links = context.con.execute(_ORDER).fetchnumpy()
    reach = Reach(ints(links["parent"]), ints(links["task"]))
    sides = (pairs.column(name).to_numpy() for name in ("producer", "consumer"))
    unordered, unknown = reach.split(*sides)
    return _counted(pairs, unordered), _counted(pairs, unknown)


def _counted(pairs: pa.Table, chosen: Bools) -> Counter[Key]:
    """The chosen pairs of each (template, type)."""
    some = pairs.filter(pa.array(chosen)).select(["template", "type"])
    rows = some.group_by(["template", "type"]).aggregate([([], "count_all")]).to_pylist()
    return Counter({(row["template"], row["type"]): row["count_all"] for row in rows})
