"""The contract's `run` object: what ran, where, and how much of it the collector saw."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from tracehint.analyzer.sites import hosts_by_site
from tracehint.analyzer.text import clean

if TYPE_CHECKING:
    import pyarrow as pa

    from tracehint.analyzer.flow.extents import Execution
    from tracehint.analyzer.model import Options
    from tracehint.schemas.store import Bundle

# Loss kind -> (counts as lost events, what it means in words; `{n}` is the count).
LOSSES: dict[str, tuple[bool, str]] = {
    "lifecycle_records": (True, "{n} process or file events were lost: names may be missing"),
    "extent_records": (True, "{n} access records were lost: bytes and edges may be missing"),
    "open_table_full": (True, "{n} open files were not followed: too many at one time"),
    "recursion_misses": (True, "{n} events were missed inside the kernel"),
    "log_lines": (True, "{n} lines of the log could not be read"),
    "spool_write": (True, "{n} records could not be written to the spool (disk full?)"),
    "damaged_segment": (True, "{n} damaged parts of the bundle were left out"),
    "unreadable_log": (True, "{n} logs could not be read"),
    "log_limits": (True, "{n} records were left out by the limits of the log itself"),
    "killed_process": (False, "{n} processes were killed: of them only counters are known"),
    "truncated_log": (False, "the log ends in the middle ({n}): what came after is unknown"),
    "killed_recorder": (False, "the recorder was killed: what came after is unknown"),
    "unfollowed_tasks": (False, "{n} tasks could not be followed by the recorder of their node"),
    "unknown_calls": (False, "{n} calls of a kind that the collector does not follow"),
    "credentials_exec": (False, "{n} programs changed their credentials and were not followed"),
    "path_cut": (False, "{n} paths were too long and are cut"),
    "argv_cut": (False, "{n} command lines were too long and are cut"),
}  # fmt: skip  # a table

# What an answer is worth when the collector is blind to this all the time. Other blind spots
# matter only when a run goes there, and then show up as losses.
BLIND_SCORE = {"bytes": 0.5, "offsets": 0.8, "copy_file_range": 0.8, "static_binaries": 0.95}
INCOMPLETE_SCORE = 0.9  # the recorder did not reach its end
DAMAGED_SCORE = 0.8  # some part of the bundle could not be read


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
    lost, _ = _totals(bundle, extents)
    return {
        "command": [clean(part) for part in manifest.command],
        "hosts": hosts,
        "sites": sorted({h.site for h in manifest.hosts if h.site}),
        **({"hosts_by_site": by_site} if (by_site := hosts_by_site(manifest)) else {}),
        "collector": manifest.collector,
        "started": started.isoformat().replace("+00:00", "Z"),
        "duration_s": _duration(bundle, tasks, extents),
        "nodes": options.nodes or default_nodes(tasks, len(hosts)),
        "data_roots": [root.decode("utf-8", "replace") for root in roots],
        "lost_events": lost,
        "completeness": _completeness(bundle, extents, notes),
        "parameters": parameters(options),
    }


def parameters(options: Options) -> dict[str, Any]:
    """The thresholds and the default placement that the labels were made with."""
    hidden = ("nodes", "ranges", "data_roots", "sites")
    found = {k: v for k, v in dataclasses.asdict(options).items() if k not in hidden}
    if options.link_rates is None:
        del found["link_rates"]
    return found


def default_nodes(tasks: pa.Table, hosts: int) -> int:
    """N of the cost model: the hosts if several, else the most tasks at one time, at least 2."""
    return hosts if hosts > 1 else max(2, most_at_once(tasks))


def most_at_once(tasks: pa.Table) -> int:
    """The most tasks (not engines) that ran at the same time; an unknown end is the run's end."""
    import numpy as np
    import pyarrow.compute as pc

    work = tasks.filter(pc.invert(tasks.column("engine")))
    if not work.num_rows:
        return 0
    start = work.column("start_s").to_numpy()
    end = np.asarray(pc.fill_null(work.column("end_s"), float("inf")).to_numpy())
    moments = np.concatenate([start, end])
    steps = np.concatenate([np.ones(len(start), np.int64), -np.ones(len(end), np.int64)])
    # At one moment ends come first: a task that starts when another ends takes its place.
    return max(1, int(np.cumsum(steps[np.lexsort((steps, moments))]).max()))


