"""Choice of a task's node: the one that stores most bytes of its inputs.

Policies, with the meaning of Swift/T's @location:
  soft  that node, or the next one with a free slot if it is full
  hard  that node, even if it is full
Neither policy waits or fails: an unknown or unreachable node is reported,
and the task runs elsewhere.

All `tracehint place` processes of one driver share the state of nodes and slots.
"""

from __future__ import annotations

import fcntl
import os
import stat
import time
import zlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from tracehint.adapters.place.hosts import Host, by_name, find
from tracehint.adapters.stores.base import Location, Locator
from tracehint.hintgen.text.units import size as human

AWAY_S, THERE_S = 60.0, 10.0


@dataclass
class Roll:
    """Reachability of nodes, cached in `folder` (None: no cache). `ask`: the host file's check."""

    folder: Path | None
    ask: Callable[[Host], bool]
    now: Callable[[], float] = time.time
    messages: list[str] = field(default_factory=list)

    def answers(self, host: Host) -> bool:
        """Whether the node can be used."""
        if not host.check:
            return True
        if self._fresh(host, "there", THERE_S):
            return True
        if self._fresh(host, "away", AWAY_S):
            return False
        there = self.ask(host)
        gone, here = ("away", "there") if there else ("there", "away")
        was = self._remove(host, gone)
        new = self._mark(host, here)
        if there and was:
            self.messages.append(f"{host.name} answers again")
        if not there and new:
            self.messages.append(f"{host.name} does not answer: its tasks run on other nodes")
        return there

    def _path(self, host: Host, what: str) -> Path | None:
        return self.folder / f"{host.name}.{what}" if self.folder else None

    def _fresh(self, host: Host, what: str, seconds: float) -> bool:
        path = self._path(host, what)
        try:
            return path is not None and abs(self.now() - path.lstat().st_mtime) < seconds
        except OSError:
            return False

    def _mark(self, host: Host, what: str) -> bool:
        """Renew the marker; return True if it did not exist."""
        path = self._path(host, what)
        if path is None:
            return True
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        new = True
        try:
            os.close(os.open(path, flags, 0o600))
        except FileExistsError:
            new = False
        except OSError:
            return True
        with suppress(OSError):
            os.utime(path, (self.now(), self.now()), follow_symlinks=False)
        return new

    def _remove(self, host: Host, what: str) -> bool:
        path = self._path(host, what)
        try:
            if path is not None:
                path.unlink()
        except OSError:
            return False
        return path is not None


@dataclass
class Slots:
    """Slots of nodes, locked by files. `folder` None: every slot is free; `problem`: the reason."""

    folder: Path | None
    problem: str = ""
    held: dict[str, int] = field(default_factory=dict)  # name of a node -> descriptor

    def take(self, host: Host) -> bool:
        """Take a slot of the node; return False if all are taken."""
        if self.folder is None or host.slots == 0 or host.name in self.held:
            return True
        for number in range(host.slots):
            fd = self._lock(f"{host.name}.{number}")
            if fd is not None:
                self.held[host.name] = fd
                return True
        return bool(self.problem)

    def free(self, host: Host) -> bool:
        """Whether a slot could be taken; none is kept."""
        held = host.name in self.held
        found = self.take(host)
        if found and not held and host.name in self.held:
            os.close(self.held.pop(host.name))
        return found

    def _lock(self, name: str) -> int | None:
        """Return a descriptor of the locked file; None if it is locked or fails (`problem`)."""
        assert self.folder is not None
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            fd = os.open(self.folder / name, flags, 0o600)
        except OSError as error:
            self.problem = f"{self.folder}: {error.strerror}"
            return None
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(fd)
            return None
        except OSError as error:
            self.problem = f"{self.folder}: {error.strerror}"
            os.close(fd)
            return None
        return fd

    def keep(self, host: Host | None) -> None:
        """Release all slots except the node's, which the started command inherits."""
        for name, fd in self.held.items():
            if host is not None and name == host.name:
                os.set_inheritable(fd, True)
            else:
                os.close(fd)
        self.held = {n: fd for n, fd in self.held.items() if host is not None and n == host.name}


