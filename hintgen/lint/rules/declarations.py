"""Differences between what the workflow declares and what its tasks read and wrote."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pyarrow as pa

from tracehint.analyzer.arrays import Bools, ints
from tracehint.hintgen.lint.context import Context, set_sql
from tracehint.hintgen.lint.finding import Finding, lint_rule
from tracehint.hintgen.reach import Reach
from tracehint.hintgen.text.units import size
from tracehint.schemas.wording import plural

_UNDECLARED_INPUT = """\
A task read a file that the workflow does not declare as its input.

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


Key = tuple[str, str]


# Jobs with `run:` or `script:` read the workflow again; the engine provides it.
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
# Files are nodes too (below zero): links from all writers to all readers would be too many.
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


@lint_rule("TD001", "warning", "0.1.0", _UNDECLARED_INPUT, needs=("declared",))
def undeclared_input(context: Context) -> Iterator[Finding]:
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
            undeclared_input,
            row | {"races": count},
            message,
            evidence=("tasks", "races"),
            severity="error" if count else "",
            fix="add the file to the declared inputs",
        )


def _races(context: Context) -> tuple[Counter[Key], Counter[Key]]:
    """Count by (template, consumer type) the pairs without a declared path from writer to reader,
    and the pairs that are undecided because the graph was too large."""
    pairs = context.con.sql(_PRODUCERS).to_arrow_table()
    if not pairs.num_rows:
        return Counter(), Counter()
    links = context.con.execute(_ORDER).fetchnumpy()
    reach = Reach(ints(links["parent"]), ints(links["task"]))
    sides = (pairs.column(name).to_numpy() for name in ("producer", "consumer"))
    unordered, unknown = reach.split(*sides)
    return _count_pairs(pairs, unordered), _count_pairs(pairs, unknown)


def _count_pairs(pairs: pa.Table, chosen: Bools) -> Counter[Key]:
    """Count the chosen pairs by (template, type)."""
    some = pairs.filter(pa.array(chosen)).select(["template", "type"])
    rows = some.group_by(["template", "type"]).aggregate([([], "count_all")]).to_pylist()
    return Counter({(row["template"], row["type"]): row["count_all"] for row in rows})


_UNDECLARED_OUTPUT = """\
A task wrote a file that the workflow does not declare as its output.

## What it finds
Files that a task wrote, that still exist at the end or that another task
read, and that are neither declared outputs of that task nor below a declared
directory. Left out are logs (`*.log`, `*.err`, `log/`, what Snakemake declares
as `log:`), files that the task did not open itself (the output of the whole run
that a shell sent to a file), and copies by the engine (`publishDir`).

## Why it costs
The engine does not know of the file: it is not brought back from a remote
node, not cleaned up after a failure, not rebuilt when it is missing, and no
hint of the workflow's own can name it.

## Example
`mProject` writes `p_area.fits` beside the declared `p.fits`.

## What to do
Add the file to the rule's outputs, or write it to scratch space.

## What it cannot see
By-products that are there on purpose: put those findings into the baseline.
"""


# Log files by name; an engine that has a task's log declares it as one of the task's files.
_LOG = r"(^|/)logs?/|\.(log|err|stderr|stdout)(\.[0-9]+)?$|(^|/)slurm-[^/]*\.out$"

# Left out: files that the task did not open itself, such as redirected output, and files that an
# engine copied.
_UNDECLARED_OUTPUT_SQL = """
    WITH other AS MATERIALIZED (
      SELECT * FROM producers p WHERE NOT superseded AND task IN (SELECT task FROM d_task)
      AND NOT EXISTS (FROM d_file d WHERE d.task = p.task AND d.file = p.file))
    SELECT f.template, count(DISTINCT f.named) AS files,
           list_distinct(min(f.path, 5)) AS examples, t.type AS producers,
           coalesce(min(ft.consumers), '') AS consumers, sum(p.unique_bytes) AS bytes,
           count(DISTINCT p.task) AS tasks, bool_or(f.role = 'intermediate') AS used
    FROM other p JOIN work t USING (task) JOIN files f USING (file)
         JOIN file_types ft USING (file)
    WHERE f.data AND NOT regexp_matches(f.path_text, $log)
      AND (NOT EXISTS (FROM b_opener o WHERE o.path_text = f.path_text)
           OR EXISTS (FROM b_opener o WHERE o.path_text = f.path_text AND o.task = p.task))
      AND p.how <> ['engine_copy']  -- what the engine publishes is not the task's to declare
      AND (f.role = 'intermediate' OR (f.role = 'output' AND NOT f.deleted))
      AND NOT EXISTS (FROM d_dir d WHERE d.task = p.task
                      AND starts_with(f.path_text, d.path_text || '/'))
    GROUP BY f.template, t.type, ft.consumers"""


