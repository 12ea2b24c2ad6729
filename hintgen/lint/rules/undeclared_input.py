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

from collections.abc import Iterator
from typing import Any

from tracehint.hintgen.lint.context import Context
from tracehint.hintgen.lint.finding import Finding, Rule
from tracehint.hintgen.text.units import plural, size

RULE = Rule("TD001", "undeclared-input", "warning", "0.1.0", needs=("declared",))

# Jobs with `run:` or `script:` read the workflow again; the engine brings it along.
_WORKFLOW_FILE = r"(^|/)(Snakefile|[^/]+\.smk)$"
_PAIRS = """
    CREATE OR REPLACE TEMP TABLE undeclared_read AS
    SELECT c.file, c.task, t.type, f.template, f.path, f.path_text, c.unique_bytes AS bytes,
           f.role
    FROM consumers c JOIN work t USING (task) JOIN files f USING (file)
    WHERE f.data AND f.role IN ('input', 'intermediate', 'output')
      AND c.task IN (SELECT task FROM d_task)
      AND NOT (f.role = 'input' AND regexp_matches(f.path_text, $workflow_file))
      AND NOT EXISTS (FROM d_io d WHERE d.task = c.task AND d.path_text = f.path_text)
      AND NOT EXISTS (FROM d_dir d WHERE d.task = c.task
                      AND starts_with(f.path_text, d.path_text || '/'))
      AND NOT EXISTS (FROM producers p WHERE p.file = c.file AND p.task = c.task)"""
_PRODUCERS = """
    SELECT DISTINCT p.task AS producer, u.task AS consumer, u.template
    FROM undeclared_read u JOIN producers p USING (file) JOIN work t ON t.task = p.task
    WHERE NOT p.superseded AND p.task IN (SELECT task FROM d_task)"""
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
    races = _races(context)
    for row in context.rows(_GROUPS):
        count = races.get((row["template"], row["consumers"]), 0)
        read = f"{plural(row['tasks'], 'task')} read {plural(row['files'], 'undeclared file')}"
        if count:
            message = f"{read}; nothing orders the writer first in {plural(count, 'pair')}: a race"
        elif row["outside"]:
            message = f"{read} ({size(row['bytes'])}) that would be missing on another node"
        else:
            message = f"{read} ({size(row['bytes'])}); the order is declared, the data is not"
        yield context.finding(
            RULE,
            row | {"races": count},
            message,
            evidence=("tasks", "races"),
            severity="error" if count else "",
            fix="add the file to the declared inputs",
        )


def _races(context: Context) -> dict[tuple[str, str], int]:
    """(template, consumer type) -> pairs without a declared path from writer to reader."""
    pairs = context.rows(_PRODUCERS)
    if not pairs:
        return {}
    import networkx as nx

    graph: nx.DiGraph[Any] = nx.DiGraph()
    graph.add_edges_from(context.con.execute("SELECT parent, task FROM d_order").fetchall())
    types = dict(context.con.execute("SELECT task, type FROM tasks").fetchall())
    found: dict[tuple[str, str], int] = {}
    before: dict[int, set[int]] = {}
    for pair in pairs:
        consumer = pair["consumer"]
        if consumer not in before:
            before[consumer] = nx.ancestors(graph, consumer) if consumer in graph else set()
        if pair["producer"] not in before[consumer]:
            key = (pair["template"], types[consumer])
            found[key] = found.get(key, 0) + 1
    return found
