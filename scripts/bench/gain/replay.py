"""Replay of a workload on the nodes of a bed: real bytes, and sleep instead of computing.

All threads are in one process: a node's slot works below that node's own mount, whose client is a
process in the node's namespace. A task's output depends on its input, so that equal outputs prove
equal intermediate bytes.
"""

from __future__ import annotations

import os
import queue
import random
import threading
import time
import zlib
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from scripts.bench.gain.dispatch import Dispatcher
from scripts.bench.gain.effect import Effect, held

from tracehint.analyzer.predict.model import COMPUTE, READ, WRITE

BLOCK = 1 << 20
_NEW = os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC


@dataclass
class Done:
    """A finished task: node, start and end (seconds of the run), seconds of reading, computing and
    writing."""

    task: int
    node: int
    start: float
    end: float
    spent: list[float]
    error: str = ""

    def row(self) -> list[float]:
        """Return the row: task, node, start, end, seconds of reading, computing, writing."""
        return [self.task, self.node, *(round(x, 4) for x in (self.start, self.end, *self.spent))]


@dataclass
class Replay:
    """One run. `seed` decides which idle node takes a task; `steal` as in the simulator."""

    effect: Effect
    slots: int
    seed: int
    steal: bool = True
    sums: dict[int, int] = field(default_factory=dict)  # file -> checksum of its content
    done: queue.Queue[Done] = field(default_factory=queue.Queue)

    def stage(self) -> None:
        """Write the inputs from the head, which is not a storage node."""
        work, effect = self.effect.work, self.effect
        for file in range(work.files):
            if not work.produced[file]:
                effect.choose(file, None)
                path = effect.path(file, effect.bed.mount)
                seed = zlib.crc32(b"%d" % file)
                self.sums[file] = _write(path, 0, int(work.size[file]), seed, effect.bed.synced)

    def run(self) -> tuple[float, list[Done]]:
        """Run all tasks; return seconds and finished tasks. Raises RuntimeError if a task fails."""
        work, effect = self.effect.work, self.effect
        nodes = len(effect.bed.nodes)
        waits = Counter(work.dep.tolist())
        dispatcher = Dispatcher([self.slots] * nodes, random.Random(self.seed), self.steal)
        began, found = time.monotonic(), list[Done]()
        self._ready([task for task in range(work.tasks) if not waits[task]], dispatcher)
        while len(found) < work.tasks:
            for task, node in dispatcher.started():
                threading.Thread(target=self._work, args=(task, node, began), daemon=True).start()
            ended = self.done.get(timeout=120)
            if ended.error:
                raise RuntimeError(f"task {work.names[ended.task]}: {ended.error}")
            found.append(ended)
            dispatcher.ended(ended.node)
            children = work.dep[
                work.dep_begin[ended.task] : work.dep_begin[ended.task + 1]
            ].tolist()
            waits.subtract(children)
            self._ready([child for child in children if not waits[child]], dispatcher)
        return time.monotonic() - began, found

    def _ready(self, tasks: list[int], dispatcher: Dispatcher) -> None:
        """Add tasks whose inputs exist; the store is queried once for all of them."""
        free = {task for task in tasks if self._is_placed_by_input(task)}
        if free:
            self.effect.located(sorted({f for t in free for f, _ in self._reads(t)}))
        for task in tasks:
            wish = self._preferred_node(task, dispatcher)
            dispatcher.ready(task, wish, bound=task not in free)

    def _reads(self, task: int) -> list[tuple[int, int]]:
        """Return the (file, bytes) that a task reads."""
        work = self.effect.work
        ops = range(work.op_begin[task], work.op_begin[task + 1])
        return [
            (int(work.op_file[i]), int(work.op_bytes[i])) for i in ops if work.op_kind[i] == READ
        ]

    def _preferred_node(self, task: int, dispatcher: Dispatcher) -> int | None:
        """Return the node where a task should run; None: anywhere."""
        if not self._is_placed_by_input(task):
            placement = self.effect.placement
            bound = placement.scheduler == "plan" and placement.plan is not None
            return int(placement.plan[task]) if bound else None  # type: ignore[index]
        reads = self._reads(task)
        bytes_at = held(self.effect, [f for f, _ in reads], [n for _, n in reads])
        order = dispatcher.rng.sample(range(len(dispatcher.free)), len(dispatcher.free))
        best = max(order, key=lambda node: (bytes_at[node], dispatcher.free[node]))
        return best if bytes_at[best] > 0 else None

    def _is_placed_by_input(self, task: int) -> bool:
        """Whether a task starts where most of its input is, also one without a node in the plan."""
        placement = self.effect.placement
        free = placement.plan is None or placement.plan[task] < 0
        return placement.scheduler == "most-input-bytes" or (placement.scheduler == "plan" and free)

    def _work(self, task: int, node: int, began: float) -> None:
        start, spent, error = time.monotonic() - began, [0.0, 0.0, 0.0], ""
        try:
            self._operations(task, node, spent)
        except (OSError, ValueError) as problem:
            error = str(problem)
        self.done.put(Done(task, node, start, time.monotonic() - began, spent, error))

    def _operations(self, task: int, node: int, spent: list[float]) -> None:
        work, mount = self.effect.work, self.effect.bed.nodes[node].mount
        read = zlib.crc32(b"%d" % task)
        for i in range(work.op_begin[task], work.op_begin[task + 1]):
            at, kind, file = time.monotonic(), work.op_kind[i], int(work.op_file[i])
            start, length = int(work.op_start[i]), int(work.op_length[i])
            if kind == COMPUTE:
                time.sleep(float(work.op_seconds[i]))
            elif kind == READ:
                read ^= _read(self.effect.path(file, mount), start, length)
            else:
                self.effect.choose(file, node)
                path, seed = self.effect.path(file, mount), read ^ zlib.crc32(b"%d" % file)
                self.sums[file] = _write(path, start, length, seed, self.effect.bed.synced)
            spent[(READ, COMPUTE, WRITE).index(kind)] += time.monotonic() - at