@lint_rule("TD002", "warning", "0.1.0", _UNDECLARED_OUTPUT, needs=("declared",))
def undeclared_output(context: Context) -> Iterator[Finding]:
    """Undeclared outputs by template and writing task type."""
    for row in context.rows(_UNDECLARED_OUTPUT_SQL, log=_LOG):
        them = "it" if row["files"] == 1 else "them"
        used = f"; other tasks read {them}" if row["used"] else ""
        message = (
            f"{plural(row['tasks'], 'task')} wrote {plural(row['files'], 'undeclared file')} "
            f"({size(row['bytes'])}){used}"
        )
        yield context.finding(
            undeclared_output,
            row,
            message,
            evidence=("tasks",),
            fix="add the file to the declared outputs",
        )


_UNREAD_DECLARED_INPUT = """\
A declared input that the task never opened.

## What it finds
Files that the workflow declares as inputs of a task and that none of the
task's processes opened. Programs that the task executed count as used, and so
do files of a set (`ref.nsq`, `ref.ntf`) of which the task opened another one.

## Why it costs
Engines that stage inputs (Makeflow with Work Queue, Confuga, Condor) send the
file to the node for nothing; all engines wait for its producer for nothing.

## Example
`mImgtbl` declares the area files of all images and reads the images only.

## What to do
Remove the file from the rule's inputs, if the program never needs it.

## What it cannot see
Inputs that other parameters or other data would make the program read, and
files that exist only to force an order (empty ones are left out).
"""


# Programs open only the needed files of a set (database, index): one that was read counts for all.
_UNREAD_DECLARED_INPUT_SQL = f"""
    WITH asked AS (SELECT d.*, t.type FROM d_io d JOIN work t USING (task)
                   WHERE d.direction = 'in' AND t.source <> 'declared'),
         unread AS MATERIALIZED (
           SELECT d.*, p.path, p.path_text FROM asked d JOIN d_path p USING (number)
           WHERE NOT EXISTS (FROM consumers c JOIN d_named n USING (file)
                             WHERE c.task = d.task AND n.number = d.number)),
         read AS MATERIALIZED (SELECT task, file FROM consumers
                               WHERE task IN (SELECT task FROM unread)),
         opened AS (SELECT task, {set_sql("path_text")} AS of_set FROM b_io
                    WHERE task IN (SELECT task FROM unread)
                    UNION SELECT task, {set_sql("path_text")} FROM read JOIN files USING (file)),
         last AS (SELECT path_text, min(path) AS path, max(size_bytes) AS size_bytes,
                         min(template) AS template, min(file) AS file
                  FROM files WHERE path_text IN (SELECT path_text FROM unread) GROUP BY path_text)
    SELECT coalesce(l.template, d.path_text) AS template, count(DISTINCT d.path_text) AS files,
           list_distinct(min(coalesce(l.path, d.path), 5)) AS examples,
           coalesce(min(ft.producers), '') AS producers, d.type AS consumers,
           sum(coalesce(d.size_bytes, l.size_bytes, 0)) AS bytes,
           count(DISTINCT d.task) AS tasks
    FROM unread d LEFT JOIN last l USING (path_text) LEFT JOIN file_types ft ON ft.file = l.file
    WHERE coalesce(d.size_bytes, l.size_bytes, 1) > 0
      AND NOT EXISTS (FROM d_dir x WHERE x.task = d.task AND x.path_text = d.path_text)
      AND NOT EXISTS (FROM opened o WHERE o.task = d.task
                      AND o.of_set = {set_sql("d.path_text")})
      AND NOT EXISTS (FROM b_exe e WHERE e.task = d.task AND e.path_text = d.path_text)
    GROUP BY 1, d.type, ft.producers"""


