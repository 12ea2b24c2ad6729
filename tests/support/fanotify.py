"""Building tracehint-fanotify, and running commands for which it sets hints."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.built import built
from tests.support.creation import SANITIZERS, SOURCES, Tagged

AGENT = Path(__file__).parents[2] / "adapters" / "fanotify"
_SHARED = ("class", "fit", "hinter", "journal", "maker", "store", "table", "value", "word")


def build(folder: Path, *flags: str) -> Path:
    """The agent, with the sanitizers where no other flags are given."""
    sources = [*sorted(AGENT.glob("*.c")), *(SOURCES / "tag" / f"{name}.c" for name in _SHARED)]
    flags = flags or tuple(SANITIZERS)
    flags = ("-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror", *flags)
    return built(folder / "tracehint-fanotify", "gcc", *flags, *sources, "-lpthread")


class Watched(Tagged):
    """Commands in a folder, with an agent for this process and its descendants."""

    agent: subprocess.Popen[str]

    def environment(self, **more: str) -> dict[str, str]:
        """Nothing but the caller's."""
        return {**os.environ, **more}

    @contextmanager
    def watched(self, program: Path) -> Iterator[list[str]]:
        """The agent runs; afterwards the list has what it said."""
        words = [program, self.table, str(os.getpid()), self.root.resolve()]
        said: list[str] = []
        with subprocess.Popen(
            words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as self.agent:
            assert self.agent.stdin and self.agent.stdout and self.agent.stderr
            said.append(self.agent.stdout.readline().strip())
            if said == ["failed fanotify: Operation not permitted"]:
                pytest.skip("fanotify is not allowed here")
            try:
                yield said
            finally:
                self.agent.stdin.close()
                said += self.agent.stdout.read().splitlines()
                errors = self.agent.stderr.read()
        assert not errors, errors

    def agent_pid(self) -> int:
        """The process that answers."""
        task = Path(f"/proc/{self.agent.pid}/task/{self.agent.pid}/children")
        return int(task.read_text().split()[0])


@contextmanager
def memory(folder: Path) -> Iterator[Path]:
    """A mounted tmpfs of its own. Skips where it cannot be had."""
    folder.mkdir(exist_ok=True)
    if subprocess.run(["mount", "-t", "tmpfs", "none", folder], capture_output=True).returncode:
        pytest.skip("tmpfs cannot be mounted here")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", folder], check=True)


@contextmanager
def mirror(folder: Path, *options: str) -> Iterator[Path]:
    """A FUSE file system of its own (bindfs). Skips where it cannot be had."""
    behind, where = folder / "behind", folder / "m"
    behind.mkdir()
    where.mkdir()
    if shutil.which("bindfs") is None or not Path("/dev/fuse").exists():
        pytest.skip("not there: bindfs, /dev/fuse")
    if subprocess.run(["bindfs", *options, behind, where], capture_output=True).returncode:
        pytest.skip("FUSE cannot be mounted here")
    try:
        yield where
    finally:
        subprocess.run(["umount", "-l", where], check=True)


def has_unnamed(folder: Path) -> bool:
    """Whether files without a name can be made there (O_TMPFILE)."""
    try:
        os.close(os.open(folder, os.O_TMPFILE | os.O_RDWR))
    except OSError:
        return False
    return True
