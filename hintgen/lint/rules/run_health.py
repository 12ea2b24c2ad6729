"""Errors of the run or of its recording."""

from __future__ import annotations

from collections.abc import Iterator

from tracehint.hintgen.lint.context import CONFIDENCE_SQL, FILES_SQL, GROUP_SQL, Context
from tracehint.hintgen.lint.finding import Finding, lint_rule
from tracehint.hintgen.text.units import seconds, size
from tracehint.schemas.wording import plural

_LOST_EVENTS = """\
The recorder lost events: the picture has holes.

## What it finds
Runs in which events were dropped, records were cut or segments of the bundle
could not be read.

## Why it costs
An edge that was lost makes a broadcast look like a pipeline. Labels of the
tasks concerned carry a lower confidence.

## Example
A task with 200,000 tiny writes a second overran the ring buffer.

## What to do
Record again with larger buffers (`tracehint record --help`), or on a node
with less else to do.

## What it cannot see
Losses that the collector itself did not count.
"""


@lint_rule("TH001", "warning", "0.1.0", _LOST_EVENTS)
def lost_events(context: Context) -> Iterator[Finding]:
    """One finding when the run lost events."""
    lost = int(context.analysis.run.get("lost_events") or 0)
    if lost == 0:
        return
    score = float(context.analysis.run["completeness"]["score"])
    row = {"template": "", "files": 0, "bytes": 0, "lost": lost, "score": score}
    message = f"{plural(lost, 'event')} lost; the record is {score:.1%} complete"
    yield context.finding(
        lost_events,
        row,
        message,
        evidence=("lost", "score"),
        fix="record again with larger buffers: tracehint record --help",
    )


_BLIND_SPOT = """\
The collector cannot see something that this run did.

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


_BLIND_SPOT_SQL = """
    WITH busy AS (SELECT task FROM producers UNION SELECT task FROM consumers)
    SELECT '' AS template, count(*) FILTER (exact_share < 0.95) AS files,
           coalesce(sum(size_bytes) FILTER (exact_share < 0.95), 0) AS bytes,
           list_distinct(min(path, 5) FILTER (exact_share < 0.95)) AS examples,
           (SELECT count(*) FROM work WHERE source <> 'declared'
            AND task NOT IN (FROM busy)) AS silent
    FROM files WHERE data"""


@lint_rule("TH002", "warning", "0.1.0", _BLIND_SPOT)
def blind_spot(context: Context) -> Iterator[Finding]:
    """One finding when a blind spot of the collector shows."""
    blind = context.analysis.run["completeness"]["blind_to"]
    (row,) = context.rows(_BLIND_SPOT_SQL)
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
    yield context.finding(blind_spot, row, message, evidence=("silent",), fix="tracehint doctor")


_RETRIED_TASK = """\
Tasks failed and were run again.

## What it finds
Tasks with a second or later attempt, and the bytes that the failed attempts
wrote for nothing.

## Why it costs
Each retry costs the whole task again, and on a shared store its I/O too.

## Example
12 of 300 alignments ran out of memory and were repeated on a larger node.

## What to do
Look at the exit status and the log of the first attempt; give the task what
it lacked the first time.

## What it cannot see
Retries inside a task.
"""


_RETRIED_TASK_SQL = """
    WITH again AS (SELECT type, count(DISTINCT name) AS tasks, sum(end_s - start_s) AS seconds
                   FROM work WHERE attempt > 1 GROUP BY type),
         wasted AS (SELECT t.type, count(DISTINCT f.named) AS files, sum(p.bytes) AS bytes,
                           list_distinct(min(f.path, 5)) AS examples,
                           CASE WHEN count(DISTINCT f.template) = 1 THEN min(f.template)
                                ELSE '' END AS template
                    FROM producers p JOIN work t USING (task) JOIN files f USING (file)
                    WHERE p.superseded GROUP BY t.type)
    SELECT coalesce(w.template, '') AS template, coalesce(w.files, 0) AS files,
           coalesce(w.bytes, 0) AS bytes, w.examples, a.type AS producers, '' AS consumers,
           a.tasks
    FROM again a LEFT JOIN wasted w USING (type)"""


@lint_rule("TH003", "info", "0.1.0", _RETRIED_TASK)
def retried_task(context: Context) -> Iterator[Finding]:
    """Retried tasks by type."""
    for row in context.rows(_RETRIED_TASK_SQL):
        wasted = f"; {size(row['bytes'])} were written for nothing" if row["bytes"] else ""
        message = f"{plural(row['tasks'], 'task')} of {row['producers']} ran again{wasted}"
        yield context.finding(
            retried_task,
            row,
            message,
            evidence=("tasks",),
            fix="look at why the first attempt failed",
        )


_IO_STRAGGLER = """\
A task takes far longer than its siblings and moves far more bytes.

