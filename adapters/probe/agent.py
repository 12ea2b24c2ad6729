"""The probe's agent on each node: this source text alone, run by `python3 -c`, without tracehint.

It reads one JSON request per line from standard input and prints one JSON reply per line: `seconds`
in total, `times` of each item of `done`, `net` (bytes received and sent over the node's links in
that time), `busy` (processor seconds in that time: of this program, and of the store's `programs`
on this machine, or of all processors if none of these is found). It accesses nothing outside the
directory that is its only argument.
"""

from __future__ import annotations

import errno
import json
import mmap
import os
import sys
import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

BLOCK = 1 << 20
REST_S = 0.5
TICK = os.sysconf("SC_CLK_TCK")
NEW = os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC
OLD = os.O_RDONLY | os.O_CLOEXEC


def net() -> tuple[int, int]:
    """Return the bytes received and sent over all links except loopback."""
    came, went = 0, 0
    for line in Path("/proc/net/dev").read_text().splitlines()[2:]:
        name, _, rest = line.partition(":")
        if name.strip() != "lo":
            words = rest.split()
            came, went = came + int(words[0]), went + int(words[8])
    return came, went


def busy(programs: Sequence[str]) -> tuple[float, float]:
    """Return processor seconds so far: of this program, and of the store's programs on this
    machine; if none of these is visible, 0 and the seconds of all processors."""
    total, found = 0.0, False
    for entry in Path("/proc").iterdir() if programs else ():
        try:
            name, _, rest = (entry / "stat").read_text().partition(" (")[2].rpartition(") ")
        except OSError:
            continue  # not a process, or it has ended
        if name in programs:
            words = rest.split()
            total += (int(words[11]) + int(words[12])) / TICK
            found = True
    if found:
        return sum(os.times()[:2]), total
    words = Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:8]
    user, nice, system, _idle, _wait, irq, soft = map(int, words)
    return 0.0, (user + nice + system + irq + soft) / TICK


def machine() -> str:
    """Return the boot id, which all nodes on one machine share; empty: unreadable."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


def rest(_path: str, _size: int) -> list[float]:
    """Stay idle for REST_S seconds."""
    time.sleep(REST_S)
    return [REST_S]


def create(path: str, _size: int) -> list[float]:
    """Return the seconds to create an empty file, and to close it."""
    start = time.perf_counter()
    fd = os.open(path, NEW, 0o600)
    middle = time.perf_counter()
    os.close(fd)
    return [middle - start, time.perf_counter() - middle]


def look(path: str, _size: int) -> list[float]:
    """Return the seconds to open a file."""
    start = time.perf_counter()
    fd = os.open(path, OLD)
    end = time.perf_counter()
    os.close(fd)
    return [end - start]


def write(path: str, size: int, *, sync: bool = False) -> list[float]:
    """Return the seconds to open a new file, to write it, and to close it; `sync`: writing includes
    fsync, for clients that cache data after the close."""
    block = os.urandom(min(size, BLOCK))
    begin = time.perf_counter()
    fd, done = os.open(path, NEW, 0o600), 0
    try:
        start = time.perf_counter()
        while done < size:
            done += os.write(fd, block[: size - done])
        if sync:
            os.fsync(fd)
        middle = time.perf_counter()
    finally:
        os.close(fd)
    return [start - begin, middle - start, time.perf_counter() - middle]


def read(path: str, size: int) -> list[float]:
    """Return the seconds to open a file, and to read its last bytes without the page cache.

    The last bytes, so that the client reads nothing ahead.
    """
    begin = time.perf_counter()
    fd, done = os.open(path, OLD), 0
    try:
        start = time.perf_counter()
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        os.lseek(fd, -size, os.SEEK_END)
        while done < size:
            got = len(os.read(fd, min(BLOCK, size - done)))
            if not got:
                raise OSError("the file is shorter than what was written")
            done += got
        return [start - begin, time.perf_counter() - start]
    finally:
        os.close(fd)


def direct(path: str, size: int) -> list[float]:
    """As `read`, with O_DIRECT, if supported, to bypass the client's cache too."""
    begin = time.perf_counter()
    try:
        fd = os.open(path, OLD | os.O_DIRECT)
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
        return read(path, size)
    try:
        start = time.perf_counter()
        with mmap.mmap(-1, size) as room:
            got = os.preadv(fd, [room], max(0, os.fstat(fd).st_size - size))
        if got < size:
            raise OSError("the file is shorter than what was written")
        return [start - begin, time.perf_counter() - start]
    finally:
        os.close(fd)


def renew(path: str, _size: int) -> list[float]:
    """Return the seconds to rewrite the last byte, which invalidates other clients' caches."""
    start = time.perf_counter()
    fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.pwrite(fd, b"\0", os.fstat(fd).st_size - 1)
        os.fsync(fd)
    finally:
        os.close(fd)
    return [time.perf_counter() - start]


Job = Callable[[str, int], "list[float]"]
JOBS: dict[str, Job] = {
    "rest": rest,
    "create": create,
    "look": look,
    "write": write,
    "read": read,
    "direct": direct,
    "renew": renew,
    "stored": partial(write, sync=True),
    "synced": lambda path, size: [sum(write(path, size, sync=True))],
}


def work(
    job: Job,
    names: Sequence[str],
    size: int,
    until: float,
    found: list[list[float]],
    errors: list[str],
) -> None:
    """Run the job on each name in turn, at least once, until the time limit or an error."""
    try:
        for name in names:
            if time.monotonic() > until and found:
                break
            if "/" in name or name in ("", ".", ".."):
                raise OSError("not a file name")
            before = net()
            times = job(name, size)
            after = net()
            found.append([*times, after[0] - before[0], after[1] - before[1]])
    except OSError as error:
        errors.append(str(error))


def answer(asked: dict[str, Any]) -> dict[str, object]:
    """Return the reply to a request; `streams` threads share its names."""
    if asked["do"] == "about":
        pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        return {"cores": os.cpu_count() or 1, "memory": pages, "machine": machine()}
    streams, names = asked.get("streams", 1), asked["names"]
    found: list[list[float]] = []
    errors: list[str] = []
    until = time.monotonic() + asked["limit"]
    worked = busy(asked.get("programs", ()))
    start, before = time.perf_counter(), net()
    parts: list[list[list[float]]] = [[] for _ in range(streams)]
    jobs = [
        threading.Thread(
            target=work,
            args=(JOBS[asked["do"]], names[i::streams], asked["size"], until, parts[i], errors),
        )
        for i in range(streams)
    ]
    for job in jobs:
        job.start()
    for job in jobs:
        job.join()
    after = net()
    done: list[str] = []
    for i, part in enumerate(parts):
        found += part
        done += names[i::streams][: len(part)]
    if errors:
        return {"error": errors[0][:300]}
    moved = [after[0] - before[0], after[1] - before[1]]
    took, now = time.perf_counter() - start, busy(asked.get("programs", ()))
    return {
        "seconds": took,
        "times": found,
        "done": done,
        "net": moved,
        "busy": [now[0] - worked[0], now[1] - worked[1]],
    }


def main() -> None:
    """Answer requests until standard input ends."""
    os.chdir(sys.argv[1])
    for line in sys.stdin:
        try:
            reply = answer(json.loads(line))
        except (OSError, ValueError, KeyError, TypeError) as error:
            reply = {"error": str(error)[:300]}
        sys.stdout.write(json.dumps(reply) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
