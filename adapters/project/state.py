"""The state of `tracehint run` for a workflow: `.tracehint/` in its directory.

`state.json` lists the runs, without secrets; `runs/NUMBER.trace` are the recordings of the last
ones, each with the hints that it used. Files from other users are possible: everything must belong
to the caller, and the directory is held open. Recordings by `profile` and `record` in the
workflow's directory count as runs too.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from itertools import accumulate
from pathlib import Path
from statistics import median
from typing import Any

from tracehint.adapters.paths import PRIVATE
from tracehint.errors import InputError, TracehintError
from tracehint.limits import limit
from tracehint.schemas.commandline.programs import workflow_name
from tracehint.schemas.manifest import MANIFEST_NAME, read_manifest
from tracehint.schemas.plain import HeldFolder, hold, inside, is_own_folder, open_plain, replacing
from tracehint.schemas.redact.commands import redact_words_of

SCHEMA = "tracehint.state/1"
KEPT = 3  # recordings
UNKNOWN_STATUS = -1  # of a run whose recorder did not report an exit status
SLOWER = 1.02  # factor: tolerated slowdown of a run with hints
NOISE, NOISE_S = 0.05, 2.0  # share and seconds: variation between equal runs
CHANGED = 1.5  # factor: beyond this change of time a run does other work
OWN_S = 20.0  # tracehint's own seconds that are ignored: their variation on a busy machine
_MAX_SLOWER_RUNS = 2  # slower runs with hints after which hints are not tried again
_DAMAGED_FILE = "state.json.damaged"
DECISION = "decision.json"  # from the last runs, for the next one
FIRST = "first.json"  # the same, from the workflow's graph alone
_MAX_RUNS = 1000  # runs
_MAX_STATE_BYTES = 1 << 20  # bytes of state.json
_MAX_COMMAND, _MAX_LEFT_OUT = 1000, 1 << 17  # stored characters of a run's command, of left_out
_MAX_BUNDLES = 100  # newest recordings next to .tracehint


@dataclass(frozen=True)
class KnownRun:
    """One run. `hints_digest`: of its hints; `files_created`: below the data roots, if it had
    hints; `left_out`: rules that its hints omitted, and that later hints omit.

    `idle`: no task ran, for example because all files were up to date. `placed`: its tasks were
    started on other nodes, without recording; `unrecognised`: most were not in the recorded runs.
    `tasks`: of the engine, 0 if unknown. `around`: seconds that tracehint itself took, before and
    after the command. `workflow`: a hash that distinguishes workflows. `place`: its recording, if
    not below .tracehint. `recorded`: whether it has a recording.
    """

    number: int
    command: tuple[str, ...]
    status: int
    seconds: float
    hinted: bool
    store: str = ""
    in_force: int = 0
    wanted: int = 0
    hints_digest: str = ""
    files_created: int = 0
    left_out: tuple[str, ...] = ()
    idle: bool = False
    placed: bool = False
    unrecognised: bool = False
    tasks: int = 0
    collector: str = ""
    around: float = 0.0
    workflow: str = ""
    recorded: bool = True
    place: Path | None = None

    @property
    def plain(self) -> bool:
        """Whether it had no hints."""
        return not (self.hinted or self.store)

    @property
    def by_graph(self) -> bool:
        """Whether its hints were those of a first run."""
        return bool(self.store) and not self.hinted

    @property
    def program(self) -> str:
        """Name of the workflow, for users."""
        return workflow_name(self.command)

    @property
    def key(self) -> str:
        """Key that distinguishes runs of different workflows in one directory."""
        return self.workflow or workflow_key(self.command)

    @property
    def cost(self) -> float:
        """Seconds of the command, plus those of tracehint above OWN_S."""
        return self.seconds + max(self.around - OWN_S, 0.0)

    def make_storable(self) -> KnownRun:
        """Return the run for storage: without secrets, and limited in length."""
        return replace(
            self,
            workflow=self.key,
            command=_stored_command(self.command),
            left_out=_first_words(self.left_out, _MAX_LEFT_OUT),
        )

    def is_like(self, other: KnownRun) -> bool:
        """Whether their times are comparable; `other` has hints and, if not recorded, less to do
        than a recorded run."""
        how = not other.recorded or (self.collector, self.recorded) == (other.collector, True)
        return how and (self.command, self.tasks) == (other.command, other.tasks)

    @property
    def teaches(self) -> bool:
        """Whether it succeeded and ran tasks."""
        return self.status == 0 and not self.idle


def _written_ns(bundle: Path) -> int:
    try:
        return (bundle / MANIFEST_NAME).stat().st_mtime_ns
    except OSError:
        return 0


def _recorded_beside(directory: Path) -> list[KnownRun]:
    """Return the caller's bundles in the directory whose command succeeded, the newest 100."""
    there = [path for path in directory.glob("*.trace") if is_own_folder(path)]
    found = []
    for path in sorted(there, key=_written_ns)[-_MAX_BUNDLES:]:
        try:
            manifest = read_manifest(path)
        except TracehintError:
            continue
        if manifest.complete and manifest.exit_status == 0 and manifest.command:
            seconds = max((manifest.ended_ns or 0) - manifest.started_ns, 0) / 1e9
            command = tuple(manifest.command)
            found.append(KnownRun(0, command, 0, seconds, hinted=False, place=path))
    return found


