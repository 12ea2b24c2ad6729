"""Choice of a planned task's node: its part's, unless an idle node is the better choice.

Part p belongs to node p of the host file, modulo the number of nodes. If a part's node is
unreachable, all its tasks use one other node. A task whose node is full waits for as long as moving
its inputs to another node would take (so it never loses more than twice the cost of the better
choice). Then it runs on an idle node, if there is one: a node with a free slot that no task waiting
for it takes.
"""

from __future__ import annotations

import json
import os
import re
import time
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tracehint.adapters.place.choose import MAX_SILENT, NodeChoice
from tracehint.adapters.place.hosts import Host
from tracehint.errors import InputError, UsageError
from tracehint.hintgen.hints.pathtext import to_bytes, to_text

POLL_S = 0.1
MIN_PATIENCE_S = 2 * POLL_S  # tasks waiting for a node have polled it by then


@dataclass(frozen=True, kw_only=True)
class Queue:
    """A task's access to the nodes. `take` takes a slot, `free` only checks; neither waits."""

    take: Callable[[Host], bool]
    free: Callable[[Host], bool]
    answers: Callable[[Host], bool]
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep


def home_of(part: int, hosts: Sequence[Host]) -> Host:
    """Return the node of a part if all nodes are available."""
    return hosts[part % len(hosts)]


def order_of(part: int, hosts: Sequence[Host]) -> list[Host]:
    """Return the part's node, then the others in an order specific to the part: parts of a failed
    node are spread over the rest, and all other parts stay on their nodes."""
    home = home_of(part, hosts)

    def mixed(host: Host) -> int:
        return zlib.crc32(f"{part}\0{host.name}".encode())

    return [home, *sorted((host for host in hosts if host is not home), key=mixed)]


def patience(input_bytes: int, host: Host) -> float:
    """Return how many seconds to wait for a full node: the time to move the inputs."""
    return max(MIN_PATIENCE_S, input_bytes * 8 / (host.link_mbit * 1e6))


def choose_part(
    hosts: Sequence[Host],
    part: int,
    queue: Queue,
    *,
    input_bytes: int = 0,
    steal: bool = True,
    longest_s: float = 600.0,
) -> NodeChoice:
    """Choose the node for a task of the part, with its slot taken.

    `longest_s`: after this time without a free slot the task starts on its node anyway.
    """
    order = order_of(part, hosts)
    at = next((i for i, host in enumerate(order[:MAX_SILENT]) if queue.answers(host)), None)
    if at is None:
        return NodeChoice(None, f"no node for part {part} can be used", fallback=True)
    home = order[at]
    away = f"{order[0].name} is away; " if at else ""
    if queue.take(home):
        return NodeChoice(home, f"{away}part {part} is stored there", fallback=bool(at))
    start = queue.clock()
    after = patience(input_bytes, home)
    idle: set[str] = set()
    while (waited := queue.clock() - start) < longest_s:
        queue.sleep(POLL_S)
        if queue.take(home):
            return NodeChoice(home, f"{away}part {part} is stored there", fallback=bool(at))
        if not steal or waited < after:
            continue
        taken, idle = _idle(order[at + 1 :], idle, queue)
        if taken is not None:
            return NodeChoice(
                taken, f"{away}{home.name} is busy, {taken.name} idles", fallback=True
            )
    return NodeChoice(home, f"{away}no free slot for {longest_s:.0f} s", fallback=True)


def _idle(others: Sequence[Host], before: set[str], queue: Queue) -> tuple[Host | None, set[str]]:
    """Take a slot of a node that had one at the last check too; return node and free nodes."""
    now = {host.name for host in others if queue.free(host)}
    for host in others:
        if host.name in now & before and queue.answers(host) and queue.take(host):
            return host, now
    return None, now


HEADER, INDEX = 29, 24
MAX_RECORD = 64 << 20  # maximum bytes of one task's record
_HEAD = re.compile(rb"tracehint-parts 1 (\d{10})\n")
_ROW = re.compile(rb"(\d{11}) (\d{11})\n")
_REMEDY = "Write it again: tracehint emit HINTS --workflow-engine ..."


@dataclass(frozen=True)
class Placed:
    """One task: its part (None: it may run anywhere) and the paths that it reads."""

    part: int | None
    inputs: tuple[bytes, ...]


def encode(tasks: Sequence[Placed]) -> bytes:
    """Return the table's bytes."""
    records = [
        json.dumps({"part": task.part, "inputs": [to_text(path) for path in task.inputs]}).encode()
        + b"\n"
        for task in tasks
    ]
    at = HEADER + INDEX * len(records)
    index = []
    for record in records:
        index.append(b"%011d %011d\n" % (at, len(record)))
        at += len(record)
    return b"".join([b"tracehint-parts 1 %010d\n" % len(records), *index, *records])


def read_task(path: Path, task: int) -> Placed:
    """Read the task's record. Raise InputError: not such a table; UsageError: no such task."""
    try:
        with path.open("rb") as stream:
            head = _HEAD.fullmatch(stream.read(HEADER))
            if head is None:
                raise _make_table_error(path)
            if task >= int(head[1]):
                raise UsageError(
                    f"{path} has no task {task}", f"Tasks: {int(head[1])}, numbered from 0."
                )
            stream.seek(HEADER + INDEX * task)
            row = _ROW.fullmatch(stream.read(INDEX))
            if row is None or int(row[2]) > MAX_RECORD:
                raise _make_table_error(path)
            stream.seek(int(row[1]))
            return _record(path, stream.read(int(row[2])))
    except OSError as error:
        raise InputError(f"{path}: {os.strerror(error.errno or 0)}", _REMEDY) from error


def _record(path: Path, raw: bytes) -> Placed:
    try:
        data = json.loads(raw)
        part, inputs = data["part"], data["inputs"]
        if not (part is None or (type(part) is int and part >= 0)) or type(inputs) is not list:
            raise _make_table_error(path)
        return Placed(part, tuple(to_bytes(text) for text in inputs))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise _make_table_error(path) from error


def _make_table_error(path: Path) -> InputError:
    return InputError(f"{path} is not a table of parts", _REMEDY)
