"""What `tracehint run` knows of a workflow: `.tracehint/` in its directory.

`state.json` lists the runs, without secrets; `runs/NUMBER.trace` are the recordings of the last
ones, each with the hints that it had. Others may have put things there: everything must belong to
the caller, and the directory is held open. Recordings that `profile` and `record` left in the
workflow's directory count as runs as well.
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
UNKNOWN_STATUS = -1  # of a run whose recorder did not report how it ended
SLOWER = 1.02  # times: what a run with hints may take longer
NOISE, NOISE_S = 0.05, 2.0  # of the time, and seconds: two runs of the same are that far apart
CHANGED = 1.5  # times: a run that takes so much longer or shorter does other work
OWN_S = 20.0  # of tracehint's own seconds that do not count: on a busy machine they vary by that
_PROOFS = 2  # slower runs with hints until there are no more of them
_ASIDE = "state.json.damaged"
DECISION = "decision.json"  # of the last runs, for the next one
FIRST = "first.json"  # the same by the workflow's graph alone
_LISTED = 1000  # runs
_STORED = 1 << 20  # bytes of state.json
_COMMAND, _LEFT_OUT = 1000, 1 << 17  # characters of a run's command, and of its rules without use
_LOOKED_AT = 100  # recordings beside .tracehint, the newest


@dataclass(frozen=True)
class KnownRun:
    """One run. `hints_digest`: of what its hints ask for; `files_created`: below the data
    roots, where there were hints; `left_out`: rules that these did without, and from then on.

    `idle`: no task ran, as where an engine finds everything there. `placed`: its tasks were started
    on other nodes, where they were not recorded; `unrecognised`: most were not in the
    recorded runs.
    `tasks`: of the engine, 0 where that is unknown. `around`: seconds that tracehint itself took,
    before and after the command. `workflow`: a hash of what distinguishes workflows. `place`: its
    recording, where that is not below .tracehint. `recorded`: whether there was one.
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
        """The workflow, for people."""
        return workflow_name(self.command)

    @property
    def key(self) -> str:
        """What tells runs of different workflows in one directory apart."""
        return self.workflow or workflow_key(self.command)

    @property
    def cost(self) -> float:
        """Seconds of the command, and of tracehint where these are many."""
        return self.seconds + max(self.around - OWN_S, 0.0)

    def make_storable(self) -> KnownRun:
        """The run as it is written down: without secrets, and not longer than it may be."""
        return replace(
            self,
            workflow=self.key,
            command=_stored_command(self.command),
            left_out=_first_words(self.left_out, _LEFT_OUT),
        )

    def is_like(self, other: KnownRun) -> bool:
        """Whether their seconds can be compared; `other`: one with hints, which, not recorded, had
        less to do than a recorded one."""
        how = not other.recorded or (self.collector, self.recorded) == (other.collector, True)
        return how and (self.command, self.tasks) == (other.command, other.tasks)

    @property
    def teaches(self) -> bool:
        """Whether it ended well and did something."""
        return self.status == 0 and not self.idle


def _written_ns(bundle: Path) -> int:
    try:
        return (bundle / MANIFEST_NAME).stat().st_mtime_ns
    except OSError:
        return 0


def _recorded_beside(directory: Path) -> list[KnownRun]:
    """Bundles of the caller in the directory whose command ended well, at most the newest 100."""
    there = [path for path in directory.glob("*.trace") if is_own_folder(path)]
    found = []
    for path in sorted(there, key=_written_ns)[-_LOOKED_AT:]:
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
    """A hash of the workflow that a command line runs."""
    name = workflow_name(command).encode("utf-8", "surrogateescape")
    return hashlib.sha256(name).hexdigest()[:16]


def _stored_command(command: Sequence[str]) -> tuple[str, ...]:
    """A command line without secrets, cut to what is stored."""
    return _shorten_words(redact_words_of([*_first_words(command, 4 * _COMMAND)])[0])


