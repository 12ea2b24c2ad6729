"""Labels of a run: tables `patterns` and `groups`, with attempts of a task merged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from tracehint.analyzer.arrays import codes, column, floats, in_order, order_by, starts_of
from tracehint.analyzer.dataflow.ranges import among, expand
from tracehint.analyzer.execution.resources import Resources, compute_all
from tracehint.analyzer.memory import give_back
from tracehint.analyzer.patterns import choice, confidence, evidence, groups
from tracehint.analyzer.patterns import evidence as numbers
from tracehint.analyzer.patterns import groups as cycles
from tracehint.analyzer.patterns.choice import Chosen
from tracehint.analyzer.patterns.evidence import EvidenceTexts, placements, words
from tracehint.analyzer.patterns.facts import Losses, PartitionFacts, find
from tracehint.analyzer.patterns.groups import Around
from tracehint.analyzer.patterns.partitions import ROWS, FlowTables, Tables, dense
from tracehint.analyzer.patterns.rows import (
    PATTERNS,
    UNKNOWN,
    Bools,
    Floats,
    HeaderReaders,
    Ints,
    KeptEdges,
    Labels,
    Rows,
    Single,
    TaskRows,
    code,
    concat_rows,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa

    from tracehint.analyzer.model import Options


# Table `patterns` has the labels of the files, and copies of them on the edges where they hold.
#
# An edge into a header read that was set aside gets only the labels that do not depend on the
# readers: gather and concurrently_shared. All other labels hold on every edge of their file (files
# of a reduce have one reader that counts, those of a distribute one producer).

_BLOCK_ROWS = 1 << 18  # labels of edges per block
_READER_INDEPENDENT = (code("gather"), code("concurrently_shared"))


@dataclass
class Decided:
    """Labels with their placements, texts and confidence; `ordered` is a factor of `confidence`."""

    labels: Labels
    chosen: Chosen
    texts: EvidenceTexts
    confidence: Floats
    ordered: Floats


def patterns_table(decided: Decided, ids: Ints, links: KeptEdges, resources: Resources) -> pa.Table:
    """Return table `patterns` of analyzer.model: labels of files, sorted by file, then of edges.

    `ids`: ids of the files. Text columns are dictionary-encoded, because few texts are distinct
    and edges then copy only the codes.
    """
    import pyarrow as pa

    give_back()
    labels, primary = decided.labels, decided.chosen.primary
    order = order_by(labels.file, 1 - primary.astype(np.int64), labels.pattern, labels.group)
    names = placements(decided.chosen)
    own = _columns(decided, order, decided.texts.full, ids, names)
    own["edge"] = pa.nulls(len(order), pa.int64())
    own["primary"], own["confidence"] = primary[order], decided.confidence[order]
    files = _as_table(own)
    own.clear()
    give_back()
    edges, rows = _copy_to_edges(labels.take(order), links, len(ids))
    give_back()

    def copied(number: int) -> pa.Table:
        some = slice(number * _BLOCK_ROWS, (number + 1) * _BLOCK_ROWS)
        edge, at = edges[some], order[rows[some]]
        columns = _columns(decided, at, decided.texts.short, ids, names)
        columns["edge"], columns["primary"] = links.edge[edge], primary[at] | links.aside[edge]
        doubt = np.where(links.uncertain[edge], 0.5, 1.0)
        columns["confidence"] = decided.confidence[at] / decided.ordered[at] * doubt
        return _as_table(columns)

    blocks = range(-(-len(edges) // _BLOCK_ROWS))
    return pa.concat_tables([files, *compute_all(copied, blocks, resources, "labels of edges")])


def _copy_to_edges(labels: Labels, links: KeptEdges, files: int) -> tuple[Ints, Ints]:
    """Return (row of edge, row of label), sorted by edge; `labels` are sorted by file."""
    count = np.bincount(labels.file, minlength=files)
    first = np.cumsum(count) - count
    order = order_by(links.edge)
    file = links.file[order]
    edge, label = expand(first[file], first[file] + count[file])
    edge = order[edge]
    if links.aside.any():
        keep = ~links.aside[edge] | np.isin(labels.pattern[label], _READER_INDEPENDENT)
        edge, label = edge[keep], label[keep]
    return edge, label


def _columns(
    decided: Decided, at: Ints, text: Ints, ids: Ints, names: dict[int, str]
) -> dict[str, Any]:
    """Return the columns that a file's label and its copies on edges have in common."""
    import pyarrow as pa

    labels, chosen = decided.labels, decided.chosen
    group = labels.group[at]

    def word(codes: Ints, known: Any) -> pa.Array:
        return pa.DictionaryArray.from_arrays(pa.array(codes.astype(np.int32)), known)

    columns = {
        "file": ids[labels.file[at]],
        "pattern": word(labels.pattern[at], list(PATTERNS)),
        "group": pa.array(group + 1, mask=group < 0),
        "evidence": word(text[at], decided.texts.texts),
        "saves_bytes": chosen.saves[at],
        "saves_wait_bytes": chosen.saves_wait[at],
        "runner_up_saves_bytes": chosen.runner_up_saves[at],
    }
    for name in ("placement", "runner_up"):
        codes, known = words(getattr(chosen, name), names)
        columns[name] = word(codes[at], known)
    return columns


