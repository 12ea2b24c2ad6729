"""Hints by fanotify: the kernel asks an agent before each open on the data's mounts (root).

The agent answers for all programs, and sets hints for those of the run: descendants of this
process, which takes in the orphans among them.
"""

from __future__ import annotations

import ctypes
import os
import platform
import select
import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from tracehint.adapters.creation.running import Running
from tracehint.collectors.hostinfo import mounts
from tracehint.errors import MissingDependencyError
from tracehint.hintgen.text.units import plural

AGENT = Path(__file__).parents[1] / "fanotify" / "bin" / "tracehint-fanotify"
REACHES = "all programs on this node, also static and setuid ones; not those of other nodes"
COST = (
    "an open that makes a file takes 2 (ext4) to 5 times (tmpfs) as long, the first open of any "
    "other one on the same file system 6 times, also of other users"
)
UNSEEN = (
    "a process outside of the run, another node, a file without a name that was linked "
    "(O_TMPFILE), or no agent at that moment"
)
_PR_SET_CHILD_SUBREAPER = 36
_NOBODY = 65534
_BEGIN_S, _END_S = 20.0, 5.0


def check() -> tuple[str, str]:
    """Whether this machine and this user can have it."""
    if platform.system() != "Linux" or platform.machine() != "x86_64":
        return "the agent is for x86-64 Linux", "Use --via preload."
    if not AGENT.exists():
        return "the agent is not built", "Run `make tracer` (x86-64 Linux, a C compiler)."
    if os.geteuid() != 0:
        return "fanotify is for root only", "Run as root, or use --via preload."
    fd = ctypes.CDLL(None, use_errno=True).fanotify_init(0x5, os.O_CLOEXEC)  # as the agent does
    if fd < 0:
        why = os.strerror(ctypes.get_errno())
        return f"the kernel does not let us watch opens: {why}", "Use --via preload."
    os.close(fd)
    return "the kernel asks before opens", ""


def places(roots: Sequence[bytes]) -> list[bytes]:
    """The roots, and the mounts below them."""
    points = [os.fsencode(mount["path"]) for mount in mounts()]
    below = (p for p in points for root in roots if p.startswith(root.rstrip(b"/") + b"/"))
    return list(dict.fromkeys([*roots, *below]))


def refuse_strange(root: bytes) -> None:
    """The kernel denies a program's open where we may not open the file as well: a store that takes
    root for somebody else must not be watched. Raises MissingDependencyError."""
    try:
        fd, path = tempfile.mkstemp(prefix=b".tracehint-", dir=root)
    except OSError as error:
        why = f"{os.fsdecode(root)}: {error.strerror}"
        raise MissingDependencyError(why, "Use --via preload.") from None
    try:
        os.fchmod(fd, 0)
        os.fchown(fd, _NOBODY, _NOBODY)
        os.close(os.open(path, os.O_RDONLY | os.O_CLOEXEC))
    except OSError as error:
        raise MissingDependencyError(
            f"{os.fsdecode(root)}: root may not open files of others there: {error.strerror}",
            "Use --via preload.",
        ) from None
    finally:
        os.close(fd)
        with suppress(OSError):
            os.unlink(path)  # noqa: PTH108 (a path of bytes)


@contextmanager
def on(table: Path, roots: Sequence[bytes]) -> Iterator[Running]:
    """An agent runs for the descendants of this process. Raises MissingDependencyError."""
    for root in roots:
        refuse_strange(root)
    libc = ctypes.CDLL(None)
    libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    words: list[str | bytes | Path] = [AGENT, table, str(os.getpid()), *places(roots)]
    agent = subprocess.Popen(
        words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd="/", close_fds=True
    )
    try:
        _wait_until_ready(agent)
        yield Running(unseen=UNSEEN, end=lambda: _ended(agent))
    finally:
        _ended(agent)
        libc.prctl(_PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)


def _wait_until_ready(agent: subprocess.Popen[bytes]) -> None:
    assert agent.stdout is not None
    told = b""
    if select.select([agent.stdout], [], [], _BEGIN_S)[0]:
        told = agent.stdout.readline().strip()
    if told != b"ready":
        why = told.removeprefix(b"failed ").decode(errors="replace")
        raise MissingDependencyError(
            f"the fanotify agent did not begin: {why or 'it says nothing'}", "Use --via preload."
        )


def _ended(agent: subprocess.Popen[bytes]) -> list[str]:
    """End the agent; what happened to it meanwhile. A second time there is nothing more to say."""
    if agent.stdin is None or agent.stdin.closed:
        return []
    agent.stdin.close()
    try:
        status = agent.wait(_END_S)
    except subprocess.TimeoutExpired:
        agent.kill()
        status = agent.wait()
    assert agent.stdout is not None
    lines = agent.stdout.read().decode(errors="replace").splitlines()
    agent.stdout.close()
    return _words(Counter(line.split()[0] for line in lines if line), status)


def _words(counts: Counter[str], status: int) -> list[str]:
    said = []
    for what, words in (("killed", "ended unexpectedly"), ("stuck", "hung and was killed")):
        if counts[what]:
            said.append(f"the agent {words} {plural(counts[what], 'time')}")
    if counts["gone"] or status < 0:
        said.append("the agent and its watchdog ended before the command")
    if said:
        said.append("files that were made while there was no agent have no hints")
    return said
