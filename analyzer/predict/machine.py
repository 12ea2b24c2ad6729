"""A cluster with every number fixed, as the engine takes it."""

from __future__ import annotations

from dataclasses import dataclass

from tracehint.analyzer.predict.cluster import SCHEDULERS, Cluster, ClusterSection
from tracehint.analyzer.predict.model import STEAL, law

# enum setting and enum host_setting of engine/sim.h, in their order
SETTINGS = (
    "seed", "scheduler", "steal", "law", "chunk", "width", "copies", "window", "meta_servers",
    "open", "create", "close", "lookup", "latency", "small", "request", "stream", "client",
    "client_cache", "warm", "site_latency", "detail", "task", "read_wait", "write_wait",
    "spread", "ahead", "call", "first", "shared",
    "one_copy", "busy", "file_cpu", "client_cpu", "server_cpu", "link_cpu",
)  # fmt: skip  # a table
HOST_SETTINGS = (
    "cores", "speed", "out", "in", "read", "write", "local", "cache", "dirty", "site", "machine",
)  # fmt: skip  # a table
# setting -> key of the table [store]
_OF_STORE = {
    "chunk": "chunk_mb", "width": "stripe_width", "copies": "copies", "window": "window",
    "meta_servers": "metadata_servers", "open": "open_ms", "create": "create_ms",
    "close": "close_ms", "lookup": "lookup_ms", "latency": "latency_ms", "small": "small_kb",
    "request": "request_ms", "stream": "stream_mb_s", "client": "client_mb_s",
    "client_cache": "client_cache", "warm": "warm", "site_latency": "site_latency_ms",
    "read_wait": "read_wait_ms", "write_wait": "write_wait_ms",
    "spread": "copies_shared", "ahead": "read_ahead_mb", "call": "call_bytes",
    "first": "copies_first_mb", "shared": "shared_mb_s", "one_copy": "first_copy_only",
    "busy": "busy_ms", "file_cpu": "file_cpu_ms", "client_cpu": "client_cpu_ms_mb",
    "server_cpu": "server_cpu_ms_mb", "link_cpu": "link_cpu_ms_mb",
}  # fmt: skip  # a table


@dataclass(frozen=True)
class Machine:
    """`hosts`: HOST_SETTINGS of each, nodes first; `servers`: their hosts; `sites`: (out, in);
    `processors` of each machine that hosts share, the first of those that have their own (0)."""

    settings: dict[str, float]
    hosts: list[dict[str, float]]
    servers: list[int]
    sites: list[tuple[float, float]]
    processors: list[float]
    staging: int | None = None  # the host that holds the inputs of a node-local store


def build(
    cluster: Cluster, seed: int, scheduler: str | None = None, steal: str | None = None
) -> Machine:
    """The machine of a cluster's numbers; `scheduler` and `steal` replace the cluster's."""
    sites = {name: number for number, (name, _) in enumerate(cluster.sites)}
    shared = {name: number for number, (name, _) in enumerate(cluster.hosts, 1)}
    kinds = [([_host(part, sites, shared)], int(part["count"])) for part in cluster.nodes]
    nodes = [host for one, count in kinds for host in one * count]
    where = cluster.store.words["servers"]
    own = {**_host(cluster.servers, sites, shared), "cores": 0.0, "speed": 1.0}
    extra = 0 if where == "all" else 1 if where == "local" else int(cluster.servers["count"])
    hosts = nodes + [own] * extra
    servers = list(range(len(nodes))) if where in ("all", "local") else []
    servers += range(len(nodes), len(hosts))
    store = cluster.store
    settings = {name: store[key] for name, key in _OF_STORE.items()}
    settings |= {
        "chunk": float(max(1, round(store["chunk_mb"]))),
        "seed": float(seed),
        "scheduler": float(SCHEDULERS.index(scheduler or cluster.scheduler.words["kind"])),
        "steal": float(STEAL.index(steal)) if steal else cluster.scheduler["steal"],
        "task": cluster.scheduler["task_ms"],
        "law": float(law("local" if where == "local" else store.words["law"])),
    }
    rates = [(site["up_mbit"], site["down_mbit"]) for _, site in cluster.sites]
    processors = [0.0, *(host["processors"] for _, host in cluster.hosts)]
    staging = len(nodes) if where == "local" else None
    return Machine(settings, hosts, servers, rates or [(0.0, 0.0)], processors, staging)


def _host(part: ClusterSection, sites: dict[str, int], shared: dict[str, int]) -> dict[str, float]:
    link = part["link_mbit"] * part["link_efficiency"]
    return {
        "cores": part.numbers["cores"].value if "cores" in part.numbers else 0.0,
        "speed": part.numbers["speed"].value if "speed" in part.numbers else 1.0,
        "out": link,
        "in": link,
        "read": part["disk_read_mb_s"],
        "write": part["disk_write_mb_s"],
        "local": part["local_mb_s"],
        "cache": part["memory_gb"],
        "dirty": part["write_buffer_gb"],
        "site": float(sites.get(part.words["site"], 0)),
        "machine": float(shared.get(part.words["host"], 0)),
    }