def _as_table(columns: dict[str, Any]) -> pa.Table:
    import pyarrow as pa

    from tracehint.analyzer.model import PATTERNS as SCHEMA

    return pa.table([pa.array(columns[name]) for name in SCHEMA.names], schema=SCHEMA)


def groups_table(
    around: Around, decided: Decided, evidence: pa.Array, tasks: Ints, ids: Ints
) -> pa.Table:
    """Return table `groups` of analyzer.model; `tasks` and `ids`: ids of tasks and files."""
    import pyarrow as pa

    from tracehint.analyzer.model import GROUPS

    labels = decided.labels
    inside = np.flatnonzero(labels.group >= 0)
    order = inside[order_by(labels.group[inside], labels.file[inside])]
    ends = np.cumsum(np.bincount(labels.group[inside], minlength=len(around)))
    primary = np.zeros(len(around), bool)
    primary[labels.group[inside[decided.chosen.primary[inside]]]] = True
    members = pa.ListArray.from_arrays(
        pa.array(np.append(0, ends), pa.int32()), pa.array(ids[labels.file[order]])
    )
    columns = [
        np.arange(1, len(around) + 1),
        pa.array(PATTERNS).take(pa.array(around.pattern)),
        tasks[around.task],
        members,
        around.bytes,
        primary,
        evidence,
    ]
    return pa.table([pa.array(c) for c in columns], schema=GROUPS)


def read_work(tasks: pa.Table) -> TaskRows:
    """Return the tasks as arrays; attempts of one task share type, name and command."""
    tasks = in_order(tasks, "task")
    attempt = column(tasks, "attempt", null=1)
    start, end = floats(tasks, "start_s"), floats(tasks, "end_s")
    retried = bool((attempt > 1).any())
    who = _last_attempts(tasks, attempt, start) if retried else np.arange(len(start))
    return TaskRows(
        column(tasks, "task"),
        np.append(who, UNKNOWN),
        np.append(column(tasks, "engine") == 1, True),
        attempt,
        start,
        np.where(np.isnan(end), np.inf, end),
        retried,
        start,
    )


def _last_attempts(tasks: pa.Table, attempt: Ints, start: Floats) -> Ints:
    """Return per task the last attempt of its series; each attempt 1 starts a new series."""
    texts = [codes(tasks, name) for name in ("command", "name", "type")]
    order = np.lexsort((start, *texts))
    new = attempt[order] == 1
    new[starts_of(*(t[order] for t in texts))] = True
    series = np.empty(len(order), np.int64)
    series[order] = np.cumsum(new)
    order = order_by(series, attempt)
    first = starts_of(series[order])
    last = np.append(first[1:], len(order)) - 1
    who = np.empty(len(order), np.int64)
    who[order] = np.repeat(order[last], np.diff(np.append(first, len(order))))
    return who


