"""The labels of a whole run from the facts of its partitions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from tracehint.analyzer.columns import column, floats
from tracehint.analyzer.execution.resources import Resources
from tracehint.analyzer.execution.threads import compute_all
from tracehint.analyzer.memory import give_back
from tracehint.analyzer.patterns import (
    choice,
    confidence,
    cycles,
    edges,
    evidence,
    groups,
    numbers,
    ready,
)
from tracehint.analyzer.patterns.attempts import read_work
from tracehint.analyzer.patterns.facts import Losses, PartitionFacts, find
from tracehint.analyzer.patterns.partitions import FlowTables, Tables, dense
from tracehint.analyzer.patterns.rows import UNKNOWN, Bools, Labels, Rows, Single, TaskRows, code
from tracehint.analyzer.patterns.united import united

if TYPE_CHECKING:
    import pyarrow as pa

    from tracehint.analyzer.model import Options


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
    work = read_work(tasks)
    work.ready = ready.moments(flow, work)
    tables, resources = Tables(flow, work), resources or Resources()
    found = _found(tables, work, options, _losses(lost, work), resources)
    in_cycles = cycles.find(
        tables.files, found.facts, found.links, len(work.ids), options, backward=found.backward
    )
    single = found.single.take(~in_cycles.file[found.single.file])
    reads, lineage = _reads(found, len(work.ids)), column(tables.files, "lineage")
    ids = tables.ids
    around, grouped = groups.find(single, reads, lineage, options)
    alone = found.labels.take(~in_cycles.file[found.labels.file])
    cyclic = in_cycles.file & found.facts.labelled
    labels = Labels.joined([_shared(cyclic), alone, grouped]).slim()
    del alone, grouped
    sources, links = _sources(found, around, in_cycles, single), found.links
    del found, in_cycles, single, tables  # they are with the sources now, or in another order
    site = choice.Site(options, int(run["nodes"]), run.get("hosts_by_site", {}))
    give_back()
    decided = _decided(labels, sources, site, run["completeness"]["blind_to"], lost, resources)
    del sources
    texts = evidence.groups(around, labels, decided.chosen)
    return (
        edges.patterns_table(decided, ids, links, resources),
        edges.groups_table(around, decided, texts, work.ids, ids),
    )


def _decided(
    labels: Labels,
    sources: numbers.Sources,
    site: choice.Site,
    blind_to: Sequence[str],
    lost: pa.Table | None,
    resources: Resources,
) -> edges.Decided:
    """The labels with their placements, how sure they are, and why."""
    facts, single, around = sources.facts, sources.single, sources.around
    chosen = choice.choose(labels, facts, single, around, site, resources)
    factors = confidence.rate(labels, facts, blind_to, lost).slim()
    extra = evidence.Extra(bool(site.hosts_by_site), site.options.link_rates)
    said = evidence.write(labels, factors, chosen, sources, extra, resources)
    return edges.Decided(labels, chosen, said, factors.confidence(), factors.ordered)


def _found(
    tables: Tables, work: TaskRows, options: Options, losses: Losses | None, resources: Resources
) -> PartitionFacts:
    """What decides about each file, partition by partition."""
    bounds = tables.bounds()

    def found_in(i: int) -> PartitionFacts:
        found = find(tables.partition(*bounds[i]), work, options, losses)
        return replace(found, facts=found.facts.slim(), labels=found.labels.slim())

    parts = compute_all(found_in, range(len(bounds)), resources, "labels")
    give_back()
    return _together(parts, [low for low, _ in bounds])


def _reads(found: PartitionFacts, tasks: int) -> np.ndarray:
    """Per task the intermediate bytes that it read."""
    return np.bincount(found.task_reads.task, found.task_reads.bytes, tasks)


def _sources(
    found: PartitionFacts, around: groups.Around, in_cycles: cycles.SharedFiles, single: Single
) -> numbers.Sources:
    return numbers.Sources(
        found.facts,
        around,
        in_cycles,
        single,
        found.read_shapes,
        found.written_shapes,
        found.shared,
        found.shared_ranges,
    )


def _losses(lost: pa.Table | None, work: TaskRows) -> Losses | None:
    if lost is None or not lost.num_rows:
        return None
    task = dense(work.ids, column(lost, "task"))
    some = np.zeros(len(work.ids), bool)
    amounts = [np.zeros(len(work.ids)) for _ in range(2)]
    known = task >= 0
    some[task[known]] = True
    ranges = "ranges" if "ranges" in lost.schema.names else "lost"
    for amount, name in zip(amounts, (ranges, "seen"), strict=True):
        np.add.at(amount, task[known], floats(lost, name)[known])
    return Losses(amounts[0], amounts[1], some)


def _shared(files: Bools) -> Labels:
    at = np.flatnonzero(files)
    pattern = np.full(len(at), code("concurrently_shared"))
    return Labels(at, pattern, np.full(len(at), UNKNOWN), np.ones(len(at)))


def _together(parts: list[PartitionFacts], lows: list[int]) -> PartitionFacts:
    """One `PartitionFacts` of all partitions, with the files numbered through."""
    columns: dict[str, Any] = {}
    for field in fields(PartitionFacts):
        values = [getattr(part, field.name) for part in parts]
        if isinstance(values[0], Rows):
            for rows, low in zip(values, lows, strict=True):
                if hasattr(rows, "file"):
                    rows.file = rows.file + rows.file.dtype.type(low)
            columns[field.name] = united(values)
        else:  # a flag
            columns[field.name] = sum(values[1:], start=values[0])
    return PartitionFacts(**columns)
