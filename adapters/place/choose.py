"""Which node a task should run on: the one that holds most bytes of its inputs.

Policies, with the meaning of Swift/T's @location:
  soft  that node, or the next one with a free slot when it is full
  hard  that node, even when it is full
Neither ever waits or refuses: what cannot be known or reached is said, and the task runs elsewhere.
"""

from __future__ import annotations

import os
import stat
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tracehint.adapters.place.hosts import Host, by_name, find
from tracehint.adapters.stores.base import Location, Locator
from tracehint.hintgen.text.units import size as human

MAX_SILENT = 3  # nodes that do not answer, after which a task is not held up any longer


@dataclass
class InputPlaces:
    """What the store told about the inputs. `unknown`: path -> why its place is not known.

    `unasked` files were left out because they cannot change which node has most.
    """

    total_bytes: int = 0
    bytes: dict[str, int] = field(default_factory=dict)  # name of a node -> bytes that lie there
    nodes: dict[str, tuple[str, ...]] = field(default_factory=dict)  # path -> nodes, as the store
    unknown: dict[str, str] = field(default_factory=dict)
    unasked: int = 0


@dataclass(frozen=True)
class NodeChoice:
    """The node, None for this one, and the reason in words."""

    host: Host | None
    reason: str
    fallback: bool  # True: not where most bytes lie


def share(location: Location, node: str) -> float:
    """Part of a file that lies on the node, 0 to 1. Copies are counted where the store tells them.

    Without a number of chunks, the copies of a file are taken to be spread evenly over it.
    """
    copies = location.detail.get("copies")
    if not isinstance(copies, Mapping) or node not in copies:
        return 1.0
    chunks = location.detail.get("chunks")
    whole = chunks if isinstance(chunks, int) and chunks > 0 else sum(copies.values())
    return float(min(1.0, copies[node] / whole)) if whole else 0.0


def look(store: Locator | None, hosts: Sequence[Host], inputs: Sequence[str]) -> InputPlaces:
    """Ask the store, largest file first, until the rest cannot change the node with most bytes."""
    known = InputPlaces()
    sizes: dict[str, int] = {}
    for path in dict.fromkeys(inputs):
        try:
            info = Path(path).stat()
        except OSError as error:
            known.unknown[path] = error.strerror or "error"
            continue
        if not stat.S_ISREG(info.st_mode):
            known.unknown[path] = "not a regular file"
            continue
        sizes[path] = info.st_size
    known.total_bytes = rest = sum(sizes.values())
    table = by_name(hosts)
    order = sorted(sizes, key=lambda path: (-sizes[path], path))
    for number, path in enumerate(order):
        first, second = _two_largest(known.bytes)
        if store is None or first - second > rest or not rest:
            known.unasked = len(order) - number
            break
        rest -= sizes[path]
        _ask(store, table, path, sizes[path], known)
    return known


def _two_largest(values: Mapping[str, int]) -> tuple[int, int]:
    first, second, *_ = [*sorted(values.values(), reverse=True), 0, 0]
    return first, second


def _ask(
    store: Locator, table: Mapping[str, Host], path: str, size: int, known: InputPlaces
) -> None:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    except OSError as error:
        known.unknown[path] = error.strerror or "error"
        return
    try:
        found = store.locate(fd)
    except OSError as error:
        known.unknown[path] = error.strerror or "error"
        return
    finally:
        os.close(fd)
    if found is None or not found.nodes:
        known.unknown[path] = "the store does not say"
        return
    known.nodes[path] = found.nodes
    hosts = {node: find(table, node) for node in found.nodes}
    if not any(hosts.values()):
        known.unknown[path] = "on no node of the host file"
    for node, host in hosts.items():
        if host is not None:
            part = int(size * share(found, node))
            known.bytes[host.name] = known.bytes.get(host.name, 0) + part


def choose(
    hosts: Sequence[Host],
    known: InputPlaces,
    policy: str,
    free: Callable[[Host], bool],
    answers: Callable[[Host], bool],
) -> NodeChoice:
    """The node for a task.

    `free` tells whether a slot is free, `answers` whether the node can be used at all; both are
    asked only about nodes that would be taken.
    """
    order = ranked(hosts, known)
    holds = known.bytes.get(order[0].name, 0) if order else 0
    skipped: list[str] = []
    full: list[Host] = []
    silent = 0
    for host in order:
        if not answers(host):
            skipped.append(f"{host.name} does not answer")
            silent += 1
            if silent == MAX_SILENT:
                break
            continue
        if free(host):
            return _said(host, known, holds, skipped)
        skipped.append(f"all {host.slots} slots of {host.name} are taken")
        if policy == "hard" and known.bytes.get(host.name, 0):
            return _said(host, known, holds, skipped)
        full.append(host)
    if full:
        return NodeChoice(full[0], f"no free slot: {_few(skipped)}", fallback=True)
    return NodeChoice(None, f"no node can be used: {_few(skipped)}", fallback=True)


def ranked(hosts: Sequence[Host], known: InputPlaces) -> list[Host]:
    """Nodes with most bytes first; equal ones in an order that differs from task to task."""
    salt = "\0".join(sorted({*known.nodes, *known.unknown})) or str(os.getpid())

    def key(host: Host) -> tuple[int, int]:
        mixed = zlib.crc32(f"{host.name}\0{salt}".encode("utf-8", "surrogateescape"))
        return -known.bytes.get(host.name, 0), mixed

    return sorted(hosts, key=key)


def _said(host: Host, known: InputPlaces, most: int, skipped: Sequence[str]) -> NodeChoice:
    here = known.bytes.get(host.name, 0)
    if not most:
        why = "the place of no input is known" if known.total_bytes else "no input has any bytes"
    else:
        why = f"{human(here)} of {human(known.total_bytes)} of the inputs lie there"
    reason = "; ".join([_few(skipped), why]) if skipped else why
    return NodeChoice(host, reason, fallback=here < most or not most)


def _few(reasons: Sequence[str]) -> str:
    more = [f"{len(reasons) - 3} more"] if len(reasons) > 3 else []
    return ", ".join([*reasons[:3], *more])
