"""The engine's two input files as bytes (the form is told in engine/input.c)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from tracehint.analyzer.predict.machine import HOST_SETTINGS, SETTINGS, Machine
from tracehint.analyzer.predict.model import Placement, Workload

FORMAT = 8  # of the files; the engine refuses another one


def workload_bytes(work: Workload) -> bytes:
    """The file WORKLOAD."""
    counts = [work.tasks, work.files, len(work.type_names), len(work.op_kind), len(work.dep)]
    wide, narrow, real = np.int64, np.int32, np.float64
    return b"".join(
        array_bytes(name, values, kind)
        for name, values, kind in (
            ("format", [FORMAT], wide), ("counts", counts, wide), ("opbegin", work.op_begin, wide),
            ("cores", work.cores, narrow), ("type", work.type, narrow),
            ("depbegin", work.dep_begin, wide), ("dep", work.dep, narrow),
            ("opkind", work.op_kind, narrow), ("opfile", work.op_file, narrow),
            ("opstart", work.op_start, wide), ("oplength", work.op_length, wide),
            ("opbytes", work.op_bytes, wide), ("opsecs", work.op_seconds, real),
            ("busy", work.busy, real), ("size", work.size, wide),
            ("produced", work.produced, narrow),
        )
    )  # fmt: skip  # a table


def scenario_bytes(machine: Machine, placement: Placement, detail: bool) -> bytes:
    """One scenario of the file SCENARIOS; `detail` asks for what each task did."""
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
            ("counts", counts, wide), ("set", settings, real), ("host", hosts, real),
            ("site", [rate for site in machine.sites for rate in site], real),
            ("procs", machine.processors, real),
            ("server", machine.servers, narrow), ("law", given(placement.law), narrow),
            ("copies", given(placement.copies), narrow),
            ("target", given(placement.target), narrow), ("plan", given(placement.plan), narrow),
            ("chunk", given(placement.chunk), wide),
        )
    )  # fmt: skip  # a table


def array_bytes(
    name: str, values: npt.ArrayLike | Iterable[float], kind: type[np.generic]
) -> bytes:
    """One array of the engine's files: name, size of an item, count, items."""
    data = np.ascontiguousarray(values, kind)
    head = name.encode().ljust(8, b"\0") + np.array([data.itemsize, data.size], np.int64).tobytes()
    raw = data.tobytes()
    return head + raw + bytes(-len(raw) % 8)
