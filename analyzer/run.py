"""The contract's `run` object: what ran, where, and how completely it was recorded."""

from __future__ import annotations

import dataclasses
import signal
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from tracehint.analyzer.sites import hosts_by_site
from tracehint.analyzer.tasks.batch import requested_of_slurm
from tracehint.analyzer.text import clean
from tracehint.schemas.losses import EVENTS, events, kinds_that, losses_of, score, words
from tracehint.schemas.wording import plural

if TYPE_CHECKING:
    import pyarrow as pa

    from tracehint.analyzer.dataflow.partitions import Execution
    from tracehint.analyzer.model import Options, Segmentation
    from tracehint.schemas.manifest import Manifest
    from tracehint.schemas.store import Bundle

# Factor on the completeness score of a collector that is always blind to this. Other blind spots
# matter only if a run hits them, and are then recorded as losses.
BLIND_SCORE = {"bytes": 0.5, "offsets": 0.8, "copy_file_range": 0.8, "static_binaries": 0.95}
_REQUESTED = ("cores", "memory_bytes", "peak_bytes")  # columns of declared_tasks
_SIGNALS = {s.value: s.name for s in signal.Signals}


def run_object(
    bundle: Bundle,
    tasks: pa.Table,
    roots: Sequence[bytes],
    options: Options,
    extents: Execution,
    notes: Sequence[str] = (),
) -> dict[str, Any]:
    """The contract's `run` object; `notes` are added to those of the completeness."""
    manifest = bundle.manifest
    started = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=manifest.started_ns // 1000)
    hosts = _hosts(bundle, tasks)
    return {
        "command": [clean(part) for part in manifest.command],
        "hosts": hosts,
        "sites": sorted({h.site for h in manifest.hosts if h.site}),
        **({"hosts_by_site": by_site} if (by_site := hosts_by_site(manifest)) else {}),
        "collector": manifest.collector,
        "started": started.isoformat().replace("+00:00", "Z"),
        "duration_s": _duration(bundle, tasks, extents),
        **counted_nodes(options.nodes, tasks, len(hosts)),
        "data_roots": [root.decode("utf-8", "replace") for root in roots],
        "exit_status": manifest.exit_status,
        "complete": manifest.complete,
        "troubles": troubles(manifest),
        "lost_events": events(losses_of(bundle.tables["losses"])),
        "completeness": _completeness(bundle, extents, notes),
        "parameters": parameters(options),
    }


def find_requests(bundle: Bundle, segmented: Segmentation) -> dict[str, dict[str, int]]:
    """Return per task type the largest request of cores and bytes of memory, and the largest use
    of memory, as stated by the engine, else by Slurm."""
    import pyarrow as pa
    import pyarrow.compute as pc

    rows, tasks = bundle.tables["declared_tasks"], segmented.tasks
    by_type = requested_of_slurm(bundle.tables["processes"], segmented)
    names = [n for n in _REQUESTED if rows.column(n).null_count < rows.num_rows]
    if not names:
        return by_type
    of = segmented.declared_task
    at = pc.index_in(rows.column("task"), value_set=of.column("declared"))
    task = of.column("task").take(at)
    kind = tasks.column("type").take(pc.index_in(task, value_set=tasks.column("task")))
    table = pa.table({"type": kind, **{n: rows.column(n) for n in names}})
    found = table.group_by("type").aggregate([(n, "max") for n in names]).to_pylist()
    for row in found:
        stated = {n: row[f"{n}_max"] for n in names if row[f"{n}_max"] is not None}
        if row["type"] is not None and stated:
            by_type.setdefault(row["type"], {}).update(stated)
    return dict(sorted(by_type.items()))


def parameters(options: Options) -> dict[str, Any]:
    """Return the thresholds and the default placement with which the labels were computed."""
    hidden = ("nodes", "ranges", "data_roots", "sites")
    found = {k: v for k, v in dataclasses.asdict(options).items() if k not in hidden}
    for name, default in (("link_rates", None), ("split", ()), ("whole", ()), ("ranks", None)):
        if found[name] == default:
            del found[name]
    return found