def open_slots(folder: Path) -> Slots:
    """Return the slots in `folder`, which is created; on failure slots are not counted."""
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        info = folder.stat()
    except OSError as error:
        return Slots(None, f"slots are not counted: {folder}: {error.strerror}")
    if info.st_uid != os.geteuid():
        return Slots(None, f"slots are not counted: {folder} belongs to another user")
    return Slots(folder)


MAX_SILENT = 3  # unreachable nodes after which a task is not delayed further


@dataclass
class InputPlaces:
    """Locations of the inputs as reported by the store. `unknown`: path -> reason.

    `unasked`: files not queried because they cannot change which node has most bytes.
    """

    total_bytes: int = 0
    bytes: dict[str, int] = field(default_factory=dict)  # name of a node -> bytes stored there
    nodes: dict[str, tuple[str, ...]] = field(default_factory=dict)  # path -> nodes in the store
    unknown: dict[str, str] = field(default_factory=dict)
    unasked: int = 0


@dataclass(frozen=True)
class NodeChoice:
    """The node (None: this one), and the reason in words."""

    host: Host | None
    reason: str
    fallback: bool  # True: not the node with most bytes


def share(location: Location, node: str) -> float:
    """Return the fraction of a file on the node, 0 to 1, from copies that the store reports.

    Without a number of chunks, the copies of a file are assumed to be spread evenly over it.
    """
    copies = location.detail.get("copies")
    if not isinstance(copies, Mapping) or node not in copies:
        return 1.0
    chunks = location.detail.get("chunks")
    whole = chunks if isinstance(chunks, int) and chunks > 0 else sum(copies.values())
    return float(min(1.0, copies[node] / whole)) if whole else 0.0


def look(store: Locator | None, hosts: Sequence[Host], inputs: Sequence[str]) -> InputPlaces:
    """Query the store, largest file first, until the node with most bytes is certain."""
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
        known.unknown[path] = "the store does not report it"
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
    """Choose the node for a task.

    `free` returns whether a slot is free, `answers` whether the node can be used; both are called
    only for candidate nodes.
    """
    order = rank_hosts(hosts, known)
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
            return _explain_choice(host, known, holds, skipped)
        skipped.append(f"all {host.slots} slots of {host.name} are taken")
        if policy == "hard" and known.bytes.get(host.name, 0):
            return _explain_choice(host, known, holds, skipped)
        full.append(host)
    if full:
        return NodeChoice(full[0], f"no free slot: {_join_first_reasons(skipped)}", fallback=True)
    return NodeChoice(None, f"no node can be used: {_join_first_reasons(skipped)}", fallback=True)


def rank_hosts(hosts: Sequence[Host], known: InputPlaces) -> list[Host]:
    """Return nodes with most bytes first; equal ones in an order that differs between tasks."""
    salt = "\0".join(sorted({*known.nodes, *known.unknown})) or str(os.getpid())

    def key(host: Host) -> tuple[int, int]:
        mixed = zlib.crc32(f"{host.name}\0{salt}".encode("utf-8", "surrogateescape"))
        return -known.bytes.get(host.name, 0), mixed

    return sorted(hosts, key=key)


def _explain_choice(
    host: Host, known: InputPlaces, most: int, skipped: Sequence[str]
) -> NodeChoice:
    here = known.bytes.get(host.name, 0)
    if not most:
        why = "no node is known for any input" if known.total_bytes else "no input has any bytes"
    else:
        why = f"{human(here)} of {human(known.total_bytes)} of the inputs are stored there"
    reason = "; ".join([_join_first_reasons(skipped), why]) if skipped else why
    return NodeChoice(host, reason, fallback=here < most or not most)


def _join_first_reasons(reasons: Sequence[str]) -> str:
    more = [f"{len(reasons) - 3} more"] if len(reasons) > 3 else []
    return ", ".join([*reasons[:3], *more])