def _first_words(words: Sequence[str], most: int) -> tuple[str, ...]:
    """The words that begin within so many characters."""
    starts = accumulate((len(word) + 1 for word in words), initial=0)
    return tuple(word for word, at in zip(words, starts, strict=False) if at < most)


def _shorten_words(words: Sequence[str]) -> tuple[str, ...]:
    """The words, cut where they are longer than a command is stored."""
    return tuple(word[:_COMMAND] for word in _first_words(words, _COMMAND))


@dataclass(frozen=True)
class Slower:
    """The cost of a run with learned hints, and the usual one without; `by_graph`: the latter had
    the hints of a first run, which the workflow's graph gives alone; `proven`: there is no other
    try."""

    seconds: float
    usual: float
    by_graph: bool
    proven: bool


@dataclass(frozen=True)
class ProjectState:
    """The runs of a workflow, oldest first. `problem`: why those before are not known any more."""

    folder: Path  # .tracehint
    runs: tuple[KnownRun, ...] = ()
    problem: str = ""

    def bundle(self, run: KnownRun) -> Path:
        """Where its recording is, or was."""
        return run.place or self.folder / "runs" / f"{run.number:04}.trace"

    def _inside(self, run: KnownRun) -> Path:
        """The same by the directory that is held open: to remove it."""
        return inside(self.folder) / "runs" / f"{run.number:04}.trace"

    def usable(self, command: tuple[str, ...]) -> list[KnownRun]:
        """Runs of this program that teach and whose recording is there, oldest first."""
        key = workflow_key(command)
        return [
            run
            for run in self.runs
            if run.key == key and run.teaches and not run.placed and self.bundle(run).is_dir()
        ]

    def recordings(self) -> list[KnownRun]:
        """Runs of any workflow here that teach and whose recording is there, oldest first: those
        of `tracehint run`, and the newest bundles beside .tracehint (`profile`, `record`)."""
        own = [
            (run, self.bundle(run))
            for run in self.runs
            if run.teaches and not run.placed and self.bundle(run).is_dir()
        ]
        beside = [(run, run.place) for run in _recorded_beside(self.folder.parent) if run.place]
        found = [(_written_ns(path), n, run) for n, (run, path) in enumerate([*own, *beside])]
        return [run for _, _, run in sorted(found, key=lambda row: row[:2])]

    def learnable(self, command: tuple[str, ...]) -> list[KnownRun]:
        """Those of this program, oldest first; of bundles beside .tracehint the newest ones."""
        key = workflow_key(command)
        runs = [run for run in self.recordings() if run.key == key]
        beside = [run for run in runs if run.place is not None][-KEPT:]
        return [run for run in runs if run.place is None or run in beside]

    def slower(self, command: tuple[str, ...]) -> Slower | None:
        """The last run with hints, where it was slower than those without by more than they differ
        among themselves; only runs of the very same command, as many tasks and the same collector
        are compared. After the first such run and one without hints, which shows whether the
        machine was busy, hints have another try."""
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
        if last not in slow or (len(slow) < _PROOFS and not alike[-1].hinted):
            return None
        proven = len(slow) >= _PROOFS
        return Slower(last.cost, usual, by_graph=bool(others[-1].store), proven=proven)

    def needs_recording(self, command: tuple[str, ...]) -> bool:
        """Whether most tasks of the last run are not in the recorded ones."""
        key = workflow_key(command)
        last = next((run for run in reversed(self.runs) if run.key == key), None)
        return last is not None and last.unrecognised

    def unrecorded_since(self, last: KnownRun) -> list[KnownRun]:
        """Runs of the same after that one, without recordings."""
        later = [run for run in self.runs if run.number > last.number and run.key == last.key]
        return [run for run in later if not run.recorded]

    def changed_since(self, last: KnownRun) -> bool:
        """Whether the last one of these took another time than that one, or created more or fewer
        files."""
        later = self.unrecorded_since(last)
        if not later:
            return False
        if later[-1].hinted and later[-1].files_created != last.files_created:
            return True
        short, long = sorted((later[-1].seconds, last.seconds))
        return long > CHANGED * short + NOISE_S

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
    return _read_runs(_hold_folder(folder))


