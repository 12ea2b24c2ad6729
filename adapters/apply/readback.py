"""Reading settings back, and the outcome of apply and verify."""

from __future__ import annotations

import errno
import os
import stat
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tracehint.adapters.apply.root_files import Root
from tracehint.adapters.plan import Target
from tracehint.adapters.stores.base import Gap, Judge, Setting, Store, merge_gaps
from tracehint.schemas.arrow import skip_pandas

if TYPE_CHECKING:
    from tracehint.adapters.stores.base import Store
    from tracehint.hintgen.hints.model import HintFile


_REASONS = {
    errno.ELOOP: "the path contains a symbolic link",
    errno.EXDEV: "it leads out of the directory",
}


@dataclass
class Outcome:
    """Counts of settings, and errors by path. `lines`: actions of a dry run."""

    changed: int = 0
    unchanged: int = 0
    created: int = 0
    absent: int = 0  # targets that do not exist (yet)
    failed: list[tuple[bytes, str]] = field(default_factory=list)
    gaps: list[Gap] = field(default_factory=list)
    lines: list[tuple[bytes, str]] = field(default_factory=list)

    def fail(self, path: bytes, error: OSError, doing: str = "") -> None:
        """Record an error at a path; `doing`: the operation that failed."""
        why = _REASONS.get(error.errno or 0, error.strerror or "error")
        self.failed.append((path, f"{doing}: {why}" if doing else why))

    def gap_counts(self) -> Mapping[Gap, int]:
        """Hints that the store cannot express, with the number of targets."""
        return merge_gaps(self.gaps)

    def open(self, root: Root, target: Target) -> int | None:
        """Open the target; None, with a recorded error, if it is unusable.

        Raises FileNotFoundError.
        """
        try:
            fd = root.open(target.path)
        except FileNotFoundError:
            raise
        except OSError as error:
            self.fail(target.path, error)
            return None
        problem = _find_problem(fd, target)
        if problem:
            os.close(fd)
            self.failed.append((target.path, problem))
            return None
        return fd


def _find_problem(fd: int, target: Target) -> str:
    info = os.fstat(fd)
    if stat.S_ISDIR(info.st_mode) != (target.kind == "directory"):
        return f"it is not a {target.kind}"
    foreign = stat.S_ISREG(info.st_mode) and info.st_nlink > 1 and os.geteuid() == 0
    return "refused as root: the file has several hard links" if foreign else ""


@dataclass(frozen=True)
class Reading:
    """One setting as the store reports it. `state`: ok, differs, missing."""

    path: bytes
    setting: Setting
    got: bytes | None
    state: str


def verify(
    root: Root, store: Store, targets: Iterable[Target], outcome: Outcome
) -> Iterator[Reading]:
    """Read every setting back; missing targets are counted in `outcome.absent`."""
    fits = store.fits if isinstance(store, Judge) else _equals_setting
    for target in targets:
        settings, gaps = store.translate(target.hints, target.kind)
        outcome.gaps += gaps
        if not settings:
            continue
        try:
            fd = outcome.open(root, target)
        except FileNotFoundError:
            outcome.absent += 1
            continue
        if fd is None:
            continue
        try:
            for setting in settings:
                try:
                    got = store.read(fd, setting.key)
                except OSError as error:
                    outcome.fail(target.path, error)
                    continue
                state = "ok" if fits(setting, got) else "missing" if got is None else "differs"
                yield Reading(target.path, setting, got, state)
        finally:
            os.close(fd)


def _equals_setting(setting: Setting, got: bytes | None) -> bool:
    return got == setting.value


Values = dict[tuple[bytes, str], set[bytes]]  # path below the directory, key -> values
ANALYSIS_FILE = "analysis.json"  # of the run that the hints were learned from; written by `profile`


def with_others(readings: list[Reading], others: Values) -> list[Reading]:
    """Return the readings; those that match one of the `others` become ok."""
    return [
        replace(reading, state="ok")
        if reading.state == "differs"
        and reading.got in others.get((reading.path, reading.setting.key), ())
        else reading
        for reading in readings
    ]


def other_values(
    path: Path,
    hints: HintFile,
    directory: Path,
    store: Store,
    run: Path | None,
    which: Mapping[str, Any],
) -> Values:
    """Return values by the analysis beside the hint file, if no run is named, and set by `run`."""
    skip_pandas()
    values: Values = defaultdict(set)
    analysis = path.parent / ANALYSIS_FILE
    if analysis.is_file() and not any(which[name] for name in ("like", "names", "workflow")):
        _add_resolved_values(hints, analysis, store, which["nodes"], values)
    if run is not None:
        _add_run_settings(run, directory, values)
    return values


def _add_resolved_values(
    hints: HintFile, like: Path, store: Store, nodes: int | None, values: Values
) -> None:
    from tracehint.adapters.paths import Paths, run_paths
    from tracehint.adapters.plan import build_plan

    run = run_paths(like)
    paths = Paths(files=(), declared=run.files, known=run.known)
    for target in build_plan(hints, paths, nodes=nodes).targets:
        for setting in store.translate(target.hints, target.kind)[0]:
            values[target.path, setting.key].add(setting.value)


def _add_run_settings(run: Path, directory: Path, values: Values) -> None:
    """Add the values that `tracehint run` set, by the last name of each file."""
    from tracehint.schemas.store import read_bundle

    below = os.fsencode(directory.resolve()).rstrip(b"/") + b"/"
    for row in read_bundle(run, without=("extents",)).tables["settings"].to_pylist():
        if row["path"].startswith(below) and row["state"] in ("set", "lost"):
            values[row["path"][len(below) :], row["key"]].add(row["value"])