def workflow_key(command: Sequence[str]) -> str:
    """Return a hash of the workflow that a command line runs."""
    name = workflow_name(command).encode("utf-8", "surrogateescape")
    return hashlib.sha256(name).hexdigest()[:16]


def _stored_command(command: Sequence[str]) -> tuple[str, ...]:
    """Return a command line without secrets, truncated for storage."""
    return _shorten_words(redact_words_of([*_first_words(command, 4 * _MAX_COMMAND)])[0])


def _first_words(words: Sequence[str], most: int) -> tuple[str, ...]:
    """Return the words that begin within the first `most` characters."""
    starts = accumulate((len(word) + 1 for word in words), initial=0)
    return tuple(word for word, at in zip(words, starts, strict=False) if at < most)


def _shorten_words(words: Sequence[str]) -> tuple[str, ...]:
    """Return the words, truncated to the stored length of a command."""
    return tuple(word[:_MAX_COMMAND] for word in _first_words(words, _MAX_COMMAND))


@dataclass(frozen=True)
class Slower:
    """The cost of a run with learned hints, and the usual one without; `by_graph`: the latter used
    the hints of a first run, from the workflow's graph alone; `proven`: hints are not tried
    again."""

    seconds: float
    usual: float
    by_graph: bool
    proven: bool


@dataclass(frozen=True)
class ProjectState:
    """The runs of a workflow, oldest first. `problem`: why earlier runs are unavailable."""

    folder: Path  # .tracehint
    runs: tuple[KnownRun, ...] = ()
    problem: str = ""

    def bundle(self, run: KnownRun) -> Path:
        """Return the path of a run's recording, which may be deleted."""
        return run.place or self.folder / "runs" / f"{run.number:04}.trace"

    def _inside(self, run: KnownRun) -> Path:
        """Return the same path below the held directory, for deletion."""
        return inside(self.folder) / "runs" / f"{run.number:04}.trace"

    def usable(self, command: tuple[str, ...]) -> list[KnownRun]:
        """Return this program's successful runs with a recording, oldest first."""
        key = workflow_key(command)
        return [
            run
            for run in self.runs
            if run.key == key and run.teaches and not run.placed and self.bundle(run).is_dir()
        ]

    def recordings(self) -> list[KnownRun]:
        """Return successful runs of any workflow here with a recording, oldest first: those of
        `tracehint run`, and the newest bundles next to .tracehint (`profile`, `record`)."""
        own = [
            (run, self.bundle(run))
            for run in self.runs
            if run.teaches and not run.placed and self.bundle(run).is_dir()
        ]
        beside = [(run, run.place) for run in _recorded_beside(self.folder.parent) if run.place]
        found = [(_written_ns(path), n, run) for n, (run, path) in enumerate([*own, *beside])]
        return [run for _, _, run in sorted(found, key=lambda row: row[:2])]

    def learnable(self, command: tuple[str, ...]) -> list[KnownRun]:
        """Return those of this program, oldest first; at most KEPT bundles next to .tracehint."""
        key = workflow_key(command)
        runs = [run for run in self.recordings() if run.key == key]
        beside = [run for run in runs if run.place is not None][-KEPT:]
        return [run for run in runs if run.place is None or run in beside]

    def slower(self, command: tuple[str, ...]) -> Slower | None:
        """Return the last run with hints if it was slower than runs without by more than their
        variation. Only runs of the same command, number of tasks and collector are compared. After
        the first slower run and one without hints, which shows whether the machine was busy, hints
        are tried again."""
        key = workflow_key(command)
        runs = [run for run in self.runs if run.key == key and run.teaches]
        last = next((run for run in reversed(runs) if run.hinted), None)
        if last is None:
            return None
        alike = [r for r in runs if r.is_like(last)]
        others = [run for run in alike if not run.hinted]
        if not others:
            return None
        plain = [run.cost for run in others]
        usual = median(plain)
        noise = max(NOISE_S, NOISE * usual, max(plain) - min(plain))
        slow = [run for run in alike if run.hinted and run.cost > SLOWER * usual + noise]
        if last not in slow or (len(slow) < _MAX_SLOWER_RUNS and not alike[-1].hinted):
            return None
        proven = len(slow) >= _MAX_SLOWER_RUNS
        return Slower(last.cost, usual, by_graph=bool(others[-1].store), proven=proven)

    def needs_recording(self, command: tuple[str, ...]) -> bool:
        """Whether most tasks of the last run are not in the recorded runs."""
        key = workflow_key(command)
        last = next((run for run in reversed(self.runs) if run.key == key), None)
        return last is not None and last.unrecognised

    def unrecorded_since(self, last: KnownRun) -> list[KnownRun]:
        """Return later runs of the same workflow without recordings."""
        later = [run for run in self.runs if run.number > last.number and run.key == last.key]
        return [run for run in later if not run.recorded]

    def changed_since(self, last: KnownRun) -> bool:
        """Whether the last of these runs differs from that run in time or number of created
        files."""
        later = self.unrecorded_since(last)
        if not later:
            return False
        if later[-1].hinted and later[-1].files_created != last.files_created:
            return True
        short, long = sorted((later[-1].seconds, last.seconds))
        return long > CHANGED * short + NOISE_S

    def cut_off(self) -> list[Path]:
        """Return recordings of unfinished runs: killed, or running now."""
        known = {self.bundle(run) for run in self.runs}
        return sorted(p for p in (self.folder / "runs").glob("*.trace") if p not in known)

    @property
    def next_number(self) -> int:
        """Number of the next run."""
        return max((run.number for run in self.runs), default=0) + 1