def _hold_folder(folder: Path, name: Path | None = None) -> HeldFolder:
    try:
        return hold(folder, name)
    except FileNotFoundError:
        raise
    except OSError:
        raise _strange(folder, "it is no directory of yours") from None


def _read_runs(folder: HeldFolder) -> ProjectState:
    try:
        fd = open_plain(folder.inside / "state.json")
    except FileNotFoundError:
        return ProjectState(folder)
    except OSError as error:
        raise _strange(folder, f"state.json {error.strerror or 'cannot be read'}") from None
    with os.fdopen(fd, "rb") as stream:
        text = stream.read(limit("small-bytes") + 1)
    try:
        data = json.loads(text) if len(text) <= limit("small-bytes") else None
        if not isinstance(data, dict) or data.get("schema") != SCHEMA:
            raise ValueError
        return ProjectState(
            folder, tuple(_read_run(raw).make_storable() for raw in data["runs"][-_LISTED:])
        )
    except (ValueError, KeyError, TypeError, RecursionError):
        raise _strange(folder, "state.json is not as tracehint wrote it") from None


def _read_run(raw: Any) -> KnownRun:
    from msgspec import convert

    run = convert(raw, KnownRun)
    if not 0 < run.number < 1 << 31:
        raise ValueError
    return run


def _strange(folder: Path, why: str) -> InputError:
    return InputError(
        f"cannot use {folder}: {why}", "Look at it; `tracehint status --forget` removes it."
    )


@contextmanager
def changing(directory: Path) -> Iterator[ProjectState]:
    """The state, locked against other runs in this directory. Raises InputError.

    One that cannot be read is put aside: the workflow runs all the same, without hints.
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
            f"nothing can be kept in {folder}: {error.strerror}",
            "Start it in a directory that you may write to, or give --output BUNDLE: then this "
            "run is recorded there, and no other one learns from it.",
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
            (folder.inside / "state.json").rename(folder.inside / _ASIDE)
        return ProjectState(folder, problem=f"{error.what}; it is {folder / _ASIDE} now")


def add_run(directory: Path, run: KnownRun) -> ProjectState:
    """Write the run down; recordings beyond the last KEPT of its program go, and of those that
    teach nothing."""
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
    """The last runs, as many as the file takes."""
    runs = runs[-_LISTED:]
    while len(runs) > 1 and len(_text(runs)) > _STORED:
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
    """The state, and the place of the next recording, which is made."""
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
    """`.tracehint` of the directory, which is made where it is not there. Raises InputError."""
    with changing(directory) as state:
        return state.folder


def jobs_folder(directory: Path) -> Path:
    """A new directory for the recordings of a run's jobs. Raises InputError."""
    with changing(directory) as state:
        runs = inside(state.folder) / "runs"
        runs.mkdir(mode=0o700, exist_ok=True)
        return Path(tempfile.mkdtemp(prefix="jobs-", dir=runs)).resolve()


def jobs_folders(directory: Path) -> list[Path]:
    """Those that earlier runs left, because a recording in them had not ended or was damaged."""
    runs = directory / os.fsdecode(PRIVATE) / "runs"
    return sorted(path for path in runs.glob("jobs-*") if is_own_folder(path))


def forget(directory: Path) -> bool:
    """Remove what tracehint knows of the runs; the journal of `apply` stays. False: nothing."""
    folder = directory / os.fsdecode(PRIVATE)
    if not os.path.lexists(folder):
        return False
    held, there = _hold_folder(folder), False
    for name in ("state.json", DECISION, FIRST, _ASIDE, "lock"):
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
    """The data roots of a run that was started in `was`, for one that starts in `here`.

    Those below `was` go along. Others do where they are gone and a directory above both was
    renamed.
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
