"""Calls that load the metadata server."""

from __future__ import annotations

from collections.abc import Iterator

from tracehint.analyzer.predict.cluster import Cluster
from tracehint.analyzer.predict.metadata.model import MOST_OPERATIONS, MetaWork
from tracehint.hintgen.lint.context import FILES_SQL, GROUP_SQL, Context
from tracehint.hintgen.lint.finding import Finding, lint_rule
from tracehint.hintgen.lint.queries import storm
from tracehint.hintgen.text.units import number, size
from tracehint.schemas.wording import plural

_MANY_TINY_FILES = """\
Most files of the run are tiny, and there are many of them.

## What it finds
Templates with at least 100 files of less than 64 KiB, in runs where such
files are at least half of all workflow files.

## Why it costs
Creating, opening and removing a file costs the metadata server the same
whatever its size. No placement hint repays its call on them.

## Example
One fit result of 200 bytes per pair of images, 2,833 pairs.

## What to do
Let each task append to one file per worker, write into an archive or a small
database, or keep the files in memory-backed scratch space (`/dev/shm`).

## What it cannot see
How fast the store's metadata server is: on local disks this may not matter.
"""


_MANY_TINY_FILES_SQL = f"""
    WITH total AS (SELECT count(DISTINCT named) AS n,
                          count(DISTINCT named) FILTER (size_bytes < $tiny_file_bytes) AS tiny
                   FROM files WHERE data),
         uses AS (SELECT file, count(*) AS n FROM
                    (SELECT file FROM producers UNION ALL SELECT file FROM consumers) GROUP BY file)
    SELECT {FILES_SQL}, sum(f.size_bytes) AS bytes, sum(u.n)::BIGINT AS operations,
           max(total.tiny) / max(total.n) AS tiny_share
    FROM files f JOIN file_types ft USING (file) JOIN uses u USING (file), total
    WHERE f.data AND f.size_bytes < $tiny_file_bytes
      AND total.tiny >= $tiny_file_share * total.n
    GROUP BY {GROUP_SQL} HAVING count(DISTINCT f.named) >= $tiny_file_count"""


@lint_rule("TM001", "info", "0.1.0", _MANY_TINY_FILES)
def many_tiny_files(context: Context) -> Iterator[Finding]:
    """Templates with many tiny files."""
    for row in context.rows(_MANY_TINY_FILES_SQL):
        message = (
            f"{plural(row['files'], 'file')} of {size(row['bytes'] / row['files'])} on average; "
            f"tiny files are {row['tiny_share']:.0%} of all"
        )
        yield context.finding(
            many_tiny_files,
            row,
            message,
            evidence=("tiny_share",),
            fix="collect them in one file per worker, an archive, or memory-backed scratch",
        )


_STAT_STORM = """\
Tasks ask for the attributes of files again and again.

## What it finds
Task types with at least 1,000 `stat` or `access` calls below the data roots
and at least 20 per file that they opened.

## Why it costs
On shared file systems each `stat` is a round trip to the metadata server,
and striped files make it ask every data server for the size.

## Example
A task polls for its input with `while [ ! -e x ]`, or lists a directory of
10,000 files with `ls -l` in every one of 300 tasks.

## What to do
Wait for the event (the engine knows when the file is complete), list once and
pass the list on, use `ls` without `-l` or `--color`.

## What it cannot see
Calls that the client's attribute cache answers.
"""


@lint_rule("TM002", "warning", "0.1.0", _STAT_STORM, needs=("bundle",))
def stat_storm(context: Context) -> Iterator[Finding]:
    """Task types with many stat calls per opened file."""
    for row in context.rows(storm("stat", "access")):
        message = (
            f"{number(row['calls'])} stat or access calls by {row['consumers']} for "
            f"{plural(row['files'], 'opened file')}"
        )
        yield context.finding(
            stat_storm,
            row,
            message,
            evidence=("calls",),
            fix="list once and pass the list on; wait for the engine instead of polling",
        )


_FAILED_OPENS = """\
Tasks try to open files that do not exist, many times.

## What it finds
Task types with at least 1,000 failed opens below the data roots and at least
20 for every file that they did open.

## Why it costs
A name that does not exist is not cached by most shared file systems: each
attempt goes to the metadata server, from every task at the same time.

## Example
A program looks for its configuration in 30 directories, the last of which
has it; 400 tasks do so at once.

## What to do
Give the full path, or put the directory that has the file first on the
search path.

## What it cannot see
Failed opens outside the data roots (software on a shared file system).
"""


