"""The engine's file of a metadata simulation, and its answers (engine/metadata.h)."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from zlib import crc32

import numpy as np

from tracehint.analyzer.predict.engine import check_answer, find_program
from tracehint.analyzer.predict.metadata.model import TENTHS, MetaOutcome, MetaRun, MetaWork, Sites
from tracehint.analyzer.predict.model import Floats
from tracehint.analyzer.predict.request import FORMAT, array_bytes
from tracehint.errors import InputError

_HEAD, _SITE = 5, 3


def simulate(work: MetaWork, sites: Sites, runs: Sequence[MetaRun]) -> list[MetaOutcome]:
    """The outcome of each run, in order.

    Raises InputError for tasks that wait for each other, MissingDependencyError without engine.
    """
    program = find_program()
    with tempfile.TemporaryDirectory(prefix="tracehint-metadata-") as folder:
        path = Path(folder) / "runs"
        path.write_bytes(file_bytes(work, sites, runs))
        done = subprocess.run([program, "--metadata", path], capture_output=True, check=False)
    check_answer(done)
    return list(_outcomes(np.frombuffer(done.stdout), work, len(sites.names), len(runs)))


def file_bytes(work: MetaWork, sites: Sites, runs: Sequence[MetaRun]) -> bytes:
    """The engine's file: the work, then the numbers of each run."""
    costs = [sites.lookup, sites.update, sites.sync]
    settings = [[r.strategy, r.centre, *costs, float(r.near), r.seed] for r in runs]
    parts = (array_bytes("set", numbers, np.float64) for numbers in settings)
    return b"".join([_work_bytes(work, sites), *parts])


def homes(paths: Sequence[bytes], sites: int) -> np.ndarray:
    """The site whose registry an entry belongs to under the decentralised strategies: a hash of
    its name, the same in every run."""
    return np.fromiter((crc32(path) % sites for path in paths), np.int32, len(paths))


def _work_bytes(work: MetaWork, sites: Sites) -> bytes:
    wide, narrow, real = np.int64, np.int32, np.float64
    counts = [work.tasks, len(work.op_kind), len(work.dep), len(work.paths), len(sites.names)]
    return b"".join(
        array_bytes(name, values, kind)
        for name, values, kind in (
            ("format", [FORMAT], wide), ("counts", counts, wide), ("opbegin", work.op_begin, wide),
            ("opkind", work.op_kind, narrow), ("opentry", work.op_entry, narrow),
            ("opsecs", work.op_seconds, real), ("depbegin", work.dep_begin, wide),
            ("dep", work.dep, narrow), ("pin", _pins(work, sites), narrow),
            ("home", homes(work.paths, len(sites.names)), narrow),
            ("known", work.known, narrow), ("cores", sites.cores, narrow),
            ("trip", sites.round_trip.ravel(), real),
        )
    )  # fmt: skip  # a table


def _pins(work: MetaWork, sites: Sites) -> list[int]:
    """The recorded site of each task, where all tasks have one that the cluster knows with nodes
    there; else none is bound."""
    number = {name: at for at, name in enumerate(sites.names) if sites.cores[at]}
    found = [number.get(name, -1) for name in work.site]
    return found if -1 not in found else [-1] * work.tasks


def pinned(work: MetaWork, sites: Sites) -> bool:
    """Whether tasks run at their recorded sites."""
    return -1 not in _pins(work, sites)


def _outcomes(numbers: Floats, work: MetaWork, sites: int, runs: int) -> Iterator[MetaOutcome]:
    for row in numbers.reshape(runs, -1) if runs else ():
        if int(row[1]) != work.tasks:
            raise InputError(
                f"{work.tasks - int(row[1])} of {work.tasks} tasks wait for each other",
                "A run must be a graph without cycles: check the declared inputs and outputs.",
            )
        yield MetaOutcome(
            seconds=float(row[0]),
            operations=int(row[2]),
            stale_mean=float(row[3]),
            stale_most=float(row[4]),
            tenths=row[_HEAD : _HEAD + TENTHS],
            sites=row[_HEAD + TENTHS :].reshape(sites, _SITE),
        )