def read_state(directory: Path) -> ProjectState:
    """Read the state of a workflow; empty if there is none. Raises InputError."""
    folder = directory / os.fsdecode(PRIVATE)
    if not os.path.lexists(folder):
        return ProjectState(folder)
    return _read_runs(_hold_folder(folder))


def _hold_folder(folder: Path, name: Path | None = None) -> HeldFolder:
    try:
        return hold(folder, name)
    except FileNotFoundError:
        raise
    except OSError:
        raise _error(folder, "it is not a directory of your own") from None


def _read_runs(folder: HeldFolder) -> ProjectState:
    try:
        fd = open_plain(folder.inside / "state.json")
    except FileNotFoundError:
        return ProjectState(folder)
    except OSError as error:
        raise _error(folder, f"state.json {error.strerror or 'cannot be read'}") from None
    with os.fdopen(fd, "rb") as stream:
        text = stream.read(limit("small-bytes") + 1)
    try:
        data = json.loads(text) if len(text) <= limit("small-bytes") else None
        if not isinstance(data, dict) or data.get("schema") != SCHEMA:
            raise ValueError
        return ProjectState(
            folder, tuple(_read_run(raw).make_storable() for raw in data["runs"][-_MAX_RUNS:])
        )
    except (ValueError, KeyError, TypeError, RecursionError):
        raise _error(folder, "state.json is not valid") from None


def _read_run(raw: Any) -> KnownRun:
    from msgspec import convert

    run = convert(raw, KnownRun)
    if not 0 < run.number < 1 << 31:
        raise ValueError
    return run


def _error(folder: Path, why: str) -> InputError:
    return InputError(
        f"cannot use {folder}: {why}", "Check it; `tracehint status --forget` removes it."
    )


@contextmanager
def changing(directory: Path) -> Iterator[ProjectState]:
    """Lock the state against other runs in this directory, and yield it. Raises InputError.

    An unreadable state is put aside: the workflow runs anyway, without hints.
    """
    given = directory / os.fsdecode(PRIVATE)
    folder = given.absolute()
    try:
        with suppress(FileExistsError):
            given.mkdir(mode=0o700)
        held = _hold_folder(given, folder)
        fd = open_plain(held.inside / "lock", os.O_RDWR | os.O_CREAT)
    except OSError as error:
        raise InputError(
            f"nothing can be stored in {folder}: {error.strerror}",
            "Start it in a directory that you may write to, or give --output BUNDLE: this run "
            "is then recorded there, and later runs do not use it.",
        ) from None
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield _read_or_put_aside(held)
    finally:
        os.close(fd)


def _read_or_put_aside(folder: HeldFolder) -> ProjectState:
    try:
        return _read_runs(folder)
    except InputError as error:
        with suppress(OSError):
            (folder.inside / "state.json").rename(folder.inside / _DAMAGED_FILE)
        return ProjectState(folder, problem=f"{error.what}; moved to {folder / _DAMAGED_FILE}")