def moments(flow: FlowTables, work: TaskRows) -> Floats:
    """Return per task the time just after its last input was complete, at most its start time;
    NaN where its start is unknown.

    An input is complete when the task that wrote it has ended, as engines start no reader before.
    A file written by an engine is complete after the engine's last write to it.
    """
    complete = np.full(len(work.ids), -np.inf)
    written = _engine_writes(flow.producers, work)
    for at in range(0, flow.edges.num_rows, ROWS):
        edges = flow.edges.slice(at, ROWS)
        ends = (dense(work.ids, column(edges, name)) for name in ("producer", "consumer"))
        producer, consumer = ends
        keep = (producer >= 0) & (consumer >= 0) & ~work.engine[consumer]
        file = column(edges, "file")[keep]
        producer, reader = producer[keep], work.who[consumer[keep]]
        writer = np.where(work.engine[producer], producer, work.who[producer])
        done = np.where(work.engine[producer], written(file, producer), work.end[writer])
        other = writer != reader
        np.maximum.at(complete, reader[other], done[other])
    ready = np.nextafter(complete, np.inf)  # so that a producer and its consumer never overlap
    return np.where(np.isnan(work.start), np.nan, np.minimum(work.start, ready))


def _engine_writes(producers: pa.Table, work: TaskRows) -> Callable[[Ints, Ints], Floats]:
    """Return a function (files, engine tasks) -> time of the last write; inf where unknown."""
    task = dense(work.ids, column(producers, "task"))
    own: Bools = (task >= 0) & work.engine[task]
    key = column(producers, "file")[own] * len(work.ids) + task[own]
    order = np.argsort(key)
    key, last = key[order], floats(producers, "last_s")[own][order]

    def written(file: Ints, task: Ints) -> Floats:
        if not len(key):
            return np.full(len(file), np.inf)
        wanted = file * len(work.ids) + task
        at = np.minimum(np.searchsorted(key, wanted), len(key) - 1)
        return np.where((key[at] == wanted) & ~np.isnan(last[at]), last[at], np.inf)

    return written


@dataclass(frozen=True)
class RunLabels:
    """Tables `patterns` and `groups` of analyzer.model, and `consumers` with the header readers
    marked that are recognised only by comparison with the other readers of their files."""

    patterns: pa.Table
    groups: pa.Table
    consumers: pa.Table


def label(
    flow: FlowTables,
    tasks: pa.Table,
    options: Options,
    run: Mapping[str, Any],
    lost: pa.Table | None = None,
    resources: Resources | None = None,
) -> RunLabels:
    """Find the labels of all files and edges.

    `run["nodes"]` is N of the cost model (at least 1), `run["completeness"]["blind_to"]` lists what
    the collector cannot record. `lost` has columns task, lost, seen: numbers of lost and recorded
    events of the task's processes; None if no event was lost.
    """
    work = read_work(tasks)
    work.ready = moments(flow, work)
    tables, resources = Tables(flow, work), resources or Resources()
    found = _gather_facts(tables, work, options, _read_losses(lost, work), resources)
    in_cycles = cycles.find_cycles(
        tables.files, found.facts, found.links, len(work.ids), options, backward=found.backward
    )
    single = found.single.take(~in_cycles.file[found.single.file])
    reads, lineage = _sum_task_reads(found, len(work.ids)), column(tables.files, "lineage")
    ids = tables.ids
    around, grouped = groups.find_groups(single, reads, lineage, options)
    alone = found.labels.take(~in_cycles.file[found.labels.file])
    cyclic = in_cycles.file & found.facts.labelled
    labels = Labels.concat_parts([_label_concurrently_shared(cyclic), alone, grouped]).slim()
    del alone, grouped
    sources, links = _sources(found, around, in_cycles, single), found.links
    consumers = _with_header_readers(flow.consumers, tables, found.header_readers)
    del found, in_cycles, single, tables  # free memory: `sources` refers to what is still needed
    site = choice.Site(options, int(run["nodes"]), run.get("hosts_by_site", {}))
    give_back()
    decided = _decide_placements(
        labels, sources, site, run["completeness"]["blind_to"], lost, resources
    )
    del sources
    texts = evidence.group_evidence(around, labels, decided.chosen)
    return RunLabels(
        patterns_table(decided, ids, links, resources),
        groups_table(around, decided, texts, work.ids, ids),
        consumers,
    )