@lint_rule("TM003", "warning", "0.1.0", _FAILED_OPENS, needs=("bundle",))
def failed_opens(context: Context) -> Iterator[Finding]:
    """Task types with many failed opens per opened file."""
    for row in context.rows(storm("failed_open")):
        message = (
            f"{number(row['calls'])} failed opens by {row['consumers']} for "
            f"{plural(row['files'], 'opened file')}"
        )
        yield context.finding(
            failed_opens,
            row,
            message,
            evidence=("calls",),
            fix="give full paths, or reorder search paths",
        )


_DIRECTORY_HOT_SPOT = """\
One directory takes most of the metadata work of several tasks.

## What it finds
A directory below the data roots with at least 1,000 metadata operations
(creations included) that are at least half of the run's, from two or more
tasks.

## Why it costs
A directory has one owner on most metadata servers: its operations queue
there however many servers the store has.

## Example
3,000 tasks create and remove their files in the same `tmp/`.

## What to do
Give each task, or each worker, a directory of its own; where the store can,
spread the directory (`lfs setdirstripe`, BeeGFS metadata mirroring by
directory).

## What it cannot see
Stores that split large directories by themselves.
"""


_DIRECTORY_HOT_SPOT_SQL = """
    WITH created AS (SELECT regexp_extract(path_text, '^(.*)/[^/]*$', 1) AS dir, task, type,
                            count(*) AS n FROM b_io WHERE created GROUP BY ALL),
         every AS (SELECT dir_text AS dir, task, type, count AS n FROM b_meta WHERE inside
                   UNION ALL SELECT * FROM created),
         total AS (SELECT sum(n) AS n FROM every),
         hot AS (SELECT dir, sum(n)::BIGINT AS n, count(DISTINCT task) AS tasks,
                        string_agg(DISTINCT type, ', ' ORDER BY type) AS types
                 FROM every GROUP BY dir)
    SELECT CASE WHEN h.dir = '' THEN './' ELSE h.dir || '/' END AS template, '' AS producers,
           h.types AS consumers, h.n AS operations, h.n AS calls, h.tasks, h.n / total.n AS share,
           (SELECT count(DISTINCT path) FROM files WHERE files.dir = h.dir) AS files, 0 AS bytes
    FROM hot h, total
    WHERE h.n >= $storm_ops AND h.n >= $hot_dir_share * total.n AND h.tasks > 1"""


@lint_rule("TM004", "info", "0.1.0", _DIRECTORY_HOT_SPOT, needs=("bundle",))
def directory_hot_spot(context: Context) -> Iterator[Finding]:
    """Directories that take most metadata operations."""
    for row in context.rows(_DIRECTORY_HOT_SPOT_SQL):
        message = (
            f"{number(row['calls'])} metadata operations ({row['share']:.0%} of all) by "
            f"{plural(row['tasks'], 'task')} in one directory"
        )
        yield context.finding(
            directory_hot_spot,
            row,
            message,
            evidence=("calls", "tasks", "share"),
            fix="give each task or worker a directory of its own",
        )


_MULTISITE_METADATA = """\
A run over several sites would be served better by another metadata strategy.

## What it finds
Runs over two or more sites for which a single central metadata server is not
the strategy that fits, and the one that does: *replicated*, *decentralised*,
or *decentralised with local replicas*.

## Why it costs
Each metadata operation on another site's server costs a wide-area round trip,
ten to a hundred times a local one.

## Example
Many small parallel tasks over four data centres that share files by way of a
central registry in one of them.

## What to do
Follows L. Pineda-Morales, A. Costan and G. Antoniu, "Towards Multi-site
Metadata Management for Geographically Distributed Cloud Workflows" (IEEE
CLUSTER 2015): a central server for small runs (few tens of nodes, few hundred
operations per node); replicated registries for few, large files that are read
at every site; a decentralised one for many files that are made and used in
parallel; with local replicas where tasks mostly use what their own site made
(pipelines). The finding states the figures; the limits are settings
(`central-nodes`, `central-ops-per-node`, `pipeline-share`).

With `--cluster FILE` (a cluster file with sites and the round trips between
them) the rule argues with predicted seconds instead: each strategy is
simulated, and there is a finding where one is faster than a central server by
more than the error of the model.

## What it cannot see
Which strategies the store offers; without a cluster file, the round-trip times
between the sites.
"""


