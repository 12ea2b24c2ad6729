"""Interface to the simulator tracehint-sim: writing its input, running it, reading its answers."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from tracehint.analyzer.predict.cluster import SCHEDULERS, Cluster, ClusterSection
from tracehint.analyzer.predict.model import (
    SPENT,
    STEAL,
    Floats,
    Placement,
    SimulatedRun,
    Workload,
    keep_held,
    law,
)
from tracehint.errors import InputError, MissingDependencyError

# enum setting and enum host_setting of engine/sim.h, in their order
SETTINGS = (
    "seed", "scheduler", "steal", "law", "chunk", "width", "copies", "window", "meta_servers",
    "open", "create", "close", "lookup", "latency", "small", "request", "stream", "client",
    "client_cache", "warm", "site_latency", "detail", "task", "read_wait", "write_wait",
    "spread", "ahead", "call", "first", "shared",
    "one_copy", "busy", "file_cpu", "client_cpu", "server_cpu", "link_cpu",
    "pool", "dispatch", "cache_writes", "fill",
)  # fmt: skip  # a table
HOST_SETTINGS = (
    "cores",
    "speed",
    "out",
    "in",
    "read",
    "write",
    "local",
    "cache",
    "dirty",
    "site",
    "machine",
)
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
    "cache_writes": "client_cache_writes",
}  # fmt: skip  # a table


@dataclass(frozen=True)
class Machine:
    """Hardware of a scenario. `hosts`: HOST_SETTINGS per host, nodes first; `servers`: host of each
    server; `sites`: (out, in); `processors` per shared machine; number 0: hosts with their own."""

    settings: dict[str, float]
    hosts: list[dict[str, float]]
    servers: list[int]
    sites: list[tuple[float, float]]
    processors: list[float]
    staging: int | None = None  # the host that holds the inputs of a node-local store


def build(
    cluster: Cluster,
    seed: int,
    scheduler: str | None = None,
    steal: str | None = None,
    *,
    scratch: bool = False,
) -> Machine:
    """Return the machine of a cluster; `scheduler` and `steal` override the cluster's.
    `scratch`: nodes without a server of the store hold files in node-local storage."""
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
    pool = len(servers)
    if scratch:
        servers += range(len(nodes) if where in ("one", "apart") else 0)
    store = cluster.store
    settings = {name: store[key] for name, key in _OF_STORE.items()}
    settings |= {
        "chunk": float(max(1, round(store["chunk_mb"]))),
        "seed": float(seed),
        "scheduler": float(SCHEDULERS.index(scheduler or cluster.scheduler.words["kind"])),
        "steal": float(STEAL.index(steal)) if steal else cluster.scheduler["steal"],
        "task": cluster.scheduler["task_ms"],
        "dispatch": cluster.scheduler["dispatch_ms"],
        "fill": cluster.scheduler["fill"],
        "law": float(law("local" if where == "local" else store.words["law"])),
        "pool": float(pool),
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


FORMAT = 10  # version of the files; the engine rejects any other


def workload_bytes(work: Workload) -> bytes:
    """Return the contents of the file WORKLOAD."""
    counts = [work.tasks, work.files, len(work.type_names), len(work.op_kind), len(work.dep)]
    wide, narrow, real = np.int64, np.int32, np.float64
    return b"".join(
        array_bytes(name, values, kind)
        for name, values, kind in (
            ("format", [FORMAT], wide),
            ("counts", counts, wide),
            ("opbegin", work.op_begin, wide),
            ("cores", work.cores, narrow),
            ("type", work.type, narrow),
            ("depbegin", work.dep_begin, wide),
            ("dep", work.dep, narrow),
            ("opkind", work.op_kind, narrow),
            ("opfile", work.op_file, narrow),
            ("opstart", work.op_start, wide),
            ("oplength", work.op_length, wide),
            ("opbytes", work.op_bytes, wide),
            ("opsecs", work.op_seconds, real),
            ("busy", work.busy, real),
            ("size", work.size, wide),
            ("produced", work.produced, narrow),
        )
    )


def scenario_bytes(machine: Machine, placement: Placement, detail: bool) -> bytes:
    """Return one scenario of the file SCENARIOS; `detail` requests rows of the tasks."""
    wide, narrow, real = np.int64, np.int32, np.float64
    counts = [len(machine.hosts), len(machine.servers), len(machine.sites), placement.groups]
    counts.append(len(machine.processors))
    values = {**machine.settings, "detail": float(detail)}
    settings = [values[name] for name in SETTINGS]
    hosts = [host[name] for host in machine.hosts for name in HOST_SETTINGS]
    none: Sequence[int] = ()

    def given(values: npt.NDArray[np.generic] | None) -> npt.ArrayLike:
        return none if values is None else values

    return b"".join(
        array_bytes(name, values, kind)
        for name, values, kind in (
            ("counts", counts, wide),
            ("set", settings, real),
            ("host", hosts, real),
            ("site", [rate for site in machine.sites for rate in site], real),
            ("procs", machine.processors, real),
            ("server", machine.servers, narrow),
            ("law", given(placement.law), narrow),
            ("copies", given(placement.copies), narrow),
            ("target", given(placement.target), narrow),
            ("plan", given(placement.plan), narrow),
            ("chunk", given(placement.chunk), wide),
        )
    )


def array_bytes(
    name: str, values: npt.ArrayLike | Iterable[float], kind: type[np.generic]
) -> bytes:
    """Serialise one array of the engine's files: name, item size, count, items."""
    data = np.ascontiguousarray(values, kind)
    head = name.encode().ljust(8, b"\0") + np.array([data.itemsize, data.size], np.int64).tobytes()
    raw = data.tobytes()
    return head + raw + bytes(-len(raw) % 8)


