"""The interface of a collector: availability, blind spots and recording one command."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from tracehint.schemas.losses import events


@dataclass(frozen=True)
class Availability:
    """Whether a collector can run on this machine, and the remedy if it cannot."""

    usable: bool
    reason: str  # one line: why (not)
    remedy: str = ""  # the exact command or step; empty when usable
    blind_to: tuple[str, ...] = ()  # codes stored in manifest.blind_to
    cost: str = ""  # one line, measured: "about 1.1x CPU on small I/O"
    broken: bool = False  # built for another version: `auto` reports it and stops
    incomplete: str = ""  # what it would miss on this machine; `auto` then skips it

    @property
    def decides(self) -> bool:
        """Whether `auto` stops here: it chooses this collector or reports that it is broken."""
        return (self.usable and not self.incomplete) or self.broken


@dataclass(frozen=True)
class Follow:
    """What to follow instead of running a command: a process tree, a cgroup v2 directory, or the
    processes that connect to a socket (collectors/ebpf/node.py)."""

    pid: int = 0  # 0: none
    cgroup: str = ""
    duration: float = 0.0  # seconds; 0: until the processes have ended
    listen: int = -1  # descriptor of a listening socket; -1: none
    lock: int = -1  # descriptor of the file that connecting processes lock; -1: none
    ready: int = -1  # descriptor that gets one byte once recording has begun; -1: none
    idle: float = 0.0  # seconds without a followed process before it ends; 0: never
    missed: str = ""  # file with one line per task that could not connect


@dataclass(frozen=True)
class RecordRequest:
    """One recording. Paths are absolute; `command` is run as it is, without a shell."""

    command: tuple[str, ...]
    output: Path  # bundle directory
    data_roots: tuple[str, ...] = ()
    keep_args: bool = False
    no_args: bool = False  # store only the program of each command
    force: bool = False
    quiet: bool = False
    host: str = ""  # empty: this machine's name
    options: dict[str, str] = field(default_factory=dict)  # collector specific, e.g. light=1
    follow: Follow | None = None  # then `command` is empty; eBPF only
    environment: Mapping[str, str] = field(default_factory=dict)  # added to `inherited`
    # a copy: modules loaded later may change the environment of this process
    inherited: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))


@dataclass(frozen=True)
class RecordResult:
    """Result of a recording; `exit_status` is the command's code, or 128 + signal as in a shell."""

    exit_status: int
    signal: int | None = None  # set when the command died from a signal
    losses: Mapping[str, int] = field(default_factory=dict)  # kind (schemas/losses.py) -> count
    bundle: Path | None = None  # the bundle directory, held open

    @property
    def lost_events(self) -> int:
        """Number of events known to be lost."""
        return events(self.losses)


class Collector(Protocol):
    """A way to record a run; one subpackage per collector, registered in collectors/registry.py."""

    name: str

    def check(self) -> Availability:
        """Test whether it can run here, without side effects and within a second."""
        ...

    def record(self, request: RecordRequest) -> RecordResult:
        """Run the command, write the bundle. Raises CollectorError when recording cannot start."""
        ...
