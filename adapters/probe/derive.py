"""Parameters of a cluster file from the probe's samples; in seconds, bytes, bytes per second."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

import numpy as np

from tracehint.adapters.probe.measurements import Known, ProcessorWork, Seen, exact
from tracehint.adapters.probe.probe import SMALL
from tracehint.analyzer.predict.cluster import TABLES, Number, Range
from tracehint.schemas.wording import plural

HOST = "machine"
MAX_OTHER_LOAD = 0.5  # maximum share of processors in other use while the store's work is measured
MIN_STEP_S = 0.1  # minimum duration of a step: counters have a resolution of 0.01 s


def one_machine(seen: Seen) -> bool:
    """Whether all nodes of the probe, at least two, run on one machine."""
    return len(seen.machines) > 1 and len(set(seen.machines)) == 1 and bool(seen.machines[0])


def processors(seen: Seen, missing: list[str]) -> list[Known]:
    """Derive the shared machine of all nodes, and processor time per file and per byte."""
    known = [name for name in seen.machines if name]
    if not one_machine(seen):
        if len(set(known)) < len(known):
            missing.append("what nodes of one machine share: only some are (set `host`)")
        return []
    idle = statistics.median(w.busy / w.seconds for w in seen.work["rest"])
    source = f"all {seen.nodes} nodes are one machine; {idle:.2g} are busy with nothing to do"
    free = max(seen.cores - idle, seen.cores * (1 - MAX_OTHER_LOAD))
    found = [
        Known("nodes", "host", HOST, "they run on the same kernel: equal boot ids"),
        Known("hosts", "name", HOST, "as in `host`"),
        Known("hosts", "processors", exact(free), source),
    ]
    if idle > MAX_OTHER_LOAD * seen.cores:
        missing.append("the store's work on the processors: others used most of them")
        return found
    return found + _derive_file_costs(seen, idle) + _derive_byte_costs(seen, idle)


def _derive_file_costs(seen: Seen, idle: float) -> list[Known]:
    costs = [_subtract_idle(w, idle) / w.amount for w in _select_long_steps(seen.work["calls"])]
    if not costs:
        return []
    middle = statistics.median(costs)
    return [
        Known(
            "store",
            "file_cpu_ms",
            Range(min(costs), middle, max(costs)),
            "processors while all nodes made, and read, small files",
        )
    ]


def _derive_byte_costs(seen: Seen, idle: float) -> list[Known]:
    steps = _select_long_steps(seen.work["bytes"])
    if len(steps) < 2:
        return []
    amounts = np.array([[w.amount, w.over] for w in steps])
    moved, over = np.linalg.lstsq(
        amounts, np.array([_subtract_idle(w, idle) for w in steps]), rcond=None
    )[0]
    if over < 0 or moved < 0:  # the steps do not separate the two costs
        moved, over = sum(_subtract_idle(w, idle) for w in steps) / float(amounts[:, 0].sum()), 0.0
    source = f"processors in {plural(len(steps), 'step')} that moved bytes"
    return [
        Known("store", "client_cpu_ms_mb", exact(moved / 2), f"{source}: half of each byte's"),
        Known("store", "server_cpu_ms_mb", exact(moved / 2), "the other half"),
        Known("store", "link_cpu_ms_mb", exact(over / 2), "what crossed a link took more"),
    ]


def _select_long_steps(steps: Sequence[ProcessorWork]) -> list[ProcessorWork]:
    return [w for w in steps if w.seconds >= MIN_STEP_S and w.amount > 0]


def _subtract_idle(work: ProcessorWork, idle: float) -> float:
    return max(0.0, work.busy - idle * work.seconds)


MODEL_ERROR = 0.17
MODEL_SOURCE = "90 % of 156 runs on two stores differed by at most so much: docs/reference/gain.md"
SLOWER = 0.7  # a rate below this share of another is a limit of its own


def derive(seen: Seen) -> tuple[list[Known], list[str]]:
    """Return the derived parameters, and those that could not be measured, with the reason."""
    found = [
        Known("nodes", "count", exact(seen.nodes), "nodes of the probe: set your own"),
        Known(
            "nodes",
            "cores",
            exact(seen.slots or seen.cores),
            f"{'as Slurm has them' if seen.slots else 'processors of a node'}: tasks at one time",
        ),
        Known("nodes", "memory_gb", exact(seen.memory), "memory of a node"),
    ]
    missing = [f"{step}: the time was over" for step in seen.skipped]
    found += _derive_links(seen, missing)
    found += _derive_rates(seen, missing)
    found += _derive_law(seen, missing)
    found += _derive_metadata(seen, missing)
    found += _derive_overheads(seen)
    found += processors(seen, missing)
    found += _derive_jobs(seen)
    found.append(Known("model", "error", exact(MODEL_ERROR), MODEL_SOURCE))
    missing.append("reading from disks: needs more data than the memory of the servers holds")
    return found, missing


def _derive_links(seen: Seen, missing: list[str]) -> list[Known]:
    into, out = seen.samples["link_in"], seen.samples["link_out"]
    if not into:
        missing.append("the link: no node read a file of another one")
        return []
    both = [*into, *out]
    share = _spread(seen.samples["efficiency"])
    top = min(share.high, 1.0)
    return [
        Known(
            "nodes",
            "link_mbit",
            _spread(both),
            f"{plural(len(into), 'time')} one from all others, "
            f"{plural(len(out), 'time')} all others from one",
        ),
        Known(
            "nodes",
            "link_efficiency",
            Range(min(share.low, top), min(share.value, top), top),
            "bytes of files by bytes over the link",
        ),
    ]


def _derive_rates(seen: Seen, missing: list[str]) -> list[Known]:
    found = []
    alone, together = seen.samples["local"], seen.samples["local_all"]
    shared = bool(alone and len(together) > 1 and statistics.median(together) < SLOWER * min(alone))
    # concurrent rates of nodes that share processors show their shared limit, not each node's
    local = [*alone, *seen.samples["local_write"], *([] if shared else together)]
    remote = [*seen.samples["remote"], *seen.samples["remote_write"]]
    if local:
        source = plural(len(local), "local transfer")
        found.append(Known("nodes", "local_mb_s", _spread(local), source))
    else:
        missing.append("local rates: no node held a file that it read or wrote")
    if shared and not one_machine(seen):
        source = f"{plural(len(together), 'node')} at once, each from itself: they share processors"
        found.append(Known("store", "shared_mb_s", exact(sum(together)), source))
    link = seen.samples["link_in"]
    if remote and link and statistics.median(remote) < SLOWER * statistics.median(link):
        found.append(
            Known("store", "stream_mb_s", _spread(remote), plural(len(remote), "lone transfer"))
        )
    synced, plain = seen.samples["synced"], [*seen.samples["local_write"], *remote]
    if synced and plain and synced[0] < SLOWER * min(plain):
        found.append(Known("nodes", "disk_write_mb_s", _spread(synced), "written and synced"))
    return found


def _derive_law(seen: Seen, missing: list[str]) -> list[Known]:
    """Derive the placement law from the holders of the first node's small files, in order."""
    laws = seen.laws
    if not laws or seen.nodes < 2:
        missing.append("where files go: there was one node")
        return []
    copies = exact(max(1, round(statistics.mean(len(who) for who in laws))))
    firsts = [tuple(who) for who in laws]
    if not any(firsts):
        return [Known("store", "servers", "apart", "no node held any of the files: set [servers]")]
    source = f"{sum(0 in who for who in firsts)} of {len(firsts)} files on the node that wrote them"
    if all(0 in who for who in firsts):
        return [Known("store", "law", "local", source), Known("store", "copies", copies, source)]
    turn = _find_period(firsts)
    law = "rotate" if turn else "random"
    why = f"{source}; " + (f"the same again after {turn}" if turn else "in no order")
    return [
        Known("store", "law", law, why),
        Known("store", "copies", copies, "nodes that hold a file"),
    ]