# Losses after which it is known that and how much was read or written, but not where; and
# those that count open files, not events.
RANGES_ONLY, WHOLE_OPENS = ("extent_records",), ("open_table_full",)


def lost_events(bundle: Bundle, proc_task: pa.Table, extents: Execution) -> pa.Table | None:
    """Events lost and recorded per task; None when nothing was lost.

    Columns: task; lost, seen: events; ranges: those of `lost` that only say where something was
    read or written; opens: accesses that were recorded; gone: accesses of which nothing is known
    (an estimate: as many of the lost events as of the recorded ones are opens); once, twice,
    often: files that the task opened once, twice, three times or more to read or write. Losses
    of no known process are spread over all tasks in proportion to what they did.
    """
    if not bundle.tables["losses"].num_rows:
        return None
    from tracehint.analyzer.sql import connect

    con = connect()
    for name in ("losses", "opens"):
        con.register(name, bundle.tables[name])
    con.register("extents", extents.by_process())
    con.register("proc_task", proc_task)
    kinds = ", ".join(f"'{kind}'" for kind, (event, _) in LOSSES.items() if event)
    ranges, whole = (", ".join(f"'{k}'" for k in names) for names in (RANGES_ONLY, WHOLE_OPENS))
    return con.sql(
        f"""
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
    ).to_arrow_table()


def _totals(bundle: Bundle, extents: Execution) -> tuple[int, int]:
    """Lost and recorded events of the whole run."""
    losses = bundle.tables["losses"]
    pairs = zip(losses.column("kind").to_pylist(), losses.column("count").to_pylist(), strict=True)
    lost = sum(max(0, n) for kind, n in pairs if LOSSES.get(kind, (False, ""))[0])
    rows = sum(bundle.tables[name].num_rows for name in ("processes", "opens"))
    return lost, rows + extents.rows()


def _completeness(bundle: Bundle, extents: Execution, notes: Sequence[str]) -> dict[str, Any]:
    manifest = bundle.manifest
    lost, seen = _totals(bundle, extents)
    score = seen / (seen + lost) if seen + lost else 1.0
    for code in manifest.blind_to:
        score *= BLIND_SCORE.get(code, 1.0)
    if not manifest.complete:
        score *= INCOMPLETE_SCORE
    if bundle.problems:
        score *= DAMAGED_SCORE
    words = [*_loss_words(bundle), *map(clean, manifest.notes), *notes]
    if not manifest.complete:
        words.insert(0, "the recorder did not reach its end: the last accesses may be missing")
    return {
        "score": round(score, 4),
        "blind_to": list(manifest.blind_to),
        "notes": list(dict.fromkeys(words)),
    }


def _loss_words(bundle: Bundle) -> list[str]:
    """One sentence per kind of loss, and the details of damaged parts."""
    counts: dict[str, int] = {}
    losses = bundle.tables["losses"]
    for kind, n in zip(
        losses.column("kind").to_pylist(), losses.column("count").to_pylist(), strict=True
    ):
        counts[kind] = counts.get(kind, 0) + n
    words = [
        LOSSES.get(kind, (False, "{n} losses of kind " + kind.replace("{", "").replace("}", "")))[
            1
        ].format(n=n)
        for kind, n in counts.items()
    ]
    return words + [clean(problem) for problem in bundle.problems]


def _hosts(bundle: Bundle, tasks: pa.Table) -> list[str]:
    names = {h.name for h in bundle.manifest.hosts}
    names |= {h for h in tasks.column("host").unique().to_pylist() if h}
    return sorted(clean(name) for name in names)


def _duration(bundle: Bundle, tasks: pa.Table, extents: Execution) -> float:
    """Seconds; to the last thing seen when the recorder did not note the end."""
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
