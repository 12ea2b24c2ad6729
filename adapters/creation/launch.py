"""Switching the tagger on for a command: the rule table in a private place, and the environment.

The table lies in `.tracehint/` of the working directory, which jobs on other nodes see as well;
where nothing can be written there, in a temporary directory, which only this host sees.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from tracehint.adapters.creation.compile import Compiled
from tracehint.adapters.creation.journal import Journal, make_journal, read_journals
from tracehint.adapters.paths import PRIVATE
from tracehint.collectors.preload.blind import LIBRARY
from tracehint.collectors.preload.sites import write_sites
from tracehint.errors import MissingDependencyError
from tracehint.schemas.plain import is_own_folder

SWITCH = "TRACEHINT_HINTS"


@dataclass(frozen=True)
class Switched:
    """The tagger is on for who gets `environment`; `shared`: also for jobs on other nodes."""

    table: Path
    environment: dict[str, str]
    shared: bool

    def journal(self) -> Journal:
        """What was set until now."""
        return read_journals(self.table)


def library() -> Path:
    """The preload library. Raises MissingDependencyError."""
    if not LIBRARY.exists():
        raise MissingDependencyError(
            "the preload library is not built", "Run `make tracer` (x86-64 Linux, a C compiler)."
        )
    if any(mark in str(LIBRARY) for mark in " :"):
        raise MissingDependencyError(
            f"the loader cannot be told a path with a space or a colon: {LIBRARY}",
            "Install tracehint in another directory.",
        )
    return LIBRARY


@contextmanager
def switched_on(compiled: Compiled, folder: Path) -> Iterator[Switched]:
    """Write the table below `folder` and say what the command's environment must hold.

    What was written goes at the end; processes that outlive the command keep what they mapped.
    Raises MissingDependencyError.
    """
    path = library()
    place, shared = _place(folder)
    try:
        table = place / "table"
        fd = os.open(table, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(fd, "wb") as stream:
            stream.write(compiled.data)
        make_journal(table)
        before = os.environ.get("LD_PRELOAD", "")
        preload = f"{path}:{before}" if before else str(path)
        own = {SWITCH: str(table), "LD_PRELOAD": preload, **write_sites(place / "sites")}
        yield Switched(table, own, shared)
    finally:
        shutil.rmtree(place, ignore_errors=True)


def _place(folder: Path) -> tuple[Path, bool]:
    """A new directory that only the caller may use."""
    own = folder / os.fsdecode(PRIVATE)
    with suppress(OSError):
        own.mkdir(mode=0o700, exist_ok=True)
        if is_own_folder(own):
            return Path(tempfile.mkdtemp(prefix="run-", dir=own)).resolve(), True
    return Path(tempfile.mkdtemp(prefix="tracehint-")).resolve(), False
