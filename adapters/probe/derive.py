"""From what the probe saw to the numbers of a cluster file; in seconds, bytes, bytes per second."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from tracehint.adapters.probe.known import Known, exact
from tracehint.adapters.probe.processors import one_machine, processors
from tracehint.adapters.probe.seen import Seen
from tracehint.adapters.probe.steps import SMALL
from tracehint.analyzer.predict.cluster import Range

MODEL_ERROR = 0.17
MODEL_SAID = "90 % of 156 runs on two stores differed by at most so much: docs/reference/gain.md"
SLOWER = 0.7  # a rate below this share of another one is a limit of its own


def derive(seen: Seen) -> tuple[list[Known], list[str]]:
    """What can be said, and what could not be measured, with the reason."""
    found = [
        Known("nodes", "count", exact(seen.nodes), "nodes of the probe: say your own"),
        Known("nodes", "cores", exact(seen.cores), "processors of a node: tasks at one time"),
        Known("nodes", "memory_gb", exact(seen.memory), "memory of a node"),
    ]
    missing = [f"{step}: the time was over" for step in seen.skipped]
    found += _links(seen, missing)
    found += _rates(seen, missing)
    found += _law(seen, missing)
    found += _metadata(seen, missing)
    found += _overheads(seen)
    found += processors(seen, missing)
    found.append(Known("model", "error", exact(MODEL_ERROR), MODEL_SAID))
    missing.append("reading from disks: needs more data than the memory of the servers holds")
    return found, missing


def _links(seen: Seen, missing: list[str]) -> list[Known]:
    into, out = seen.samples["link_in"], seen.samples["link_out"]
    if not into:
        missing.append("the link: no node read a file of another one")
        return []
    both = [*into, *out]
    share = _spread(seen.samples["efficiency"])
    top = min(share.high, 1.0)
    return [
        Known("nodes", "link_mbit", _spread(both), f"{len(into)} times one from all others, "
            f"{len(out)} times all others from one"),
        Known("nodes", "link_efficiency", Range(min(share.low, top), min(share.value, top), top),
            "bytes of files by bytes over the link"),
    ]  # fmt: skip  # a table


def _rates(seen: Seen, missing: list[str]) -> list[Known]:
    found = []
    alone, together = seen.samples["local"], seen.samples["local_all"]
    shared = bool(alone and len(together) > 1 and statistics.median(together) < SLOWER * min(alone))
    # what nodes that share processors get at once is that limit, and not each one's own
    local = [*alone, *seen.samples["local_write"], *([] if shared else together)]
    remote = [*seen.samples["remote"], *seen.samples["remote_write"]]
    if local:
        found.append(Known("nodes", "local_mb_s", _spread(local), f"{len(local)} local transfers"))
    else:
        missing.append("local rates: no node held a file that it read or wrote")
    if shared and not one_machine(seen):
        said = f"{len(together)} nodes at once, each from itself: they share processors"
        found.append(Known("store", "shared_mb_s", exact(sum(together)), said))
    link = seen.samples["link_in"]
    if remote and link and statistics.median(remote) < SLOWER * statistics.median(link):
        found.append(
            Known("store", "stream_mb_s", _spread(remote), f"{len(remote)} transfers, each alone")
        )
    synced, plain = seen.samples["synced"], [*seen.samples["local_write"], *remote]
    if synced and plain and synced[0] < SLOWER * min(plain):
        found.append(Known("nodes", "disk_write_mb_s", _spread(synced), "written and synced"))
    return found


def _law(seen: Seen, missing: list[str]) -> list[Known]:
    """Who holds the small files that the first node wrote, in their order."""
    laws = seen.laws
    if not laws or seen.nodes < 2:
        missing.append("where files go: there was one node")
        return []
    copies = exact(max(1, round(statistics.mean(len(who) for who in laws))))
    firsts = [tuple(who) for who in laws]
    if not any(firsts):
        return [Known("store", "servers", "apart", "no node held any of the files: say [servers]")]
    said = f"{sum(0 in who for who in firsts)} of {len(firsts)} files on the node that wrote them"
    if all(0 in who for who in firsts):
        return [Known("store", "law", "local", said), Known("store", "copies", copies, said)]
    turn = _period(firsts)
    law = "rotate" if turn else "random"
    why = f"{said}; " + (f"the same again after {turn}" if turn else "in no order")
    return [
        Known("store", "law", law, why),
        Known("store", "copies", copies, "nodes that hold a file"),
    ]


def _period(places: Sequence[tuple[int, ...]]) -> int:
    """After how many files the same nodes come again, nearly always; 0: never."""
    for turn in range(2, len(places) // 2 + 1):
        pairs = list(zip(places, places[turn:], strict=False))
        if len(set(places[:turn])) > 1 and sum(a == b for a, b in pairs) >= 0.9 * len(pairs):
            return turn
    return 0


def _metadata(seen: Seen, missing: list[str]) -> list[Known]:
    """A call alone takes its service and a wait in client and network; all at once the service
    alone decides."""
    s = seen.samples
    if not s["creates"] or not s["opens"] or not s["small_reads"]:
        missing.append("calls of all nodes at once")
        return []
    local, remote = s["small_read_local"], s["small_read"]
    create, look = _service(s["creates"], s["create"]), _service(s["opens"], s["open"])
    request = _service(s["small_reads"], local or remote, servers=seen.nodes)
    over = SMALL / statistics.median(s["link_in"]) if s["link_in"] else 0.0
    latency = 0.0
    if local and remote:
        latency = max(0.0, statistics.median(remote) - statistics.median(local) - over)
    reads = [*local, *(took - latency - over for took in remote)]
    small, said = f"of {SMALL >> 10} KiB", "all nodes at once"
    read = _less(_spread(reads), look.value + request.value + latency)
    wrote = _less(_spread(s["small_write"]), create.value + request.value + latency)
    return [
        Known("store", "create_ms", create, f"{s['creates'][0]:,.0f} a second, {said}"),
        Known("store", "open_ms", look, f"{s['opens'][0]:,.0f} a second, {said}"),
        Known("store", "close_ms", exact(0.0), "within write_wait_ms"),
        Known("store", "lookup_ms", exact(0.0), "within read_wait_ms"),
        Known("store", "request_ms", request, f"{s['small_reads'][0]:,.0f} a second, {said}"),
        Known("store", "latency_ms", exact(latency),
            f"{len(local)} local and {len(remote)} remote files {small} read"),
        Known("store", "read_wait_ms", read, f"{len(reads)} files {small}, one at a time"),
        Known("store", "write_wait_ms", wrote,
            f"{len(s['small_write'])} files {small}, one at a time"),
    ]  # fmt: skip  # a table


def _overheads(seen: Seen) -> list[Known]:
    """Bytes over the links beside those of one reader's files."""
    found = []
    if full := seen.samples["create_full"]:
        alone = statistics.median(seen.samples["create"])
        said = f"{len(full)} files made on a node while all others read from it"
        found.append(Known("store", "busy_ms", _less(_spread(full), alone), said))
    if calls := seen.samples["call_bytes"]:
        said = "bytes that came in while all nodes opened files"
        found.append(Known("store", "call_bytes", _spread(calls), said))
    if ahead := seen.samples["read_ahead"]:
        said = f"{len(ahead)} times two readers of one file on one node at once"
        found.append(Known("store", "read_ahead_mb", _spread(ahead), said))
    return found


def _service(rates: Sequence[float], alone: Sequence[float], servers: int = 1) -> Range:
    """Seconds of one call in the service: what all at once get, but no longer than a call alone
    takes in all (then something else than the service slows them when all call)."""
    most = statistics.median(alone)
    return _spread([min(servers / rate, most) for rate in rates])


def _less(spread: Range, known: float) -> Range:
    return Range(*(max(0.0, x - known) for x in (spread.low, spread.value, spread.high)))


def _spread(values: Sequence[float]) -> Range:
    """Of many samples the middle 80 %, of few all; the value is the median."""
    middle = statistics.median(values)
    if len(values) < 10:
        return Range(min(values), middle, max(values))
    tenths = statistics.quantiles(values, n=10)
    return Range(tenths[0], middle, tenths[-1])
