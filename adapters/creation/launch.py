"""Switch on hints at creation for a command: rule table, journal and environment.

The preload library in each program sets the hints. The table is stored in `.tracehint/` of the
working directory, which jobs on other nodes can read; if that is not writable, or another user
could replace its files while root runs, in a temporary directory, which only this host can read.
`tracehint doctor` prints whether this works here, which programs it reaches and what it costs.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from tracehint.adapters.creation.journal import Journal, link_journal, make_journal, read_journals
from tracehint.adapters.creation.rule_table import Compiled
from tracehint.adapters.paths import PRIVATE
from tracehint.collectors.node_local import is_safe, safe_folder
from tracehint.collectors.preload.arena import sites_for
from tracehint.collectors.preload.library import LIBRARY, can_be_named
from tracehint.errors import InputError, MissingDependencyError
from tracehint.schemas.plain import is_own_folder

SWITCH = "TRACEHINT_HINTS"
REACHES = (
    "dynamic programs (glibc, x86-64), static ones and Go that these start, on all nodes that the "
    "command's environment reaches; not setuid ones"
)
COST = "an open that makes a file takes 1 to 2 us more besides the attribute, others nothing"
UNSEEN = "a program that the library cannot enter, or one outside of the run"


@dataclass(frozen=True)
class MechanismCheck:
    """Whether hints can be set at creation on this machine."""

    name: str
    usable: bool
    reason: str
    remedy: str
    reaches: str
    cost: str


def check_mechanism() -> MechanismCheck:
    """Check the preload library without changing anything."""
    reason, remedy = can_be_named()
    return MechanismCheck("preload", not remedy, reason, remedy, REACHES, COST)


def require_mechanism() -> None:
    """Raise MissingDependencyError if hints cannot be set at creation."""
    found = check_mechanism()
    if not found.usable:
        raise MissingDependencyError(
            f"hints cannot be set at creation: {found.reason}", found.remedy
        )


@contextmanager
def hint_environment(table: Path) -> Iterator[dict[str, str]]:
    """Yield the variables with which programs load the library with this rule table."""
    before = os.environ.get("LD_PRELOAD", "")
    preload = f"{LIBRARY}:{before}" if before else str(LIBRARY)
    with sites_for(table.parent) as sites:
        yield {SWITCH: str(table), "LD_PRELOAD": preload, **sites}


@dataclass(frozen=True)
class Switched:
    """Active hints, for programs whose environment includes `environment`."""

    table: Path
    environment: dict[str, str]

    def journal(self) -> Journal:
        """Read the journals written so far."""
        return read_journals(self.table)


@contextmanager
def switched_on(compiled: Compiled, folder: Path) -> Iterator[Switched]:
    """Write the table below `folder` and switch hints on.

    The files are removed at the end; processes that outlive the command keep their mappings.
    Raises MissingDependencyError, InputError.
    """
    place = _make_private_folder(folder)
    try:
        table = place / "table"
        _write_table(table, compiled.data)
        with _provide_journal(table), hint_environment(table) as environment:
            yield Switched(table, environment)
    finally:
        shutil.rmtree(place, ignore_errors=True)


def _write_table(table: Path, data: bytes) -> None:
    fd = os.open(table, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(fd, "wb") as stream:
            stream.write(data)
    except OSError as error:
        raise InputError(
            f"the rules cannot be written to {table.parent}: {error.strerror}", "Free space there."
        ) from None


@contextmanager
def _provide_journal(table: Path) -> Iterator[None]:
    """Create the journal beside the table, or where this host can share mapped files."""
    with ExitStack() as stack:
        try:
            make_journal(table)
        except OSError:
            place = tempfile.TemporaryDirectory(prefix="tracehint-", dir=safe_folder())
            folder = stack.enter_context(place)
            link_journal(table, Path(folder))
        yield


def _make_private_folder(folder: Path) -> Path:
    """Create a directory that only the caller may use and, as root, no other user can move."""
    own = folder / os.fsdecode(PRIVATE)
    with suppress(OSError):
        own.mkdir(mode=0o700, exist_ok=True)
        if is_own_folder(own) and is_safe(own):
            return Path(tempfile.mkdtemp(prefix="run-", dir=own)).resolve()
    return Path(tempfile.mkdtemp(prefix="tracehint-", dir=safe_folder())).resolve()
