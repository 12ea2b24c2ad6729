"""Run a Makeflow workflow on the nodes of a bed: one task per node at a time, on a real store.

Without location, a task goes to an idle node at random. With location, it goes to the node that
holds most of its input bytes, as the store reports them; where that node is busy it waits at most
as long as moving those bytes would take.
"""

from __future__ import annotations

import hashlib
import os
import random
import select
import subprocess
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from tests.support.bed import HEAD, Node
from tracehint.adapters.workflow import Task, Workflow, read_workflow

LINK_BYTES = 25_000_000  # per second: 200 Mbit
WORTH_BYTES = 64 << 10  # less than this draws no task to a node
TIMEOUT_S = 300


class Cluster(Protocol):
    """A bed with a store that tells where files lie."""

    @property
    def nodes(self) -> list[Node]:
        """Its nodes."""
        ...

    @property
    def mount(self) -> Path:
        """The head's mount."""
        ...

    def where(self, paths: Sequence[Path]) -> dict[Path, Counter[str]]:
        """Path -> node label -> pieces of the file there."""
        ...

    def received(self) -> int:
        """Bytes that nodes received."""
        ...


@dataclass(frozen=True)
class Result:
    """One run: bytes over the links, seconds, a checksum of each output, who wrote what."""

    bytes: int
    seconds: float
    sums: dict[str, str]
    writer: dict[str, str]  # file -> label of the node


@dataclass
class _State:
    """What is known while the workflow runs."""

    bed: Cluster
    folder: str
    tags: Path | None
    located: bool
    rng: random.Random
    waiting: dict[int, set[bytes]]
    ready: dict[int, float]  # task -> since when
    idle: list[Node]
    running: dict[int, tuple[subprocess.Popen[bytes], int, Node]] = field(default_factory=dict)
    places: dict[bytes, Mapping[str, float]] = field(default_factory=dict)  # node -> bytes
    writer: dict[str, str] = field(default_factory=dict)
    started: Counter[str] = field(default_factory=Counter)


def run_workflow(
    bed: Cluster, folder: str, text: Path, *, tags: Path | None, located: bool, seed: int
) -> Result:
    """Run the workflow of the Makeflow file in `folder` of the store.

    `tags` is the folder that `tracehint emit --workflow-engine makeflow` writes beside its output;
    its `tag` program goes before each task. Raises AssertionError when a task fails.
    """
    flow = read_workflow(text)
    made = {path for task in flow.tasks for path in task.targets}
    state = _State(
        bed, folder, tags, located, random.Random(seed),
        waiting={i: {p for p in task.sources if p in made} for i, task in enumerate(flow.tasks)},
        ready={}, idle=list(bed.nodes),
    )  # fmt: skip
    start, before = time.monotonic(), bed.received()
    if located:
        _look(state, {p for task in flow.tasks for p in task.sources} - made)
    _release(state, ())
    while state.waiting or state.ready or state.running:
        _start_all(state, flow)
        _wait_for_one(state, flow)
    seconds, moved = time.monotonic() - start, bed.received() - before
    return Result(moved, seconds, _sums(bed.mount / folder, flow), state.writer)


def _sums(folder: Path, flow: Workflow) -> dict[str, str]:
    """Checksums of the files that no task reads, where they are there."""
    read = {path for task in flow.tasks for path in task.sources}
    outputs = sorted({os.fsdecode(p) for t in flow.tasks for p in t.targets if p not in read})
    return {
        name: hashlib.sha256((folder / name).read_bytes()).hexdigest()
        for name in outputs
        if (folder / name).exists()
    }


def _release(state: _State, made: Iterable[bytes]) -> None:
    """Tasks whose inputs are there become ready."""
    now = time.monotonic()
    done = set(made)
    for number in list(state.waiting):
        state.waiting[number] -= done
        if not state.waiting[number]:
            del state.waiting[number]
            state.ready[number] = now


def _look(state: _State, files: Iterable[bytes]) -> None:
    """Ask the store where files lie that are large enough to matter."""
    root = state.bed.mount / state.folder
    large = {}
    for name in files:
        path = root / os.fsdecode(name)
        if path.is_file() and path.stat().st_size >= WORTH_BYTES:
            large[path] = (name, path.stat().st_size)
    for path, found in state.bed.where(list(large)).items():
        name, size = large[path]
        copies = max(1, max(found.values(), default=1))  # pieces of a whole copy, about
        state.places[name] = {label: size * min(1, n / copies) for label, n in found.items()}


def _start_all(state: _State, flow: Workflow) -> None:
    """Start what can start: first tasks whose node is idle, then those that need not wait."""
    now = time.monotonic()
    wanted = {number: _wanted(state, flow.tasks[number]) for number in state.ready}
    for number, node in ((n, node) for n, (node, _) in wanted.items() if node is not None):
        if node in state.idle:
            _start(state, flow, number, node)
    for number in list(state.ready):
        node, wait = wanted[number]
        if state.idle and (node is None or now - state.ready[number] >= wait):
            _start(state, flow, number, _any_idle(state))


def _wanted(state: _State, task: Task) -> tuple[Node | None, float]:
    """The node that holds most of the inputs, an idle one first; how long to wait for it."""
    held: Counter[str] = Counter()
    for name in task.sources if state.located else ():
        held.update(state.places.get(name, {}))
    if not held or max(held.values()) < WORTH_BYTES:
        return None, 0.0
    most = max(held.values())
    best = [node for node in state.bed.nodes if held[node.label] == most]
    free = [node for node in best if node in state.idle]
    return (free or best)[0], most / LINK_BYTES


def _any_idle(state: _State) -> Node:
    """An idle node: at random, or the one that got least so far."""
    if not state.located:
        return state.rng.choice(state.idle)
    return min(state.idle, key=lambda node: state.started[node.label])


def _start(state: _State, flow: Workflow, number: int, node: Node) -> None:
    task = flow.tasks[number]
    words: list[str | Path] = ["/bin/sh", "-c", task.command]
    if state.tags is not None:
        words = [state.tags / "tag", str(number), *words]
    process = subprocess.Popen(
        node.command(*words), cwd=node.mount / state.folder, stdout=subprocess.DEVNULL,
        env={**os.environ, "ARCHIVE": HEAD},
    )  # fmt: skip
    state.running[number] = (process, os.pidfd_open(process.pid), node)
    state.idle.remove(node)
    state.started[node.label] += 1
    del state.ready[number]


def _wait_for_one(state: _State, flow: Workflow) -> None:
    """Until a task has ended, or one that waits for its node need not wait any longer."""
    poll = select.poll()
    for _, fd, _ in state.running.values():
        poll.register(fd, select.POLLIN)
    pause = 0.1 if state.ready and state.idle else TIMEOUT_S
    ended = {fd for fd, _ in poll.poll(pause * 1000)}
    assert ended or pause < TIMEOUT_S, "a task takes too long"
    for number, (process, fd, node) in list(state.running.items()):
        if fd not in ended:
            continue
        task = flow.tasks[number]
        os.close(fd)
        assert process.wait() == 0, task.command
        del state.running[number]
        state.idle.append(node)
        state.writer.update((os.fsdecode(path), node.label) for path in task.targets)
        if state.located:
            _look(state, task.targets)
        _release(state, task.targets)