def counted_nodes(given: int | None, tasks: pa.Table, hosts: int) -> dict[str, Any]:
    """Return N of the cost model and its source: the given number, else the number of hosts if
    several, else the largest number of concurrent tasks, at least 2."""
    if given:
        return {"nodes": given, "nodes_from": "given"}
    if hosts > 1:
        return {"nodes": hosts, "nodes_from": "hosts"}
    return {"nodes": max(2, most_at_once(tasks)), "nodes_from": "tasks"}


def most_at_once(tasks: pa.Table) -> int:
    """Return the most concurrent tasks (no engines); an unknown end is the end of the run."""
    import numpy as np
    import pyarrow.compute as pc

    work = tasks.filter(pc.invert(tasks.column("engine")))
    if not work.num_rows:
        return 0
    start = work.column("start_s").to_numpy()
    end = np.asarray(pc.fill_null(work.column("end_s"), float("inf")).to_numpy())
    moments = np.concatenate([start, end])
    steps = np.concatenate([np.ones(len(start), np.int64), -np.ones(len(end), np.int64)])
    # Ends sort before starts at the same moment: the next task reuses the slot.
    return max(1, int(np.cumsum(steps[np.lexsort((steps, moments))]).max()))


# Losses of offsets: whether and how much was read or written is still known. And losses that
# count open files instead of events.
RANGES_ONLY, WHOLE_OPENS = ("extent_records",), ("open_table_full",)


# `ranges`, `whole`, `kinds`: lists of loss kinds, as SQL.
_LOST_SQL = """
    with seen as (
        select task, sum(n) as seen, sum(o) as opens
        from (select proc, 1 as n, 1 as o from opens
            union all select proc, "count", 0 from extents)
        join proc_task using (proc) group by task),
    per_event as (select coalesce(sum(opens) / nullif(sum(seen), 0), 1) as opens from seen),
    lost as (
        select task, sum("count")::double as lost,
            sum("count" * (kind in ({ranges}))::int)::double as ranges,
            sum("count" * case when kind in ({ranges}) then 0 when kind in ({whole}) then 1
                else per_event.opens end)::double as gone
        from losses left join proc_task using (proc), per_event
        where kind in ({kinds}) group by task),
    every as (select sum(seen) as seen, (select sum(lost) from lost where task is null) as lost,
            (select sum(ranges) from lost where task is null) as ranges,
            (select sum(gone) from lost where task is null) as gone
        from seen),
    used as (
        select task, count(*) filter (n = 1) as once, count(*) filter (n = 2) as twice,
            count(*) filter (n > 2) as often
        from (select task, file, count(*) as n from opens join proc_task using (proc)
            where read_ops <> 0 or write_ops <> 0 group by task, file)
        group by task),
    share as (select task, seen / nullif((select seen from every), 0) as share from seen)
    select task, coalesce(lost.lost, 0) + coalesce(every.lost * share, 0) as lost,
        coalesce(seen.seen, 0)::double as seen,
        coalesce(lost.ranges, 0) + coalesce(every.ranges * share, 0) as ranges,
        coalesce(lost.gone, 0) + coalesce(every.gone * share, 0) as gone,
        coalesce(seen.opens, 0)::double as opens, coalesce(once, 0)::double as once,
        coalesce(twice, 0)::double as twice, coalesce(often, 0)::double as often
    from (select * from lost where task is not null) lost full join seen using (task)
    left join share using (task) left join used using (task), every
    where task is not null
"""


