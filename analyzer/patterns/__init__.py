"""File versions and edges -> labels with evidence, confidence and a primary by the cost model.

The definitions are in docs/patterns.md. Everything that grows with the run is numpy on sorted
arrays of integers. What a file's own rows decide is computed in portions of whole files, by a
function from arrays to arrays (`facts.find`); the rest is small or needs all files:

    attempts  the tasks, attempts of one task put together
    portions  Arrow tables as arrays
    prepare   writers and readers that count (no engines, retries merged, peeks aside)
    ranges    bytes per reader: m, shared header, overlap of writers
    times     how many read or wrote at the same time
    regions   the shape of scatter and gather regions
    labels    which labels hold for a file by itself
    facts     all of these, for one portion
    cycles    tasks that feed each other both ways
    groups    reduce and distribute
    chains    position of a pipeline file in its chain
    cost      placements and what they move
    choice    the cheapest placement, primary and runner-up
    confidence, numbers, evidence, edges: the rest of a label, and its copies on the edges
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import pyarrow as pa

    from tracehint.analyzer.execution.resources import Resources
    from tracehint.analyzer.model import Options


class FlowTables(Protocol):
    """What `label` needs of the data flow: tables of analyzer.model."""

    files: pa.Table
    producers: pa.Table
    consumers: pa.Table
    edges: pa.Table


def label(
    flow: FlowTables,
    tasks: pa.Table,
    options: Options,
    run: Mapping[str, Any],
    lost: pa.Table | None = None,
    resources: Resources | None = None,
) -> tuple[pa.Table, pa.Table]:
    """Tables `patterns` and `groups` of analyzer.model.

    `run["nodes"]` is N of the cost model (at least 1), `run["completeness"]["blind_to"]`
    what the collector cannot see. `lost` has columns task, lost, seen: events of the task's
    processes that were lost and recorded; None when nothing was lost.
    """
    from tracehint.analyzer.patterns import whole

    return whole.label(flow, tasks, options, run, lost, resources)
