"""A run over several sites would be served better by another metadata strategy.

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

from __future__ import annotations

from collections.abc import Iterator

from tracehint.analyzer.predict.cluster import Cluster
from tracehint.hintgen.lint.context import Context
from tracehint.hintgen.lint.finding import Finding, LintRule
from tracehint.hintgen.text.units import plural

RULE = LintRule("TM005", "multisite-metadata", "info", "0.1.0", needs=("bundle",))

_SQL = """
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


def check(context: Context) -> Iterator[Finding]:
    """The strategy for a run over several sites, unless a central server fits."""
    if context.cluster is not None and context.cluster.sites:
        yield from _predicted(context, context.cluster)
        return
    (found,) = context.rows(_SITES)
    settings = context.settings
    for row in context.rows(_SQL) if found["sites"] > 1 else ():
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
            RULE,
            facts,
            message,
            fix=f"choose {strategy} metadata in the store, if it has it",
            evidence=("calls", "per_node", "local_share", "shared_files", "strategy"),
        )


def _predicted(context: Context, cluster: Cluster) -> Iterator[Finding]:
    from tracehint.analyzer.predict.metadata.prediction import predict_metadata
    from tracehint.analyzer.predict.metadata.work import metadata_work
    from tracehint.analyzer.predict.workload import from_analysis

    workload = from_analysis(context.analysis)
    work = metadata_work(context.analysis, workload, context.bundle)
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
        "template": "", "calls": work.operations, "strategy": strategy, "operations": 0,
        "central_seconds": round(central["seconds"], 3), "saved_seconds": round(saved, 3),
        "files": 0, "bytes": 0,
    }  # fmt: skip  # a table
    yield context.finding(
        RULE,
        facts,
        message,
        fix=f"choose {strategy} metadata in the store, if it has it",
        evidence=("calls", "central_seconds", "saved_seconds", "strategy"),
    )