def lost_events(bundle: Bundle, proc_task: pa.Table, extents: Execution) -> pa.Table | None:
    """Return the events lost and recorded per task, or None if nothing was lost.

    Columns: task; lost, seen: events; ranges: lost events that only held offsets; opens: recorded
    accesses; gone: accesses lost entirely (an estimate: the lost events contain the same share of
    opens as the recorded ones); once, twice, often: files that the task opened once, twice, or
    three times and more to read or write. Losses without a known process are spread over all
    tasks in proportion to their recorded events.
    """
    if not bundle.tables["losses"].num_rows:
        return None
    from tracehint.analyzer.execution.resources import connect

    con = connect()
    for name in ("losses", "opens"):
        con.register(name, bundle.tables[name])
    con.register("extents", extents.by_process())
    con.register("proc_task", proc_task)
    kinds = ", ".join(f"'{kind}'" for kind in kinds_that(EVENTS))
    ranges, whole = (", ".join(f"'{k}'" for k in names) for names in (RANGES_ONLY, WHOLE_OPENS))
    return con.sql(_LOST_SQL.format(kinds=kinds, ranges=ranges, whole=whole)).to_arrow_table()


def _completeness(bundle: Bundle, extents: Execution, notes: Sequence[str]) -> dict[str, Any]:
    manifest, losses = bundle.manifest, losses_of(bundle.tables["losses"])
    seen = sum(bundle.tables[name].num_rows for name in ("processes", "opens")) + extents.rows()
    if "missing_rows" in losses:
        seen = _count_known_events(bundle, extents)
    rating = score(losses, seen, whole=manifest.complete)
    for code in manifest.blind_to:
        rating *= BLIND_SCORE.get(code, 1.0)
    reported = [*words(losses), *_list_missing_tables(bundle), *bundle.problems, *manifest.notes]
    return {
        "score": round(rating, 4),
        "blind_to": list(manifest.blind_to),
        "losses": {clean(kind): n for kind, n in losses.items()},
        "notes": list(dict.fromkeys([*map(clean, reported), *notes])),
    }


def _count_known_events(bundle: Bundle, extents: Execution) -> int:
    """Return the number of recorded events of processes that have a row of their own."""
    import pyarrow as pa
    import pyarrow.compute as pc

    known = bundle.tables["processes"]["proc"].combine_chunks()
    opens, counted = bundle.tables["opens"]["proc"], extents.by_process()
    mine = counted.filter(pc.is_in(counted["proc"], known))
    accesses = pc.sum(mine["count"]).as_py() or 0
    opened: int = pc.sum(pc.is_in(opens, known).cast(pa.int64())).as_py() or 0
    return len(known) + opened + int(accesses)


def _list_missing_tables(bundle: Bundle) -> list[str]:
    """Return a note for each table with missing rows."""
    table = bundle.tables["losses"]
    rows = zip(*(table.column(c).to_pylist() for c in ("kind", "count", "detail")), strict=True)
    return [
        f"{detail}: {plural(n, 'row')} missing"
        for kind, n, detail in rows
        if kind == "missing_rows"
    ]


def troubles(manifest: Manifest) -> list[str]:
    """Return the warnings to show first: the command failed, the recorder was stopped."""
    found = []
    status = manifest.exit_status
    if status:
        name = _SIGNALS.get(status - 128)
        how = f"was ended by {name}" if name else f"failed with exit status {status}"
        found.append(f"The run {how}: what it did until then is shown.")
    if not manifest.complete:
        found.append("The recorder did not reach its end: what came after is unknown.")
    elif manifest.recording and manifest.ended_ns is None:
        found.append("The recorder was stopped before it wrote the tables: they come from its log.")
    return found


def _hosts(bundle: Bundle, tasks: pa.Table) -> list[str]:
    names = {h.name for h in bundle.manifest.hosts}
    names |= {h for h in tasks.column("host").unique().to_pylist() if h}
    return sorted(clean(name) for name in names)


def _duration(bundle: Bundle, tasks: pa.Table, extents: Execution) -> float:
    """Return the duration in seconds, up to the last recorded time if the end was not recorded."""
    import pyarrow.compute as pc

    manifest = bundle.manifest
    if manifest.ended_ns is not None:
        return round(max(0, manifest.ended_ns - manifest.started_ns) / 1e9, 6)
    ends = [pc.max(tasks.column("end_s")).as_py(), pc.max(tasks.column("start_s")).as_py()]
    last = extents.last_ns()
    if last is not None:
        ends.append((last - manifest.started_ns) / 1e9)
    longest: float = max([0.0, *(e for e in ends if e is not None)])
    return round(longest, 6)
