"""What `tracehint run` knows of a workflow: `.tracehint/` in its directory.

`state.json` lists the runs; `runs/NUMBER.trace` are the recordings of the last ones, each with the
hints that it had. Others may have put things there: everything must belong to the caller.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from tracehint.adapters.paths import PRIVATE
from tracehint.analyzer.tasks.command import workflow_name
from tracehint.errors import InputError
from tracehint.limits import limit
from tracehint.schemas.plain import is_own_folder, open_plain, replacing

SCHEMA = "tracehint.state/1"
KEPT = 3  # recordings
_LISTED = 1000  # runs
_FIELDS: dict[str, type | tuple[type, ...]] = {
    "number": int, "command": list, "status": int, "seconds": (int, float), "hinted": bool,
    "store": str, "in_force": int, "wanted": int, "left_out": list,
}  # fmt: skip  # a table
_LATER: dict[str, type] = {"idle": bool}  # not in the states of older versions


@dataclass(frozen=True)
class KnownRun:
    """One run. `left_out`: rules that its hints did without, and from then on.

    `idle`: no task ran, as where an engine finds everything there.
    """

    number: int
    command: tuple[str, ...]
    status: int
    seconds: float
    hinted: bool
    store: str = ""
    in_force: int = 0
    wanted: int = 0
    left_out: tuple[str, ...] = ()
    idle: bool = False

    @property
    def program(self) -> str:
        """What tells runs of different workflows in one directory apart."""
        return workflow_name(self.command)

    @property
    def teaches(self) -> bool:
        """Whether it ended well and did something."""
        return not self.status and not self.idle


@dataclass(frozen=True)
class ProjectState:
    """The runs of a workflow, oldest first."""

    folder: Path  # .tracehint
    runs: tuple[KnownRun, ...] = ()

    def bundle(self, run: KnownRun) -> Path:
        """Where its recording is, or was."""
        return self.folder / "runs" / f"{run.number:04}.trace"

    def usable(self, command: tuple[str, ...]) -> list[KnownRun]:
        """Runs of this program that teach and whose recording is there, oldest first."""
        program = workflow_name(command)
        return [
            run
            for run in self.runs
            if run.program == program and run.teaches and self.bundle(run).is_dir()
        ]

    def cut_off(self) -> list[Path]:
        """Recordings of runs that did not come to their end: killed, or running now."""
        known = {self.bundle(run) for run in self.runs}
        return sorted(p for p in (self.folder / "runs").glob("*.trace") if p not in known)

    @property
    def next_number(self) -> int:
        """Of the run that comes."""
        return max((run.number for run in self.runs), default=0) + 1


def read_state(directory: Path) -> ProjectState:
    """The state of a workflow; empty where there is none. Raises InputError."""
    folder = directory / os.fsdecode(PRIVATE)
    if not os.path.lexists(folder):
        return ProjectState(folder)
    if not is_own_folder(folder):
        raise _strange(folder, "it is no directory of yours")
    try:
        fd = open_plain(folder / "state.json")
    except FileNotFoundError:
        return ProjectState(folder)
    except OSError as error:
        raise _strange(folder, error.strerror or "error") from None
    with os.fdopen(fd, "rb") as stream:
        text = stream.read(limit("small-bytes") + 1)
    try:
        data = json.loads(text) if len(text) <= limit("small-bytes") else None
        if not isinstance(data, dict) or data.get("schema") != SCHEMA:
            raise ValueError
        return ProjectState(folder, tuple(_run(raw) for raw in data["runs"][-_LISTED:]))
    except (ValueError, KeyError, TypeError, RecursionError):
        raise _strange(folder, "state.json is not as tracehint wrote it") from None


def _run(raw: Any) -> KnownRun:
    if not isinstance(raw, dict) or set(raw) - set(_LATER) != set(_FIELDS):
        raise ValueError
    kinds = {**_FIELDS, **_LATER}
    if not all(isinstance(value, kinds[name]) for name, value in raw.items()):
        raise ValueError
    lists = {name: tuple(raw[name]) for name in ("command", "left_out")}
    if not all(isinstance(text, str) for texts in lists.values() for text in texts):
        raise ValueError
    if not 0 < raw["number"] < 1 << 31:
        raise ValueError
    return replace(KnownRun(**raw), command=lists["command"], left_out=lists["left_out"])


def _strange(folder: Path, why: str) -> InputError:
    return InputError(
        f"cannot use {folder}: {why}", "Look at it; `tracehint status --forget` removes it."
    )


@contextmanager
def changing(directory: Path) -> Iterator[ProjectState]:
    """The state, locked against other runs in this directory. Raises InputError."""
    folder = directory / os.fsdecode(PRIVATE)
    try:
        with suppress(FileExistsError):
            folder.mkdir(mode=0o700)
        if not is_own_folder(folder):
            raise _strange(folder, "it is no directory of yours")
        fd = open_plain(folder / "lock", os.O_RDWR | os.O_CREAT)
    except OSError as error:
        raise InputError(
            f"nothing can be kept in {folder}: {error.strerror}",
            "Start it in a directory that you may write to, or give --output BUNDLE: then this "
            "run is recorded there, and no other one learns from it.",
        ) from None
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield read_state(directory)
    finally:
        os.close(fd)


def add_run(directory: Path, run: KnownRun) -> ProjectState:
    """Write the run down; recordings beyond the last KEPT of its program go, and of those that
    teach nothing."""
    with changing(directory) as state:
        state = replace(state, runs=(*state.runs, run)[-_LISTED:])
        _write(state)
        for old in state.usable(run.command)[:-KEPT]:
            if old.hinted or any(not r.hinted for r in state.usable(run.command)[-KEPT:]):
                shutil.rmtree(state.bundle(old), ignore_errors=True)
        spoiled = [r for r in state.runs if not r.teaches and state.bundle(r).is_dir()]
        for old in spoiled[:-KEPT]:
            shutil.rmtree(state.bundle(old), ignore_errors=True)
    return state


def _write(state: ProjectState) -> None:
    data = {"schema": SCHEMA, "runs": [asdict(run) for run in state.runs]}
    text = json.dumps(data, indent=1) + "\n"
    with replacing(state.folder / "state.json", 0o600) as fd:
        os.write(fd, text.encode())


def claim(directory: Path) -> tuple[ProjectState, Path]:
    """The state, and the place of the next recording, which is made."""
    with changing(directory) as state:
        number = state.next_number
        (state.folder / "runs").mkdir(mode=0o700, exist_ok=True)
        while True:
            place = state.folder / "runs" / f"{number:04}.trace"
            try:
                place.mkdir(mode=0o700)
                return state, place
            except FileExistsError:
                number += 1


def jobs_folder(directory: Path) -> Path:
    """A new directory for the recordings of a run's jobs. Raises InputError."""
    with changing(directory) as state:
        runs = state.folder / "runs"
        runs.mkdir(mode=0o700, exist_ok=True)
        return Path(tempfile.mkdtemp(prefix="jobs-", dir=runs)).resolve()


def forget(directory: Path) -> bool:
    """Remove what tracehint knows of the runs; the journal of `apply` stays. False: nothing."""
    folder = directory / os.fsdecode(PRIVATE)
    if not os.path.lexists(folder):
        return False
    if not is_own_folder(folder):
        raise _strange(folder, "it is no directory of yours")
    there = False
    for name in ("state.json", "lock"):
        with suppress(FileNotFoundError):
            (folder / name).unlink()
            there = True
    runs = folder / "runs"
    if runs.is_symlink():
        runs.unlink()
    elif runs.is_dir():
        shutil.rmtree(runs)
        there = True
    with suppress(OSError):
        folder.rmdir()
    return there