def _read(path: Path, start: int, length: int) -> int:
    """Return the checksum of a range, read without the page cache of the node."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        total, found = start + length, 0
        while start < total:
            data = os.pread(fd, min(BLOCK, total - start), start)
            if not data:
                raise ValueError(f"{path} ends at {start}, not at {total}")
            found = zlib.crc32(data, found)
            start += len(data)
        return found
    finally:
        os.close(fd)


def _write(path: Path, start: int, length: int, seed: int, synced: bool) -> int:
    """Write bytes derived from the seed, `synced`: until stored; return their checksum."""
    block = random.Random(seed).randbytes(1 << 12) * (BLOCK >> 12)
    fd, found, end = os.open(path, _NEW, 0o644), 0, start + length
    try:
        while start < end:
            part = block[: min(BLOCK, end - start)]
            found = zlib.crc32(part, found)
            start += os.pwrite(fd, part, start)
        if synced:
            os.fsync(fd)
        return found
    finally:
        os.close(fd)


def outputs(replay: Replay) -> int:
    """Return one checksum over all files that no task reads, as read on the head.

    Raises ValueError if the store returns other bytes than were written.
    """
    effect, work = replay.effect, replay.effect.work
    read = set(work.op_file[work.of_kind(READ)].tolist())
    found = 0
    for file in sorted(set(replay.sums) - read):
        path = effect.path(file, effect.bed.mount)
        if path.stat().st_size != work.size[file]:
            continue  # written in parts: only its ranges are known
        got = _read(path, 0, int(work.size[file]))
        if got != replay.sums[file]:
            raise ValueError(f"{path}: not what was written")
        found = zlib.crc32(b"%d %d" % (file, got), found)
    return found
