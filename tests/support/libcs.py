"""C libraries of other Debian releases (scripts/libc.sh), and commands that run with them."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.preload import ROOT

RELEASES = ("trixie", "sid")  # newer than the oldest release that the tests run on
_FOLDER = Path(os.environ.get("TRACEHINT_LIBCS") or ROOT / "build" / "libc")
_SCRIPT = ROOT / "scripts" / "libc.sh"


# In __syscall_cancel_arch: mov %r9,%r10 -> the other encoding of the same instruction.
_SITE, _CHANGED = bytes.fromhex("4d89ca4c8b442408"), bytes.fromhex("4d8bd14c8b442408")


def with_libc(release: str, folder: Path = _FOLDER) -> list[str]:
    """Return words that run the command behind them with that C library; skip if impossible."""
    if not (folder / release / ".ready").exists():
        pytest.skip(f"the C library of {release} was not fetched: make engines")
    words = [str(_SCRIPT), str(folder), release]
    tried = subprocess.run([*words, "true"], capture_output=True, text=True, check=False)
    if tried.returncode:
        pytest.skip(f"no program runs with the C library of {release}: {tried.stderr.strip()}")
    return words


def changed_libc(release: str, folder: Path) -> list[str]:
    """Return the same with one site replaced by equivalent code that is unknown."""
    with_libc(release)
    shutil.copytree(_FOLDER / release, folder / release, symlinks=True)
    library = folder / release / "usr" / "lib" / "x86_64-linux-gnu" / "libc.so.6"
    code = library.read_bytes()
    assert code.count(_SITE) == 1
    library.write_bytes(code.replace(_SITE, _CHANGED))
    return with_libc(release, folder)
