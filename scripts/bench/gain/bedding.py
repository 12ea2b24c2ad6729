"""The store that the replays run on, and one replay on it."""

from __future__ import annotations

import dataclasses
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from scripts.bench.gain.columns import Case
from scripts.bench.gain.effect import Effect
from scripts.bench.gain.replay import Replay, outputs
from scripts.bench.gain.results import Run
from scripts.bench.gain.stores import STORES, GainBed, Store
from scripts.bench.load import Watch

from tracehint.analyzer.predict.cluster import Cluster
from tracehint.analyzer.predict.cluster_file import read_cluster
from tracehint.analyzer.predict.model import Placement

SLOTS = 4  # concurrent tasks per node


def cluster_of(path: Path, store: Store = STORES["moosefs"]) -> Cluster:
    """Return the measured cluster as replays use it: SLOTS tasks per node, and as memory of a node
    only the cache of the store's client. Raises InputError if there is no file."""
    found, kept = read_cluster(path), store.client_memory
    nodes = tuple(part.with_number("cores", SLOTS) for part in found.nodes)
    if kept:
        nodes = tuple(part.with_number("memory_gb", kept) for part in nodes)
    return dataclasses.replace(found.with_store(client_cache=kept > 0), nodes=nodes)


@contextmanager
def run_store(store: Store, link: int) -> Iterator[GainBed]:
    """Run a store on five nodes behind links of `link` Mbit/s, with its disks in memory if there
    is enough."""
    with tempfile.TemporaryDirectory(dir=_shm()) as name, store.start(Path(name), link=link) as bed:
        yield bed


def _shm() -> str | None:
    """Return the folder of files in memory, if large enough: the disk is not to be measured."""
    shm = Path("/dev/shm")
    return str(shm) if shm.is_dir() and shutil.disk_usage(shm).free > 6 << 30 else None


def replay_run(
    bed: GainBed, case: Case, column: str, number: int, placement: Placement, *, preferred: bool
) -> Run:
    """Replay one run in a new directory and remove it. `preferred`: result of `load.prefer`."""
    effect = Effect(bed, f"{case.row.name}-{column}-{number}", case.work, placement)
    steal = placement.steal in (None, "any")  # else idle nodes start no bound tasks
    replay = Replay(effect, SLOTS, seed=number, steal=steal)
    effect.prepare()
    try:
        replay.stage()
        watch, before = Watch(bed.folder, preferred), bed.received()
        seconds, tasks = replay.run()
        moved, load = bed.received() - before, watch.stop()
        return Run(
            column=column,
            number=number,
            seconds=seconds,
            bytes=moved,
            outputs=outputs(replay),
            astray=effect.astray(),
            load=dataclasses.asdict(load),
            needed=effect.crossing({done.task: done.node for done in tasks}),
            tasks=[done.row() for done in tasks],
            places=effect.places(),
        )
    finally:
        effect.remove()