_MULTISITE_METADATA_SQL = """
    WITH ops AS (SELECT coalesce(sum(count), 0) AS n FROM b_meta WHERE inside),
         used AS (SELECT file, count(DISTINCT t.site) AS sites
                  FROM consumers JOIN work t USING (task) GROUP BY file),
         local AS (SELECT coalesce(sum(e.bytes) FILTER (p.site = c.site) / sum(e.bytes), 0) AS share
                   FROM edges e JOIN work p ON p.task = e.producer
                                JOIN work c ON c.task = e.consumer)
    SELECT (ops.n + (SELECT count(*) FROM b_io))::BIGINT AS operations, local.share AS local_share,
           (SELECT count(DISTINCT named) FROM files WHERE data) AS files,
           (SELECT coalesce(sum(size_bytes), 0) FROM files WHERE data) AS bytes,
           (SELECT count(*) FROM used WHERE sites > 1) AS shared_files
    FROM ops, local"""

_SITES = "SELECT count(DISTINCT site) AS sites FROM work WHERE site <> ''"


@lint_rule("TM005", "info", "0.1.0", _MULTISITE_METADATA, needs=("bundle",))
def multisite_metadata(context: Context) -> Iterator[Finding]:
    """The strategy for a run over several sites, unless a central server fits."""
    if context.where is not None and context.where.cluster.sites:
        work = _work(context)
        if work.operations <= MOST_OPERATIONS:  # else decide by the recorded counts
            yield from _predict_strategies(context, context.where.cluster, work)
            return
    (found,) = context.rows(_SITES)
    settings = context.settings
    for row in context.rows(_MULTISITE_METADATA_SQL) if found["sites"] > 1 else ():
        row |= found
        per_node = row["operations"] / context.nodes
        small = context.nodes <= settings.central_nodes
        if small and per_node <= settings.central_ops_per_node:
            continue
        if row["local_share"] >= settings.pipeline_share:
            strategy = "decentralised with local replicas"
        elif row["shared_files"] >= 0.5 * row["files"]:
            strategy = "replicated"
        else:
            strategy = "decentralised"
        message = (
            f"{plural(row['sites'], 'site')}, {per_node:,.0f} metadata operations per node, "
            f"{row['local_share']:.0%} of the data used where it was made, "
            f"{plural(row['shared_files'], 'file')} used at several sites: {strategy}"
        )
        facts = {**row, "template": "", "per_node": round(per_node, 1), "strategy": strategy}
        facts["operations"], facts["calls"] = 0, row["operations"]
        yield context.finding(
            multisite_metadata,
            facts,
            message,
            fix=f"choose {strategy} metadata in the store, if it has it",
            evidence=("calls", "per_node", "local_share", "shared_files", "strategy"),
        )


def _work(context: Context) -> MetaWork:
    from tracehint.analyzer.predict.metadata.work import metadata_work
    from tracehint.analyzer.predict.workload import from_analysis

    return metadata_work(context.analysis, from_analysis(context.analysis), context.bundle)


def _predict_strategies(context: Context, cluster: Cluster, work: MetaWork) -> Iterator[Finding]:
    from tracehint.analyzer.predict.metadata.prediction import predict_metadata

    found = predict_metadata(work, cluster)
    rows = {row["name"]: row for row in found["strategies"]}
    central, best = rows["centralised"], rows[found["best"]]
    if best is central:
        return
    saved = central["seconds"] - best["seconds"]
    strategy = str(best["name"])
    message = (
        f"{plural(len(cluster.sites), 'site')}, {work.operations:,} metadata operations: "
        f"{central['seconds']:.3g} s with one central registry at {central['centre']}, "
        f"{best['seconds']:.3g} s {strategy}"
    )
    facts = {
        "template": "",
        "calls": work.operations,
        "strategy": strategy,
        "operations": 0,
        "central_seconds": round(central["seconds"], 3),
        "saved_seconds": round(saved, 3),
        "files": 0,
        "bytes": 0,
    }
    yield context.finding(
        multisite_metadata,
        facts,
        message,
        fix=f"choose {strategy} metadata in the store, if it has it",
        evidence=("calls", "central_seconds", "saved_seconds", "strategy"),
    )
