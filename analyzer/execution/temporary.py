"""Directories for temporary files that are gone at the end, also after a kill: the next run
removes what a killed one left."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from stat import S_ISDIR

from tracehint.errors import TracehintError

_LOCK = "lock"  # held by the process that uses the directory, wherever it runs


@contextmanager
def temporary_folder(prefix: str, where: Path | None = None) -> Iterator[Path]:
    """A fresh directory (mode 0700) below `where` (default: the system's directory for temporary
    files), and none of those with this prefix whose process is gone."""
    above = Path(where or tempfile.gettempdir())
    _remove_left(above, prefix)
    try:
        folder = Path(tempfile.mkdtemp(prefix=prefix, dir=above))
        held = _locked(folder)
    except OSError as error:
        raise TracehintError(
            f"{above}: no temporary files can be made: {error.strerror or error}",
            "Name another directory in TMPDIR.",
        ) from None
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(held)


def _locked(folder: Path) -> int:
    """A file with a lock of this process; whoever sees its name sees the lock too."""
    early = folder / f".{_LOCK}"
    held = os.open(early, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    with suppress(OSError):  # a file system without locks: then nobody can take it either
        fcntl.flock(held, fcntl.LOCK_EX)
    early.rename(folder / _LOCK)
    return held


def _remove_left(above: Path, prefix: str) -> None:
    """Remove the directories of this user's processes that were killed."""
    with suppress(OSError):
        for found in above.iterdir():
            if found.name.startswith(prefix):
                _remove_if_left(found)


def _remove_if_left(folder: Path) -> None:
    with suppress(OSError):
        seen = folder.lstat()
        if not S_ISDIR(seen.st_mode) or seen.st_uid != os.geteuid():
            return
        held = os.open(folder / _LOCK, os.O_RDWR | os.O_NOFOLLOW)
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder, ignore_errors=True)
        finally:
            os.close(held)