def _find_period(places: Sequence[tuple[int, ...]]) -> int:
    """Return the number of files after which the nodes repeat (90 % of pairs); 0: never."""
    for turn in range(2, len(places) // 2 + 1):
        pairs = list(zip(places, places[turn:], strict=False))
        if len(set(places[:turn])) > 1 and sum(a == b for a, b in pairs) >= 0.9 * len(pairs):
            return turn
    return 0


def _derive_metadata(seen: Seen, missing: list[str]) -> list[Known]:
    """Derive times of calls: a lone call takes service time plus waits in client and network; the
    rate of concurrent calls depends on the service time alone."""
    s = seen.samples
    if not s["creates"] or not s["opens"] or not s["small_reads"]:
        missing.append("calls of all nodes at once")
        return []
    local, remote = s["small_read_local"], s["small_read"]
    create, look = _service_time(s["creates"], s["create"]), _service_time(s["opens"], s["open"])
    request = _service_time(s["small_reads"], local or remote, servers=seen.nodes)
    over = SMALL / statistics.median(s["link_in"]) if s["link_in"] else 0.0
    latency = 0.0
    if local and remote:
        latency = max(0.0, statistics.median(remote) - statistics.median(local) - over)
    reads = [*local, *(took - latency - over for took in remote)]
    small, source = f"of {SMALL >> 10} KiB", "all nodes at once"
    read = _subtract(_spread(reads), look.value + request.value + latency)
    wrote = _subtract(_spread(s["small_write"]), create.value + request.value + latency)
    return [
        Known("store", "create_ms", create, f"{s['creates'][0]:,.0f} a second, {source}"),
        Known("store", "open_ms", look, f"{s['opens'][0]:,.0f} a second, {source}"),
        Known("store", "close_ms", exact(0.0), "within write_wait_ms"),
        Known("store", "lookup_ms", exact(0.0), "within read_wait_ms"),
        Known("store", "request_ms", request, f"{s['small_reads'][0]:,.0f} a second, {source}"),
        Known(
            "store",
            "latency_ms",
            exact(latency),
            f"{len(local)} local and {len(remote)} remote files {small} read",
        ),
        Known(
            "store", "read_wait_ms", read, f"{plural(len(reads), 'file')} {small}, one at a time"
        ),
        Known(
            "store",
            "write_wait_ms",
            wrote,
            f"{plural(len(s['small_write']), 'file')} {small}, one at a time",
        ),
    ]


def _derive_overheads(seen: Seen) -> list[Known]:
    """Derive delays and link traffic beyond those of one reader's files."""
    found = []
    if full := seen.samples["create_full"]:
        alone = statistics.median(seen.samples["create"])
        source = f"{plural(len(full), 'file')} made on a node while all others read from it"
        found.append(Known("store", "busy_ms", _subtract(_spread(full), alone), source))
    if calls := seen.samples["call_bytes"]:
        source = "bytes that came in while all nodes opened files"
        found.append(Known("store", "call_bytes", _spread(calls), source))
    if ahead := seen.samples["read_ahead"]:
        source = f"{plural(len(ahead), 'time')} two readers of one file on one node at once"
        found.append(Known("store", "read_ahead_mb", _spread(ahead), source))
    return found


def _derive_jobs(seen: Seen) -> list[Known]:
    """Derive the times in which the batch system starts tasks."""
    delays, intervals = seen.samples["job_delay"], seen.samples["job_interval"]
    if not intervals:
        return []
    return [
        Known(
            "scheduler",
            "task_ms",
            _subtract(_spread(delays), intervals[0]),
            f"{plural(len(delays), 'job')}, one at a time, from submitted to begun",
        ),
        Known(
            "scheduler",
            "dispatch_ms",
            exact(intervals[0]),
            f"jobs submitted at once: {1 / max(intervals[0], 1e-6):.3g} begin in a second",
        ),
    ]


def _service_time(rates: Sequence[float], alone: Sequence[float], servers: int = 1) -> Range:
    """Return the service time of one call: by the rate of concurrent calls, but at most the time of
    a lone call (beyond it, something other than the service slows concurrent calls)."""
    most = statistics.median(alone)
    return _spread([min(servers / rate, most) for rate in rates])


def _subtract(spread: Range, known: float) -> Range:
    return Range(*(max(0.0, x - known) for x in (spread.low, spread.value, spread.high)))


def _spread(values: Sequence[float]) -> Range:
    """Return the median and range of samples: the middle 80 % of ten or more, else all."""
    middle = statistics.median(values)
    if len(values) < 10:
        return Range(min(values), middle, max(values))
    tenths = statistics.quantiles(values, n=10)
    return Range(tenths[0], middle, tenths[-1])


def cluster_text(
    name: str, base: str | None, found: Sequence[Known], missing: Sequence[str]
) -> str:
    """Return the cluster file (TOML): each number with its source, and what is missing."""
    lines = ["# Measured by `tracehint calibrate`: ranges are [low, usual, high]."]
    lines += [f"# Not measured: {what}." for what in missing]
    lines += [f'base = "{base}"'] if base else []
    lines += [f'name = "{name}"']
    for table in TABLES:
        own = [known for known in found if known.table == table]
        lines += ["", f"[{table}]"] if own else []
        lines += [f"{k.key} = {_value(k)}  # {k.source}" for k in own]
    return "\n".join(lines) + "\n"


def _value(known: Known) -> str:
    if isinstance(known.value, str):
        return f'"{known.value}"'
    field = TABLES[known.table][0][known.key]
    assert isinstance(field, Number)
    low, value, high = (_clamp(x / field.unit, field) for x in _list_bounds(known.value))
    if field.whole:
        return str(round(value))
    return f"{value:.4g}" if low == high else f"[{low:.4g}, {value:.4g}, {high:.4g}]"


def _list_bounds(known: Range) -> tuple[float, float, float]:
    return known.low, known.value, known.high


def _clamp(value: float, field: Number) -> float:
    return min(max(value, field.least), field.most)