def add_run(directory: Path, run: KnownRun) -> ProjectState:
    """Store the run. Keep the last KEPT recordings of its program (and older ones without hints, if
    all of these have hints), of unsuccessful runs and of placed runs."""
    with changing(directory) as state:
        before = state.runs
        state = replace(state, runs=_drop_oldest_runs((*before, run.make_storable())))
        _write(state)
        dropped = before[: len(before) + 1 - len(state.runs)]
        there = [r for r in state.runs if (not r.teaches or r.placed) and state.bundle(r).is_dir()]
        useless = [r for r in there if not r.teaches][:-KEPT]
        useless += [r for r in there if r.placed][:-KEPT]
        for old in state.usable(run.command)[:-KEPT]:
            if old.hinted or any(not r.hinted for r in state.usable(run.command)[-KEPT:]):
                useless.append(old)
        for old in (*dropped, *useless):
            shutil.rmtree(state._inside(old), ignore_errors=True)
    return state


def _text(runs: Sequence[KnownRun]) -> str:
    rows = [{k: v for k, v in asdict(run).items() if k != "place"} for run in runs]
    return json.dumps({"schema": SCHEMA, "runs": rows}, indent=1) + "\n"


def _drop_oldest_runs(runs: tuple[KnownRun, ...]) -> tuple[KnownRun, ...]:
    """Return the last runs that fit into the file."""
    runs = runs[-_MAX_RUNS:]
    while len(runs) > 1 and len(_text(runs)) > _MAX_STATE_BYTES:
        runs = runs[len(runs) // 10 + 1 :]
    return runs


def _write(state: ProjectState) -> None:
    text = _text(state.runs)
    with (
        replacing(inside(state.folder) / "state.json", 0o600) as fd,
        os.fdopen(fd, "w", closefd=False) as stream,
    ):
        stream.write(text)
        stream.flush()
        os.fsync(fd)


def claim(directory: Path) -> tuple[ProjectState, HeldFolder]:
    """Return the state, and the next recording's directory, which is created."""
    with changing(directory) as state:
        number = state.next_number
        runs = inside(state.folder) / "runs"
        runs.mkdir(mode=0o700, exist_ok=True)
        while True:
            name = f"{number:04}.trace"
            try:
                (runs / name).mkdir(mode=0o700)
                return state, hold(runs / name, state.folder.absolute() / "runs" / name)
            except FileExistsError:
                number += 1


def own_folder(directory: Path) -> Path:
    """Return `.tracehint` of the directory, created if missing. Raises InputError."""
    with changing(directory) as state:
        return state.folder


def jobs_folder(directory: Path) -> Path:
    """Create a directory for the recordings of a run's jobs. Raises InputError."""
    with changing(directory) as state:
        runs = inside(state.folder) / "runs"
        runs.mkdir(mode=0o700, exist_ok=True)
        return Path(tempfile.mkdtemp(prefix="jobs-", dir=runs)).resolve()


def jobs_folders(directory: Path) -> list[Path]:
    """Return such directories of earlier runs, with unfinished or damaged recordings."""
    runs = directory / os.fsdecode(PRIVATE) / "runs"
    return sorted(path for path in runs.glob("jobs-*") if is_own_folder(path))


def forget(directory: Path) -> bool:
    """Delete the state of the runs but not the journal of `apply`. Return False if there was
    none."""
    folder = directory / os.fsdecode(PRIVATE)
    if not os.path.lexists(folder):
        return False
    held, there = _hold_folder(folder), False
    for name in ("state.json", DECISION, FIRST, _DAMAGED_FILE, "lock"):
        with suppress(FileNotFoundError):
            (held.inside / name).unlink()
            there = True
    runs = held.inside / "runs"
    if runs.is_symlink():
        runs.unlink()
    elif runs.is_dir():
        shutil.rmtree(runs)
        there = True
    with suppress(OSError):
        folder.rmdir()
    return there


def roots_now(roots: Sequence[str], was: Path, here: Path) -> tuple[str, ...]:
    """Return the data roots of a run that started in `was`, for one that starts in `here`.

    Roots below `was` are moved. Others are moved if they no longer exist and a directory above both
    was renamed.
    """
    if was == here:
        return tuple(roots)
    old, new = list(was.parts), list(here.parts)
    while old and new and old[-1] == new[-1]:
        old.pop()
        new.pop()
    moves = [(was, here), *([(Path(*old), Path(*new))] if len(old) > 1 and new else [])]
    return tuple(str(_move_root(Path(root), moves)) for root in roots)


def _move_root(root: Path, moves: Sequence[tuple[Path, Path]]) -> Path:
    for old, new in moves:
        there = new / root.relative_to(old) if root.is_relative_to(old) else root
        if there != root and (root.is_relative_to(moves[0][0]) or not root.is_dir()):
            return there
    return root
