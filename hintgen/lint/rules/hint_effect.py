"""Hints and placements that had no effect, or the wrong one."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from tracehint.analyzer.catalogue import asking_for
from tracehint.hintgen.lint.context import CONFIDENCE_SQL, FILES_SQL, GROUP_SQL, PLACED_SQL, Context
from tracehint.hintgen.lint.finding import Finding, lint_rule
from tracehint.hintgen.text.units import size
from tracehint.schemas.wording import plural

_CONSUMER_AWAY_FROM_DATA = """\
A task ran on another host than the one on which most of its input was written.

## What it finds
Tasks of which more than half of the input bytes that the run itself made were
written on one host, while the task ran on another host that had less of them.

## Why it costs
On a store that places locally those bytes crossed the network although an
equally good node had them.

## Example
`mFitplane` ran on node 7 for an image that `mDiff` wrote on node 3.

## What to do
Start each task on the node that holds its input (`tracehint place`), let the
engine ask where the data is (`tracehint locate`), or write the location into
the workflow (`tracehint emit --workflow-engine`).

## What it cannot see
Where a striping store put the bytes; it goes by the host that wrote them.
"""


_CONSUMER_AWAY_FROM_DATA_SQL = f"""
    WITH flow AS (SELECT e.consumer, c.host AS here, p.host AS there, sum(e.bytes) AS bytes
                  FROM edges e JOIN work c ON c.task = e.consumer
                  JOIN work p ON p.task = e.producer GROUP BY ALL),
         total AS (SELECT consumer, sum(bytes) AS bytes,
                          coalesce(sum(bytes) FILTER (here = there), 0) AS own
                   FROM flow GROUP BY 1),
         best AS (SELECT consumer, arg_max(there, bytes) AS host, max(bytes) AS bytes
                  FROM flow WHERE here <> there GROUP BY 1),
         away AS (SELECT t.consumer, b.host, b.bytes - t.own AS moved, t.bytes AS total
                  FROM total t JOIN best b USING (consumer)
                  WHERE b.bytes > $away_share * t.bytes AND b.bytes > t.own)
    SELECT {FILES_SQL}, sum(e.bytes) AS bytes, list(DISTINCT f.file) AS placed,
           count(DISTINCT a.consumer) AS tasks
    FROM away a JOIN edges e USING (consumer) JOIN work p ON p.task = e.producer
         JOIN files f USING (file) JOIN file_types ft USING (file)
    WHERE p.host = a.host
    GROUP BY {GROUP_SQL} HAVING sum(e.bytes) >= $min_bytes"""


@lint_rule("TP007", "warning", "0.1.0", _CONSUMER_AWAY_FROM_DATA, needs=("hosts",))
def consumer_away_from_data(context: Context) -> Iterator[Finding]:
    """Tasks that ran away from the host with most of their input, by file template."""
    for row in context.rows(_CONSUMER_AWAY_FROM_DATA_SQL):
        message = (
            f"{plural(row['tasks'], 'task')} read {plural(row['files'], 'file')} "
            f"({size(row['bytes'])}) from another host that had most of "
            f"{'its' if row['tasks'] == 1 else 'their'} input"
        )
        yield context.finding(
            consumer_away_from_data,
            row,
            message,
            evidence=("tasks",),
            assumed=("files are stored where they were written",),
            fix="start the tasks on the node of their input: tracehint place or the engine",
        )


_UNFITTING_HINT = """\
A hint was in force that does not fit the way in which the file was used.

## What it finds
Files that carried a placement hint (`DP`, `Replication`) that belongs to
another pattern than the primary label that the run shows.

## Why it costs
The store followed the hint: it kept a file local that all tasks read, or
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


# hint -> patterns that it serves; labels outside _JUDGED cause no finding
_FITS = {hint: asking_for(hint) for hint in ("local", "collocation", "scatter", "replication")}
_JUDGED = tuple(sorted({*itertools.chain(*_FITS.values()), *asking_for("distribute")}))


@lint_rule("TP008", "warning", "0.1.0", _UNFITTING_HINT)
def unfitting_hint(context: Context) -> Iterator[Finding]:
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
        SELECT {FILES_SQL}, sum(f.size_bytes) AS bytes, {PLACED_SQL},
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
        yield context.finding(unfitting_hint, row, message, evidence=("hint", "pattern"))


_LATE_HINT = """\
A hint was set after the file already had bytes.

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


_LATE_HINT_SQL = f"""
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


@lint_rule("TP009", "warning", "0.1.0", _LATE_HINT, needs=("bundle",))
def late_hint(context: Context) -> Iterator[Finding]:
    """Files that were hinted after their first use, by template."""
    for row in context.rows(_LATE_HINT_SQL) if context.hinted else ():
        message = (
            f"{row['hints']} set on {plural(row['files'], 'file')} ({size(row['bytes'])}) after "
            "the data was there"
        )
        yield context.finding(late_hint, row, message, evidence=("hints",))


_PULL_THRESHOLD = """\
A shared input below Confuga's pull-threshold: it is brought for each job anew.

## What it finds
Inputs of several tasks that are smaller than the `pull-threshold` of the
head's URI, which the setting `pull-threshold` of the lint states (0, the
default: no Confuga). Confuga's own default is 128 MB.

## Why it costs
Below the threshold Confuga brings an input to the node of every job that
declares it, and keeps nothing. Above it the input is copied once to each node
and stays there, for later runs as well.

## Example
Ten tasks read one `db.bin` of 64 MB; with the usual threshold most of them
fetch it, in every run.

## What to do
Start the head with a threshold between the largest private input and the
smallest shared one: `tracehint emit --workflow-engine confuga` prints it.

## What it cannot see
Which tasks ran on the node that has the file: those fetched nothing.
"""


_PULL_THRESHOLD_SQL = f"""
    WITH shared AS (SELECT c.file, count(DISTINCT c.task) AS tasks
                    FROM consumers c JOIN files f USING (file)
                    WHERE f.data AND f.size_bytes < $pull_threshold
                    GROUP BY c.file HAVING count(DISTINCT c.task) > 1)
    SELECT {FILES_SQL}, sum(f.size_bytes) AS bytes, max(s.tasks) AS tasks
    FROM shared s JOIN files f USING (file) JOIN file_types ft USING (file)
    GROUP BY {GROUP_SQL}
    HAVING sum(f.size_bytes * s.tasks) >= $min_bytes"""


@lint_rule("TP010", "warning", "0.1.0", _PULL_THRESHOLD)
def pull_threshold(context: Context) -> Iterator[Finding]:
    """Shared inputs below the threshold, by template."""
    for row in context.rows(_PULL_THRESHOLD_SQL):
        limit = size(context.settings.pull_threshold)
        message = (
            f"{plural(row['files'], 'file')} of {size(row['bytes'])} that up to {row['tasks']} "
            f"tasks read are below the pull-threshold of {limit}: brought for each job"
        )
        yield context.finding(
            pull_threshold,
            row,
            message,
            evidence=("tasks",),
            assumed=("Confuga as the store", f"{context.nodes} storage nodes"),
            fix="a smaller pull-threshold: tracehint emit H --workflow-engine confuga W --like RUN",
        )