def _with_header_readers(consumers: pa.Table, tables: Tables, found: HeaderReaders) -> pa.Table:
    """Mark these readers as header readers (`peek`) in the table, in all attempts of a task."""
    import pyarrow as pa

    if not len(found):
        return consumers
    file = dense(tables.ids, column(consumers, "file"))
    task = dense(tables.work.ids, column(consumers, "task"))
    known = np.flatnonzero((file >= 0) & (task >= 0))
    peek = column(consumers, "peek", 0) == 1
    peek[known] |= among(file[known], tables.work.who[task[known]], found.file, found.who)
    return consumers.set_column(
        consumers.schema.get_field_index("peek"), consumers.schema.field("peek"), pa.array(peek)
    )


def _decide_placements(
    labels: Labels,
    sources: numbers.Sources,
    site: choice.Site,
    blind_to: Sequence[str],
    lost: pa.Table | None,
    resources: Resources,
) -> Decided:
    """Return the labels with their placements, confidence and evidence texts."""
    facts, single, around = sources.facts, sources.single, sources.around
    chosen = choice.choose(labels, facts, single, around, site, resources)
    factors = confidence.rate(labels, facts, blind_to, lost).slim()
    extra = evidence.Extra(bool(site.hosts_by_site), site.options.link_rates)
    written = evidence.write(labels, factors, chosen, sources, extra, resources)
    return Decided(labels, chosen, written, factors.confidence(), factors.ordered)


def _gather_facts(
    tables: Tables, work: TaskRows, options: Options, losses: Losses | None, resources: Resources
) -> PartitionFacts:
    """Compute the facts of all files, partition by partition."""
    bounds = tables.bounds()

    def compute_partition(i: int) -> PartitionFacts:
        found = find(tables.partition(*bounds[i]), work, options, losses)
        return replace(found, facts=found.facts.slim(), labels=found.labels.slim())

    parts = compute_all(compute_partition, range(len(bounds)), resources, "labels")
    give_back()
    return _concat_partitions(parts, [low for low, _ in bounds])


def _sum_task_reads(found: PartitionFacts, tasks: int) -> np.ndarray:
    """Return the intermediate bytes that each task read."""
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


def _read_losses(lost: pa.Table | None, work: TaskRows) -> Losses | None:
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


def _label_concurrently_shared(files: Bools) -> Labels:
    at = np.flatnonzero(files)
    pattern = np.full(len(at), code("concurrently_shared"))
    return Labels(at, pattern, np.full(len(at), UNKNOWN), np.ones(len(at)))


def _concat_partitions(parts: list[PartitionFacts], lows: list[int]) -> PartitionFacts:
    """Concatenate all partitions; file numbers become global."""
    columns: dict[str, Any] = {}
    for field in fields(PartitionFacts):
        values = [getattr(part, field.name) for part in parts]
        if isinstance(values[0], Rows):
            for rows, low in zip(values, lows, strict=True):
                if hasattr(rows, "file"):
                    rows.file = rows.file + rows.file.dtype.type(low)
            columns[field.name] = concat_rows(values)
        else:  # `backward`
            columns[field.name] = sum(values[1:], start=values[0])
    return PartitionFacts(**columns)