## What it finds
At least four tasks of one type that read what the same steps wrote, of which
one took more than twice the median time (and over a second) and moved more
than twice the median bytes. A program that does two steps is two kinds of
task: `cc` that compiles reads no file of the run, `cc` that links does.

## Why it costs
The step waits for it. The bytes explain the time: more compute nodes do not
help, a better cut of the data does.

## Example
One of 64 chunks holds the repetitive region and is nine times as large.

## What to do
Cut the data by bytes, start the large pieces first, or place the large
piece's input on the node that works on it.

## What it cannot see
Slow disks, a busy network or a swapping node: those make stragglers that
move no more bytes than the others, and are not reported.
"""


_IO_STRAGGLER_SQL = """
    WITH io AS (SELECT task, sum(bytes) AS bytes FROM
                  (SELECT task, bytes FROM producers UNION ALL SELECT task, bytes FROM consumers)
                GROUP BY task),
         fed AS (SELECT e.consumer AS task, list_sort(list(DISTINCT p.type)) AS steps
                 FROM edges e JOIN work p ON p.task = e.producer GROUP BY e.consumer),
         load AS (SELECT t.type, coalesce(fed.steps, []) AS steps, t.end_s - t.start_s AS s,
                         coalesce(io.bytes, 0) AS bytes
                  FROM work t LEFT JOIN io USING (task) LEFT JOIN fed USING (task)
                  WHERE t.end_s IS NOT NULL),
         usual AS (SELECT type, steps, count(*) AS n, median(s) AS s, median(bytes) AS bytes
                   FROM load GROUP BY type, steps HAVING n >= $straggler_tasks)
    SELECT '' AS template, 0 AS files, sum(l.bytes)::BIGINT AS bytes, '' AS producers,
           l.type AS consumers, count(*) AS tasks, max(l.s) AS slowest_s, any_value(u.s)
           AS median_s, any_value(u.bytes) AS median_bytes, max(l.bytes) AS most_bytes
    FROM load l JOIN usual u USING (type, steps)
    WHERE l.s >= $straggler_seconds AND l.s > $straggler_factor * u.s
      AND l.bytes > $straggler_factor * u.bytes AND l.bytes - u.bytes >= $min_storage_bytes
    GROUP BY l.type, steps"""


@lint_rule("TH004", "info", "0.1.0", _IO_STRAGGLER)
def io_straggler(context: Context) -> Iterator[Finding]:
    """Stragglers explained by their bytes, by task type."""
    for row in context.rows(_IO_STRAGGLER_SQL):
        message = (
            f"{plural(row['tasks'], 'task')} of {row['consumers']} took up to "
            f"{seconds(row['slowest_s'])} and moved {size(row['most_bytes'])}; the median is "
            f"{seconds(row['median_s'])} and {size(row['median_bytes'])}"
        )
        yield context.finding(
            io_straggler,
            row,
            message,
            fix="cut the data by bytes, or start the large pieces first",
            evidence=("tasks", "slowest_s", "median_s", "most_bytes", "median_bytes"),
        )


_FAILED_TASK_USED = """\
A task failed, and others went on with what it left.

## What it finds
Tasks with a non-zero exit status whose files other tasks read, without a
later attempt that replaced them.

## Why it costs
The result may rest on half-written files: a wrong answer costs more than
any transfer.

## Example
`a.sh | tee log` hides the status of `a.sh`; the next step reads a table that
ends in the middle of a line.

## What to do
Stop at failures (`set -euo pipefail`), or declare that the status is meant.

