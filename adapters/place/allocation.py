"""The nodes of this process's batch allocation, as hosts on which tasks can be started.

Slurm reports the nodes and their processors (in a job script or `salloc`); `srun` starts a step on
one of them, alongside all other steps: `run` counts the tasks of each node itself. Before tasks are
placed, one trial step is run, which also measures the link.
"""

from __future__ import annotations

import os
import re
import secrets
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from tracehint.adapters.place import starter
from tracehint.adapters.place.hosts import (
    MAX_HOSTS,
    MAX_SLOTS,
    NAME,
    Host,
    is_here,
    read_hosts,
    start_words,
)
from tracehint.errors import InputError

_STEP = (
    "srun", "--quiet", "--overlap", "--exact", "--immediate=30", "--nodelist={host}", "--nodes=1",
    "--ntasks=1", "--cpus-per-task={slots}", "--mem=0", "--cpu-bind=none", "--mpi=none",
    "--kill-on-bad-exit=0", "--quit-on-interrupt", "--chdir=/", "--", "{argv}",
)  # fmt: skip  # a table
_TIMES = re.compile(r"(\d{1,6})(?:\(x(\d{1,6})\))?")
_ADDRESS = re.compile(rf"\bNodeName=({NAME.pattern}) .*?\bNodeAddr=({NAME.pattern})(?!\S)")
_TIMEOUT_S = 10
_TRIAL_S = 20  # for a step to start
_POLL_S = 0.2
_MARK = 32  # bytes that identify the sender
_BURST = 1 << 20  # bytes that a link may buffer


@dataclass(frozen=True)
class Allocation:
    """Nodes on which a step can be started. `here`: index of this node, None if it is not one of
    them; `start_s`: seconds until a step's program runs."""

    hosts: tuple[Host, ...]
    here: int | None
    link_mbit: float
    start_s: float


def usable(hosts: tuple[Host, ...], patience_s: float | None = None) -> Allocation | None:
    """Return the nodes with the measurements of a trial on one of them; None without another node,
    or if the trial failed, such as a step not started within `patience_s` (default: 20 s)."""
    here = _place_here(hosts)
    other = next((host for i, host in enumerate(hosts) if i != here), None)
    measured = _measure_step(other, patience_s or _TRIAL_S) if other is not None else None
    return None if measured is None else measured_before(hosts, *measured)


def measured_before(hosts: tuple[Host, ...], link_mbit: float, start_s: float) -> Allocation:
    """Return the nodes with the measurements of an earlier trial."""
    linked = tuple(replace(host, link_mbit=link_mbit) for host in hosts)
    return Allocation(linked, _place_here(hosts), link_mbit, start_s)


def _place_here(hosts: tuple[Host, ...]) -> int | None:
    return next((i for i, host in enumerate(hosts) if is_here(host)), None)


def _measure_step(host: Host, patience_s: float) -> tuple[float, float] | None:
    """Return Mbit/s from the node to this one, and seconds until a step on it starts."""
    mark = secrets.token_hex(_MARK // 2)
    with socket.create_server(("", 0)) as server:
        server.settimeout(_POLL_S)
        send = [sys.executable, "-I", "-S", starter.__file__, "--send"]
        words = start_words(host, [*send, str(server.getsockname()[1]), mark], "/")
        begin = time.monotonic()
        try:
            process = subprocess.Popen(
                words,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
        except OSError:
            return None
        try:
            with _accept_call(server, process, patience_s) as line:
                line.settimeout(_TRIAL_S)
                start_s = time.monotonic() - begin
                rate = _measure_rate(line, mark.encode())
        except OSError:
            rate = None
            process.terminate()
        finally:
            with suppress(subprocess.TimeoutExpired):
                process.wait(timeout=_TIMEOUT_S)
            process.kill()
            process.wait()
    return (rate, start_s) if rate is not None and not process.returncode else None


def _accept_call(
    server: socket.socket, process: subprocess.Popen[bytes], patience_s: float
) -> socket.socket:
    """Accept the trial's connection. Raise OSError without one in time or after the end."""
    end = time.monotonic() + patience_s
    while True:
        ended = process.poll() is not None
        try:
            return server.accept()[0]
        except TimeoutError:
            if ended or time.monotonic() > end:
                raise


def _measure_rate(line: socket.socket, mark: bytes) -> float | None:
    """Return Mbit/s of received data, after the first burst; None for an unknown sender."""
    if line.recv(_MARK, socket.MSG_WAITALL) != mark:
        return None
    got, begin, before = 0, time.monotonic(), 0
    last = begin
    while part := line.recv(1 << 18):
        got, last = got + len(part), time.monotonic()
        if not before and got >= _BURST:
            begin, before = last, got
    return 8e-6 * (got - before) / max(last - begin, 1e-3)


def allocated_hosts() -> tuple[Host, ...]:
    """Return the nodes, this one first; empty without an allocation of several nodes."""
    env = os.environ
    if not env.get("SLURM_JOB_ID") or not env.get("SLURM_JOB_NODELIST"):
        return ()
    names = _names(env["SLURM_JOB_NODELIST"])
    slots = slots_of(env.get("SLURM_JOB_CPUS_PER_NODE", ""))
    if not 1 < len(names) == len(slots) <= MAX_HOSTS:
        return ()
    binds = _are_steps_bound()
    words = [word for word in _STEP if binds or not word.startswith("--cpu-bind")]
    hosts = [
        Host(
            name=name,
            slots=count,
            start=tuple(word.replace("{slots}", str(count)) for word in words),
        )
        for name, count in zip(names, slots, strict=True)
    ]
    return tuple(sorted(hosts, key=lambda host: not is_here(host)))


def named_hosts(path: Path) -> tuple[Host, ...]:
    """Return the nodes of the host file; none if it is unreadable, has one node or no slots."""
    try:
        hosts = read_hosts(path)
    except InputError:
        return ()
    return hosts if len(hosts) > 1 and all(host.slots for host in hosts) else ()


def addresses_of(names: Sequence[str]) -> dict[str, str]:
    """Return Slurm's address of each node; empty without Slurm."""
    return dict(_ADDRESS.findall(_ask("--oneliner", "show", "node", ",".join(names))))


def slots_of(text: str) -> list[int]:
    """Parse Slurm's "2(x3),4" to a number per node; empty if the text is invalid."""
    found: list[int] = []
    for part in text.split(","):
        match = _TIMES.fullmatch(part)
        if match is None or int(match[1]) > MAX_SLOTS:
            return []
        found += [int(match[1])] * min(int(match[2] or 1), MAX_HOSTS)
    return found


def _are_steps_bound() -> bool:
    """Whether steps are bound to processors; otherwise `srun` warns about the option."""
    return any(
        plugin in _ask("show", "config").partition("TaskPlugin ")[2].partition("\n")[0]
        for plugin in ("affinity", "cgroup")
    )


def _names(nodelist: str) -> list[str]:
    names = _ask("show", "hostnames", nodelist).split()
    return names if all(map(NAME.fullmatch, names)) else []


def _ask(*words: str) -> str:
    """Return the output of scontrol; empty if it fails."""
    try:
        done = subprocess.run(
            ["scontrol", *words],
            capture_output=True,
            text=True,
            timeout=_TIMEOUT_S,
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.TimeoutExpired, UnicodeDecodeError):
        return ""
    return "" if done.returncode else done.stdout
