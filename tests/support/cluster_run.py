"""Run a Makeflow workflow on the nodes of a bed: one task per node at a time, on a real store.

Without location, a task goes to an idle node at random. With location, it goes where `tracehint
place` would send it (adapters/place): to the node that holds most bytes of its inputs, as the store
reports them. While that node is busy, one task may wait for it; the others go to the next best. A
task with a part of a plan goes to that part's node; while it is busy, another may idle and take it,
unless the plan binds it.
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
from tracehint.adapters.engines.workflow import Workflow, read_workflow
from tracehint.adapters.place.choose import InputPlaces, choose, look
from tracehint.adapters.place.hosts import Host
from tracehint.adapters.stores.base import Location

ASK_BYTES = 256_000  # about what a link moves while the store's tool is started
WAIT_BYTES = 1_000_000  # less than this is moved sooner than a task ends
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


@dataclass
class Located:
    """The store's answers, each file asked once: what a task wrote stays where it is."""

    bed: Cluster
    answers: dict[int, Location | None] = field(default_factory=dict)  # by inode

    def locate(self, fd: int) -> Location | None:
        """As a store's adapter does."""
        info = os.fstat(fd)
        if info.st_size < ASK_BYTES:
            return None
        if info.st_ino not in self.answers:
            path = Path(f"/proc/self/fd/{fd}").readlink()
            copies = self.bed.where([path])[path]
            place = Location(nodes=tuple(copies), detail={"copies": dict(copies)})
            self.answers[info.st_ino] = place if copies else None
        return self.answers[info.st_ino]


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
    store: Located | None
    rng: random.Random
    waiting: dict[int, set[bytes]]
    ready: set[int]
    idle: list[Node]
    parts: Mapping[int, int] = field(default_factory=dict)  # task -> part of a plan
    bound: bool = False
    running: dict[int, tuple[subprocess.Popen[bytes], int, Node]] = field(default_factory=dict)
    known: dict[int, InputPlaces] = field(default_factory=dict)  # of ready tasks
    writer: dict[str, str] = field(default_factory=dict)


def run_workflow(
    bed: Cluster,
    folder: str,
    text: Path,
    *,
    tags: Path | None,
    located: bool,
    seed: int,
    parts: Mapping[int, int] | None = None,
    bound: bool = False,
) -> Result:
    """Run the workflow of the Makeflow file in `folder` of the store.

    `tags` is the folder that `tracehint emit --workflow-engine makeflow` writes beside its output;
    its `tag` program goes before each task. Raises AssertionError when a task fails.
    """
    flow = read_workflow(text)
    made = {path for task in flow.tasks for path in task.targets}
    state = _State(
        bed,
        folder,
        tags,
        Located(bed) if located else None,
        random.Random(seed),
        waiting={i: {p for p in task.sources if p in made} for i, task in enumerate(flow.tasks)},
        ready=set(),
        idle=list(bed.nodes),
        parts=parts or {},
        bound=bound,
    )
    start, before = time.monotonic(), bed.received()
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
    done = set(made)
    for number in list(state.waiting):
        state.waiting[number] -= done
        if not state.waiting[number]:
            del state.waiting[number]
            state.ready.add(number)


def _start_all(state: _State, flow: Workflow) -> None:
    """Start what can start: tasks of a part on its node, then those that are drawn to a node most
    strongly, then on what idles still what a plan does not bind."""
    _start_parts(state, flow)
    _start_others(state, flow, sorted(state.ready - state.parts.keys()))
    if not state.bound:
        _start_others(state, flow, sorted(state.ready & state.parts.keys()))


def _start_parts(state: _State, flow: Workflow) -> None:
    """Tasks of a plan whose node idles."""
    for number in sorted(state.ready & state.parts.keys()):
        home = state.bed.nodes[state.parts[number] % len(state.bed.nodes)]
        if home in state.idle:
            _start(state, flow, number, home)


def _start_others(state: _State, flow: Workflow, ready: list[int]) -> None:
    """Tasks on the nodes that idle."""
    if state.store is None:
        for number in ready:
            if state.idle:
                _start(state, flow, number, state.rng.choice(state.idle))
        return
    hosts = [Host(name=node.label) for node in state.bed.nodes]
    root = state.bed.mount / state.folder
    for number in set(ready) - state.known.keys():
        inputs = [str(root / os.fsdecode(p)) for p in flow.tasks[number].sources]
        state.known[number] = look(state.store, hosts, inputs)
    order = sorted(ready, key=lambda n: (-_most(state, n), n))
    for number in order:
        _choose(state, flow, number, hosts, "hard")
    awaited: set[str] = set()
    for number in (n for n in order if n in state.ready):
        best = _choose(state, flow, number, hosts, "hard")
        if best is not None and best not in awaited and _most(state, number) >= WAIT_BYTES:
            awaited.add(best)
        elif number in state.ready:
            _choose(state, flow, number, hosts, "soft")


def _most(state: _State, number: int) -> int:
    """Bytes of the inputs on the node that holds most of them."""
    return max(state.known[number].bytes.values(), default=0)


def _choose(
    state: _State, flow: Workflow, number: int, hosts: list[Host], policy: str
) -> str | None:
    """Start the task on the node that `place` chooses if that one is idle; else its name."""
    idle = {node.label: node for node in state.idle}
    chosen = choose(hosts, state.known[number], policy, lambda h: h.name in idle, lambda _: True)
    if chosen.host is None or chosen.host.name not in idle:
        return chosen.host.name if chosen.host else None
    _start(state, flow, number, idle[chosen.host.name])
    return None


def tagged(tags: Path) -> list[str | Path]:
    """What goes before a task's number and command: the tag program, or its shell twin."""
    helper = tags / "helper"
    return [helper, "run", tags / "table"] if helper.exists() else [tags / "tag"]


def _start(state: _State, flow: Workflow, number: int, node: Node) -> None:
    task = flow.tasks[number]
    words: list[str | Path] = ["/bin/sh", "-c", task.command]
    if state.tags is not None:
        words = [*tagged(state.tags), str(number), *words]
    process = subprocess.Popen(
        node.command(*words),
        cwd=node.mount / state.folder,
        stdout=subprocess.DEVNULL,
        env={**os.environ, "ARCHIVE": HEAD},
    )
    state.running[number] = (process, os.pidfd_open(process.pid), node)
    state.idle.remove(node)
    state.ready.remove(number)


def _wait_for_one(state: _State, flow: Workflow) -> None:
    """Until a task has ended."""
    poll = select.poll()
    for _, fd, _ in state.running.values():
        poll.register(fd, select.POLLIN)
    ended = {fd for fd, _ in poll.poll(TIMEOUT_S * 1000)}
    assert ended, "a task takes too long"
    for number, (process, fd, node) in list(state.running.items()):
        if fd not in ended:
            continue
        task = flow.tasks[number]
        os.close(fd)
        assert process.wait() == 0, task.command
        del state.running[number]
        state.idle.append(node)
        state.writer.update((os.fsdecode(path), node.label) for path in task.targets)
        _release(state, task.targets)