## What it cannot see
Programs that use the exit status for other news, as `grep` and `diff` do.
"""


_FAILED_TASK_USED_SQL = f"""
    WITH failed AS (SELECT * FROM work t WHERE exit_status <> 0
                    AND NOT EXISTS (FROM work l WHERE l.name = t.name AND l.attempt > t.attempt))
    SELECT {FILES_SQL}, sum(e.bytes) AS bytes, count(DISTINCT t.task) AS tasks,
           min(t.exit_status) AS status
    FROM failed t JOIN edges e ON e.producer = t.task JOIN files f USING (file)
         JOIN file_types ft USING (file)
    GROUP BY f.template, t.type, ft.producers, ft.consumers"""


@lint_rule("TH005", "error", "0.1.0", _FAILED_TASK_USED)
def failed_task_used(context: Context) -> Iterator[Finding]:
    """Files of failed tasks that others read, by template."""
    for row in context.rows(_FAILED_TASK_USED_SQL):
        message = (
            f"{plural(row['tasks'], 'task')} failed (status {row['status']}), and "
            f"{row['consumers']} read {plural(row['files'], 'file')} that they left"
        )
        yield context.finding(
            failed_task_used,
            row,
            message,
            evidence=("tasks", "status"),
            fix="stop the workflow at failures (set -euo pipefail)",
        )


_READ_WHILE_WRITTEN = """\
A task read a file while another one was still writing it.

## What it finds
Edges whose order is uncertain: the reader's and the writer's accesses
overlap in time, so which bytes the reader got depends on timing.

## Why it costs
Another run, another node count or another store may give another result; no
placement can be chosen well for data that moves while it is made.

## Example
A monitor script reads a log that the simulation appends to.

## What to do
Make the reader depend on the writer's end, or hand over finished pieces by
renaming them into place.

## What it cannot see
Programs that coordinate by locks or messages.
"""


_READ_WHILE_WRITTEN_SQL = f"""
    SELECT {FILES_SQL}, sum(e.bytes) AS bytes, count(*) AS pairs
    FROM edges e JOIN files f USING (file) JOIN file_types ft USING (file)
    WHERE e."order" = 'uncertain' AND e.via = 'data'
    GROUP BY {GROUP_SQL}"""


@lint_rule("TH006", "warning", "0.1.0", _READ_WHILE_WRITTEN)
def read_while_written(context: Context) -> Iterator[Finding]:
    """Files that were read while they were written, by template."""
    for row in context.rows(_READ_WHILE_WRITTEN_SQL):
        message = (
            f"{plural(row['files'], 'file')} ({size(row['bytes'])}) read while another task "
            f"still wrote, {plural(row['pairs'], 'pair')} of tasks"
        )
        yield context.finding(
            read_while_written,
            row,
            message,
            evidence=("pairs",),
            fix="let the reader wait for the writer, or rename finished files into place",
        )


_CONCURRENTLY_SHARED_FILE = """\
Tasks read and write one file in turns.

## What it finds
Files with the primary label *concurrently shared*: two or more tasks feed
each other through them, as with a database file or a counter.

## Why it costs
Locks and cache invalidation on every turn; no placement serves both sides,
so these files never get a hint.

## Example
Workers take their next piece of work from one SQLite file on a shared store.

## What to do
Use a queue or a database server, one file per worker, or let the engine deal
out the work.

## What it cannot see
Whether the turns are rare enough not to matter: it states their bytes.
"""


_CONCURRENTLY_SHARED_FILE_SQL = f"""
    SELECT {FILES_SQL}, sum(f.size_bytes) AS bytes, {CONFIDENCE_SQL},
           max(ft.n_producers) AS writers
    FROM primary_label p JOIN files f USING (file) JOIN file_types ft USING (file)
    WHERE p.pattern = 'concurrently_shared' AND f.data
    GROUP BY {GROUP_SQL}"""


@lint_rule("TH007", "info", "0.1.0", _CONCURRENTLY_SHARED_FILE)
def concurrently_shared_file(context: Context) -> Iterator[Finding]:
    """Files that tasks read and write in turns, by template."""
    for row in context.rows(_CONCURRENTLY_SHARED_FILE_SQL):
        message = (
            f"{plural(row['files'], 'file')} ({size(row['bytes'])}) read and written in turns by "
            "several tasks"
        )
        yield context.finding(
            concurrently_shared_file,
            row,
            message,
            fix="use a queue, a server, or one file per worker",
        )