PROGRAM = "tracehint-sim"
# Messages of an engine that expects other arrays (engine/input.c).
_VERSION_MESSAGES = ("another array is in its place", "is not of this program's form")
_HERE = Path(__file__).parent
MIN_OPERATIONS = 20_000  # minimum operations per process: fewer take less time than starting one
_HEAD, _HOST, _TYPE, _TASK = 5, 6, 3 + len(SPENT), 5 + len(SPENT)


@dataclass(frozen=True)
class Scenario:
    """One run to simulate; `detail` requests rows of the tasks."""

    machine: Machine
    placement: Placement
    detail: bool = False


def find_program() -> Path:
    """Return the engine's path: in this package, next to the interpreter, or on PATH.

    Raises MissingDependencyError.
    """
    places = [_HERE / "bin" / PROGRAM, Path(sys.executable).parent / PROGRAM]
    found = shutil.which(PROGRAM)
    places += [Path(found)] if found else []
    for place in places:
        if place.is_file():
            return place
    raise MissingDependencyError(
        f"{PROGRAM} is not built: predictions need it",
        "In a clone run `make tracer`; a wheel for this machine includes it.",
    )


def simulate(work: Workload, scenarios: Sequence[Scenario], workers: int = 0) -> list[SimulatedRun]:
    """Simulate each scenario; return the outcomes in order. `workers`: number of parallel processes
    (0: up to one per core, depending on the number of operations).

    Raises InputError for cyclic dependencies, MissingDependencyError without the engine.
    """
    program = find_program()
    workers = max(1, min(workers or _choose_workers(work, len(scenarios)), len(scenarios)))
    with tempfile.TemporaryDirectory(prefix="tracehint-predict-") as folder:
        shared = Path(folder) / "workload"
        shared.write_bytes(workload_bytes(work))
        parts = [scenarios[i::workers] for i in range(workers)]

        def run(number: int) -> list[SimulatedRun]:
            return _run(program, shared, work, parts[number], Path(folder) / f"runs{number}")

        if workers == 1:
            return run(0)
        with ThreadPoolExecutor(workers) as pool:
            found = [iter(part) for part in pool.map(run, range(workers))]
        return [next(found[i % workers]) for i in range(len(scenarios))]


def _choose_workers(work: Workload, scenarios: int) -> int:
    """Return the number of processes for these scenarios, at most one per core."""
    operations = scenarios * (len(work.op_kind) + work.tasks)
    return min(os.cpu_count() or 1, operations // MIN_OPERATIONS)


def _run(
    program: Path, shared: Path, work: Workload, scenarios: Sequence[Scenario], path: Path
) -> list[SimulatedRun]:
    with path.open("wb") as stream:
        for scenario in scenarios:
            placement = keep_held(scenario.placement, work)
            stream.write(scenario_bytes(scenario.machine, placement, scenario.detail))
    done = subprocess.run([program, shared, path], capture_output=True, check=False)
    path.unlink()
    check_answer(done)
    answers = np.frombuffer(done.stdout)
    return list(_outcomes(answers, work, scenarios))


def check_answer(done: subprocess.CompletedProcess[bytes]) -> None:
    """Raise InputError if the engine failed, MissingDependencyError if its version differs."""
    if not done.returncode:
        return
    message = done.stderr.decode("utf-8", "replace").strip()[-300:] or f"exit {done.returncode}"
    if any(sign in message for sign in _VERSION_MESSAGES):
        raise MissingDependencyError(
            f"{PROGRAM} does not match this version of tracehint ({message})",
            "In a clone run `make tracer`; otherwise install tracehint again.",
        )
    raise InputError(
        f"the simulation failed: {message}",
        "Check the cluster file; if memory is short, predict a smaller run.",
    )


def _outcomes(
    numbers: Floats, work: Workload, scenarios: Sequence[Scenario]
) -> Iterator[SimulatedRun]:
    at = 0

    def take(rows: int, columns: int) -> Floats:
        nonlocal at
        found = numbers[at : at + rows * columns].reshape(rows, columns)
        at += rows * columns
        return found

    for scenario in scenarios:
        head = take(1, _HEAD)[0]
        hosts = take(len(scenario.machine.hosts), _HOST)
        types = take(len(work.type_names), _TYPE)
        tasks = take(work.tasks, _TASK) if scenario.detail else None
        if int(head[3]) != work.tasks:
            raise InputError(
                f"{work.tasks - int(head[3])} of {work.tasks} tasks wait for each other",
                "A run must be a graph without cycles: check the declared inputs and outputs.",
            )
        yield SimulatedRun(
            seconds=float(head[0]),
            network_bytes=float(head[1]),
            site_bytes=float(head[4]),
            metadata_operations=float(head[2]),
            hosts=hosts,
            types=types,
            tasks=tasks,
        )
