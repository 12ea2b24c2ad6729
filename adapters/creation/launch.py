"""Switching hints on for a command: the rule table in a private place, and a way to set them.

The table lies in `.tracehint/` of the working directory, which jobs on other nodes see as well;
where nothing can be written there, in a temporary directory, which only this host sees.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from tracehint.adapters.creation.compile import Compiled
from tracehint.adapters.creation.journal import Journal, link_journal, make_journal, read_journals
from tracehint.adapters.creation.running import Running
from tracehint.adapters.creation.ways import Way
from tracehint.adapters.paths import PRIVATE
from tracehint.errors import InputError
from tracehint.schemas.plain import is_own_folder


@dataclass(frozen=True)
class Switched:
    """Hints are on for who gets `environment`, as `running` has it."""

    table: Path
    running: Running

    @property
    def environment(self) -> dict[str, str]:
        """What the command gets besides."""
        return dict(self.running.environment)

    def journal(self) -> Journal:
        """What was set until now."""
        return read_journals(self.table)


@contextmanager
def switched_on(
    compiled: Compiled, folder: Path, way: Way, roots: Sequence[bytes]
) -> Iterator[Switched]:
    """Write the table below `folder` and switch the way on.

    What was written goes at the end; processes that outlive the command keep what they mapped.
    Raises MissingDependencyError, InputError.
    """
    place = _place(folder)
    try:
        table = place / "table"
        _write(table, compiled.data)
        with _journal(table), way.on(table, roots) as running:
            yield Switched(table, running)
    finally:
        shutil.rmtree(place, ignore_errors=True)


def _write(table: Path, data: bytes) -> None:
    fd = os.open(table, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(fd, "wb") as stream:
            stream.write(data)
    except OSError as error:
        raise InputError(
            f"the rules cannot be written to {table.parent}: {error.strerror}", "Make room there."
        ) from None


@contextmanager
def _journal(table: Path) -> Iterator[None]:
    """Beside the table, or where this host can share a file through memory."""
    with ExitStack() as stack:
        try:
            make_journal(table)
        except OSError:
            folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="tracehint-"))
            link_journal(table, Path(folder))
        yield


def _place(folder: Path) -> Path:
    """A new directory that only the caller may use."""
    own = folder / os.fsdecode(PRIVATE)
    with suppress(OSError):
        own.mkdir(mode=0o700, exist_ok=True)
        if is_own_folder(own):
            return Path(tempfile.mkdtemp(prefix="run-", dir=own)).resolve()
    return Path(tempfile.mkdtemp(prefix="tracehint-")).resolve()