@lint_rule("TD003", "warning", "0.1.0", _UNREAD_DECLARED_INPUT, needs=("declared",))
def unread_declared_input(context: Context) -> Iterator[Finding]:
    """Declared inputs that were never opened, by template and task type."""
    for row in context.rows(_UNREAD_DECLARED_INPUT_SQL):
        message = (
            f"{plural(row['tasks'], 'task')} never opened {plural(row['files'], 'declared input')}"
            f" ({size(row['bytes'])} if staged)"
        )
        yield context.finding(
            unread_declared_input,
            row,
            message,
            evidence=("tasks",),
            assumed=("the engine stages declared inputs",),
            fix="remove the file from the declared inputs",
        )


_OVER_DECLARED_DIRECTORY = """\
A whole directory is declared as input, and the task uses little of it.

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


# The files of a directory are counted once, not once per task that declares it. In byte order, the
# names in `d/` are the range from `d/` to `d0`: "0" follows "/".
_OVER_DECLARED_DIRECTORY_SQL = """
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
           sum(bytes - used_bytes) AS unused_bytes, count(*) AS tasks,
           sum(used_bytes) / sum(bytes) AS used_share
    FROM per_task JOIN work t USING (task)
    WHERE bytes > 0 AND used_bytes < $used_share * bytes
    GROUP BY folder, t.type HAVING sum(bytes - used_bytes) >= $min_bytes"""


@lint_rule("TD004", "warning", "0.1.0", _OVER_DECLARED_DIRECTORY, needs=("declared",))
def over_declared_directory(context: Context) -> Iterator[Finding]:
    """Declared directories of which little was read, by directory and task type."""
    for row in context.rows(_OVER_DECLARED_DIRECTORY_SQL):
        message = (
            f"{plural(row['tasks'], 'task')} declare a directory of {plural(row['files'], 'file')} "
            f"and read {row['used_share']:.0%} of its bytes"
            f" ({size(row['unused_bytes'])} staged for nothing)"
        )
        yield context.finding(
            over_declared_directory,
            row,
            message,
            evidence=("tasks", "used_share"),
            assumed=("the engine stages declared inputs",),
            fix="declare the files that are read",
        )


_DEPENDENCY_WITHOUT_DATA = """\
The workflow makes a task wait for another one from which it reads nothing.

## What it finds
Declared dependencies between two tasks where no file goes from the one to
the other, neither in the declaration nor in what was observed.

## Why it costs
The task waits, and the step loses parallelism, for no data.

## Example
A stage that was once fed by another still carries `after: [prepare]`.

## What to do
Remove the dependency, if nothing but data has to be ordered.

## What it cannot see
Side effects outside the data roots: a service that must run, a database that
must be filled.
"""


_DEPENDENCY_WITHOUT_DATA_SQL = """
    SELECT '' AS template, 0 AS files, 0 AS bytes, p.type AS producers, c.type AS consumers,
           count(*) AS pairs
    FROM d_parent d JOIN work p ON p.task = d.parent JOIN work c ON c.task = d.task
    WHERE p.source <> 'declared' AND c.source <> 'declared'
      AND NOT EXISTS (FROM edges e WHERE e.producer = d.parent AND e.consumer = d.task)
      AND NOT EXISTS (FROM d_io o JOIN d_io i USING (name)
                      WHERE o.task = d.parent AND o.direction = 'out'
                        AND i.task = d.task AND i.direction = 'in')
    GROUP BY p.type, c.type"""


@lint_rule("TD005", "info", "0.1.0", _DEPENDENCY_WITHOUT_DATA, needs=("declared",))
def dependency_without_data(context: Context) -> Iterator[Finding]:
    """Dependencies without data, by pair of task types."""
    for row in context.rows(_DEPENDENCY_WITHOUT_DATA_SQL):
        message = (
            f"{row['consumers']} waits for {row['producers']} in {plural(row['pairs'], 'pair')} "
            "of tasks and reads nothing from it"
        )
        yield context.finding(
            dependency_without_data,
            row,
            message,
            evidence=("pairs",),
            fix="remove the dependency from the workflow",
        )
