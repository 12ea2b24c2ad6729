"""HDFS: a namenode on the head, a datanode with a client on each of five nodes.

HDFS starts no tasks: the replay of bench-gain does, four on a node, with REST calls for I/O. The
first copy lies on the writer's node; a hint is a number of copies, or the node that brings an
input in.
"""

from __future__ import annotations

import random
import time
import zlib
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from scripts.bench.gain.bedding import SLOTS
from scripts.bench.gain.columns import COLUMNS as PLACES
from scripts.bench.gain.columns import Case
from scripts.bench.gain.replay import Replay
from scripts.bench.gain_stores.results import Moved
from scripts.bench.gain_stores.table import Task
from tests.support import webhdfs
from tests.support.hdfs import Hdfs, hdfs
from tests.support.needs import missing_for

from tracehint.analyzer.predict.model import COMPUTE, READ, WRITE, Placement, Workload, law

COLUMNS = {
    "default": "default, tasks anywhere",
    "local": "run where most input lies",
    "hand": "by hand: the same, `setrep` of what all read",
    "planned": "planned",
}
BLOCK, COPIES_S = 1 << 20, 90


def missing() -> str:
    """What is needed and not there; empty: it can run."""
    return missing_for(("java", "mvn", "ip", "tc"))


@dataclass
class Effect:
    """A placement as HDFS can have it. What the replay asks: where files lie, how they are made."""

    bed: Hdfs
    folder: str
    work: Workload
    placement: Placement
    where: dict[int, Counter[int]] = field(default_factory=dict)

    @property
    def nodes(self) -> dict[str, int]:
        """Address -> number of a node."""
        return {node.address: i for i, node in enumerate(self.bed.nodes)}

    def path(self, file: int) -> str:
        """The name of a file in the store."""
        return f"/{self.folder}/f{file}"

    def brings(self, file: int) -> str:
        """The name space from which an input comes into the store."""
        p = self.placement
        if p.law is not None and p.target is not None and p.law[file] == law("node"):
            return self.bed.nodes[int(p.target[file])].space
        return self.bed.bed.space

    def copies(self, file: int) -> int:
        """How many copies a file shall have."""
        p = self.placement
        return 1 if p.copies is None else min(max(1, int(p.copies[file])), len(self.bed.nodes))

    def located(self, files: list[int]) -> dict[int, Counter[int]]:
        """Blocks of each file by node, as the namenode says."""
        nodes = self.nodes
        for file in files:
            if file not in self.where and self.work.size[file] > 0:
                blocks = webhdfs.within(self.bed.bed.space, webhdfs.hosts, self.path(file))
                self.where[file] = Counter(nodes[name] for block in blocks for name in block)
        return {file: self.where.get(file, Counter()) for file in files}


class HdfsReplay(Replay):
    """The replay with HDFS calls for the work of tasks."""

    effect: Effect  # type: ignore[assignment]

    def stage(self) -> None:
        """Bring the inputs in, one copy each."""
        work, effect = self.effect.work, self.effect
        for file in range(work.files):
            if not work.produced[file]:
                size, seed = int(work.size[file]), zlib.crc32(b"%d" % file)
                webhdfs.within(effect.brings(file), self._make, file, size, seed, 1)

    def spread(self) -> None:
        """Ask for the copies of inputs, and wait for them."""
        effect, work = self.effect, self.effect.work
        wanted = {f: effect.copies(f) for f in range(work.files) if not work.produced[f]}
        wanted = {f: copies for f, copies in wanted.items() if copies > 1 and work.size[f] > 0}
        space, end = effect.bed.bed.space, time.monotonic() + COPIES_S
        for file, copies in wanted.items():
            webhdfs.within(space, webhdfs.replicate, effect.path(file), copies)
        while wanted:
            file, copies = next(iter(wanted.items()))
            blocks = webhdfs.within(space, webhdfs.hosts, effect.path(file))
            if all(len(block) >= copies for block in blocks):
                del wanted[file]
            elif time.monotonic() > end:
                raise RuntimeError("HDFS did not make the copies")
            else:
                time.sleep(0.5)
        effect.where.clear()

    def _operations(self, task: int, node: int, spent: list[float]) -> None:
        work, effect = self.effect.work, self.effect
        webhdfs.enter(effect.bed.nodes[node].space)
        seen = zlib.crc32(b"%d" % task)
        for i in range(work.op_begin[task], work.op_begin[task + 1]):
            at, kind, file = time.monotonic(), work.op_kind[i], int(work.op_file[i])
            start, length = int(work.op_start[i]), int(work.op_length[i])
            if kind == COMPUTE:
                time.sleep(float(work.op_seconds[i]))
            elif kind == READ:
                seen ^= webhdfs.read(effect.path(file), start, length) if length else 0
            else:
                self._make(file, length, seen ^ zlib.crc32(b"%d" % file), effect.copies(file))
            spent[(READ, COMPUTE, WRITE).index(kind)] += time.monotonic() - at

    def _make(self, file: int, size: int, seed: int, copies: int) -> None:
        block = random.Random(seed).randbytes(1 << 12) * (BLOCK >> 12)
        found = 0

        def parts() -> Iterator[bytes]:
            nonlocal found
            for at in range(0, size, BLOCK):
                part = block[: min(BLOCK, size - at)]
                found = zlib.crc32(part, found)
                yield part

        webhdfs.create(self.effect.path(file), size, parts(), replication=copies)
        self.sums[file] = found

    def check(self) -> None:
        """Raises ValueError where the store gives back something else than was written."""
        effect, work = self.effect, self.effect.work
        read = set(work.op_file[work.of_kind(READ)].tolist())
        for file in sorted(set(self.sums) - read):
            path, size = effect.path(file), int(work.size[file])
            if (
                size
                and webhdfs.within(effect.bed.bed.space, webhdfs.read, path, 0, size)
                != self.sums[file]
            ):
                raise ValueError(f"{path}: not what was written")


def _placement(case: Case, column: str) -> Placement:
    """What HDFS can do of a column's placement: files that tasks write lie on their node."""
    if column == "hand":
        case = replace(case, row=replace(case.row, hand=((".", "local"),)))
    found = PLACES[column].place(case)
    if column == "hand" and found.copies is not None:
        found.copies[found.copies > 0] = len_nodes(case)
    return found


def len_nodes(case: Case) -> int:
    """Nodes of the case's cluster."""
    return case.cluster.count


@dataclass(frozen=True)
class Running:
    """The store."""

    store: Hdfs

    def run(self, task: Task, column: str) -> Moved:
        """Inputs in, copies, and the run; a later run with these inputs is one without copying."""
        placement, bed = _placement(task.case, column), self.store.bed
        effect = Effect(self.store, f"{task.row.name}-{column}", task.case.work, placement)
        steal = placement.steal in (None, "any")
        replay = HdfsReplay(effect, SLOTS, seed=0, steal=steal)  # type: ignore[arg-type]
        try:
            replay.stage()
            before = bed.received()
            replay.spread()
            ready = bed.received()
            seconds, _ = replay.run()
            moved = bed.received() - ready
            replay.check()
        finally:
            webhdfs.within(bed.space, webhdfs.remove, f"/{effect.folder}")
        return Moved(column, ready - before, moved, moved, 0, seconds)


@contextmanager
def started(folder: Path) -> Iterator[Running]:
    """The store, for as long as it is needed."""
    with hdfs(folder) as store:
        yield Running(store)
