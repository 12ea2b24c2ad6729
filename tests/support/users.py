"""A second user, for tests that root runs."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.patience import PATIENCE_S

OTHER = 12345
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root for a second user")

_BECOME = f"""
import ctypes, os, sys
os.setgroups([])
os.setgid({OTHER})
os.setuid({OTHER})
"""  # the interpreter may be in a directory that only root can enter
_EXCHANGE = """
os.chdir(sys.argv[1])
print(flush=True)
while sys.argv[3:] and not os.path.exists(sys.argv[3]):
    pass
while ctypes.CDLL(None).renameat2(-100, b"new", -100, sys.argv[2].encode(), 2):
    pass
for begun in sys.argv[3:]:
    os.unlink(begun)
"""
_SWAP = """
os.chdir(sys.argv[1])
print(flush=True)
while True:
    os.rename("d", "e")
    os.symlink(sys.argv[2], "d")
    os.unlink("d")
    os.rename("e", "d")
"""
_RENAME = """
os.chdir(sys.argv[1])
print(flush=True)
while True:
    ctypes.CDLL(None).renameat2(-100, sys.argv[2].encode(), -100, sys.argv[3].encode(), 2)
"""
_PLANT = """
import time
os.chdir(sys.argv[1])
print(flush=True)
while not os.path.exists("d/started"):
    time.sleep(0.001)
os.rename(sys.argv[2], sys.argv[2] + ".moved")
os.symlink(sys.argv[3], sys.argv[2])
open("d.moved/go" if sys.argv[2] == "d" else "d/go", "w").close()
"""


def reachable(path: Path) -> Path:
    """Let other users reach a test's directory, however deep pytest created it; return it."""
    for folder in (path, *path.parents):
        if folder.name.startswith("pytest-of-"):
            folder.chmod(0o755)
            return path
        folder.chmod(0o755)
    raise AssertionError(f"{path}: not a directory of pytest")


@contextmanager
def exchanging(folder: Path, victim: str, *begun: str) -> Iterator[None]:
    """The other user exchanges (RENAME_EXCHANGE) `new` and `victim` as soon as `victim` and the
    file `begun` exist, then removes `begun`."""
    with _attacker(_EXCHANGE, folder, victim, *begun) as process:
        yield
        assert process.wait(PATIENCE_S) == 0, "the exchange was made"


@contextmanager
def swapping(folder: Path, outside: Path) -> Iterator[None]:
    """The other user repeatedly replaces `d` by a link to `outside` and restores the directory."""
    with _attacker(_SWAP, folder, outside) as process:
        yield
        assert process.poll() is None, "the attack went on all the time"
    if (folder / "e").exists():  # it was killed in the middle
        (folder / "d").unlink(missing_ok=True)
        (folder / "e").rename(folder / "d")


@contextmanager
def attacking(folder: Path, name: str, other: str) -> Iterator[None]:
    """The other user repeatedly exchanges two files of the directory."""
    with _attacker(_RENAME, folder, name, other) as process:
        yield
        assert process.poll() is None, "the attack went on all the time"


@contextmanager
def planting(folder: Path, name: str, target: Path) -> Iterator[None]:
    """When `d/started` exists, the other user replaces a directory by a link and creates `d/go`."""
    with _attacker(_PLANT, folder, name, target) as process:
        yield
        assert process.wait(PATIENCE_S) == 0, "the link was planted"


@contextmanager
def _attacker(code: str, *arguments: str | Path) -> Iterator[subprocess.Popen[bytes]]:
    command = [sys.executable, "-SE", "-c", _BECOME + code, *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            process.stdout.readline()
            yield process
        finally:
            process.kill()
