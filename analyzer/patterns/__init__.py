"""File versions and edges -> labels with evidence, confidence and a primary by the cost model.

The definitions are in docs/patterns.md. Everything that grows with the run is SQL in an
embedded DuckDB over Arrow tables; each step is one small module that adds a few temporary
tables to the same connection:

    prepare   tasks, writers and readers that count (no engines, retries merged, peeks aside)
    ranges    bytes per reader count: m, shared header, overlap of writers, regions
    times     how many read or wrote at the same time
    cycles    tasks that feed each other both ways
    labels    which labels hold for a file
    groups    reduce and distribute
    chains    position of a pipeline file in its chain
    cost      placements, choice, runner-up, primary
    confidence, evidence, edges: the rest of a label, and its copies on the edges
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

    from tracehint.analyzer.model import Options


class FlowTables(Protocol):
    """What `label` needs of the data flow: tables of analyzer.model."""

    files: pa.Table
    producers: pa.Table
    consumers: pa.Table
    edges: pa.Table


def _forget(con: duckdb.DuckDBPyConnection, tables: str) -> None:
    """Drop tables that no later step needs: they are most of the memory."""
    for name in tables.split():
        con.execute(f"drop table if exists {name}")


def label(
    flow: FlowTables,
    tasks: pa.Table,
    options: Options,
    run: Mapping[str, Any],
    lost: pa.Table | None = None,
) -> tuple[pa.Table, pa.Table]:
    """Tables `patterns` and `groups` of analyzer.model.

    `run["nodes"]` is N of the cost model (at least 1), `run["completeness"]["blind_to"]`
    what the collector cannot see. `lost` has columns task, lost, seen: events of the task's
    processes that were lost and recorded; None when nothing was lost.
    """
    from tracehint.analyzer.patterns import (
        chains,
        confidence,
        cost,
        cycles,
        edges,
        evidence,
        groups,
        labels,
        prepare,
        ranges,
        times,
    )  # fmt: skip
    from tracehint.analyzer.sql import connect

    con = connect()
    try:
        retried = prepare.prepare(con, flow, tasks)
        ranges.measure(con, options, retried=retried)
        times.measure(con)
        cycles.find(con, options)
        labels.find(con, options)
        groups.find(con, options)
        chains.number(con)
        cost.choose(con, options, int(run["nodes"]))
        _forget(con, "best offers losers facts fc base piped")
        confidence.rate(con, options, run, lost)
        texts = evidence.write(con)
        _forget(con, "depth fs rd sz ws wsp wr fv rr wg a2a shares rt wt single red dis pair chain")
        group_rows = groups.groups_table(con)
        return edges.patterns_table(con, texts), group_rows
    finally:
        con.close()
