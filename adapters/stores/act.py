"""Set hints below a root, and read them back. Everything happens on open descriptors.

Work goes in batches: open and read the old values, write them to the manifest, wait until it is on
disk, then change. So 10,000 hints cost about 40 waits, and a crash loses nothing.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from tracehint.adapters.plan import Target
from tracehint.adapters.stores.base import Gap, Judge, Setting, Store, merge_gaps
from tracehint.adapters.stores.beneath import Root
from tracehint.adapters.stores.journal import Entry, Journal

BATCH = 256  # open descriptors at a time; the usual limit is 1024


@dataclass
class Outcome:
    """Counts of settings, and what went wrong, per path. `lines` is for a dry run."""

    changed: int = 0
    unchanged: int = 0
    created: int = 0
    absent: int = 0  # targets that are not there (yet)
    failed: list[tuple[bytes, str]] = field(default_factory=list)
    gaps: list[Gap] = field(default_factory=list)
    lines: list[tuple[bytes, str]] = field(default_factory=list)

    def gap_counts(self) -> Mapping[Gap, int]:
        """What the store cannot say, with the number of targets."""
        return merge_gaps(self.gaps)


@dataclass
class _Open:
    target: Target
    settings: list[Setting]
    fd: int
    to_do: list[Setting] = field(default_factory=list)


def check_keys(store: Store, targets: Iterable[Target], *, allow_trusted: bool) -> None:
    """Refuse the whole job when any setting has a name that must not be written."""
    keys = {s.key for t in targets for s in store.translate(t.hints, t.kind)[0]}
    for key in sorted(keys):
        store.check_key(key, allow_trusted=allow_trusted)


def apply(root: Root, store: Store, targets: list[Target], journal: Journal | None) -> Outcome:
    """Set the hints; `journal` None is a dry run. Directories must come first in `targets`."""
    outcome = Outcome()
    for start in range(0, len(targets), BATCH):
        batch = _prepare(root, store, targets[start : start + BATCH], journal, outcome)
        try:
            for one in batch:
                _compare(store, one, journal, outcome)
            if journal is not None:
                journal.sync()
                for one in batch:
                    _write(store, one, outcome)
        finally:
            for one in batch:
                os.close(one.fd)
    return outcome


def _prepare(
    root: Root, store: Store, targets: list[Target], journal: Journal | None, outcome: Outcome
) -> list[_Open]:
    """Open what is there; make what is to be made, after the manifest says so."""
    missing: list[tuple[Target, list[Setting]]] = []
    batch: list[_Open] = []
    for target in targets:
        settings, gaps = store.translate(target.hints, target.kind)
        outcome.gaps += gaps
        if not settings:
            continue
        fd = _open(root, target, outcome)
        if fd is not None:
            batch.append(_Open(target, settings, fd))
        elif target.create and not (outcome.failed and outcome.failed[-1][0] == target.path):
            missing.append((target, settings))
    if not missing:
        return batch
    if journal is None:
        for target, settings in missing:
            outcome.created += 1
            outcome.changed += len(settings)
            outcome.lines.append((target.path, "create"))
            outcome.lines += [(target.path, f"set {s.key} ({s.hint})") for s in settings]
        return batch
    for path in _missing_folders(root, [target for target, _ in missing]):
        journal.add(Entry(op="mkdir", path=path))
    for target, _ in missing:
        if target.kind == "file":
            journal.add(Entry(op="create", path=target.path))
    journal.sync()
    return batch + _make(root, missing, journal, outcome)


def _missing_folders(root: Root, targets: list[Target]) -> list[bytes]:
    """Directories that must be made for the targets, outermost first."""
    found: dict[bytes, None] = {}
    for target in targets:
        parts = target.path.split(b"/")
        for depth in range(1, len(parts) + (target.kind == "directory")):
            path = b"/".join(parts[:depth])
            if path not in found and not _is_there(root, path):
                found[path] = None
    return list(found)


def _is_there(root: Root, path: bytes) -> bool:
    try:
        os.close(root.open(path))
    except FileNotFoundError:
        return False
    except OSError:
        return True
    return True


def _make(
    root: Root, missing: list[tuple[Target, list[Setting]]], journal: Journal, outcome: Outcome
) -> list[_Open]:
    for path in _missing_folders(root, [target for target, _ in missing]):
        try:
            journal.add(Entry(op="created", path=path, ino=_make_folder(root, path)))
        except OSError as error:
            outcome.failed.append((path, _why(error)))
    made = []
    for target, settings in missing:
        if target.kind == "file":
            _make_file(root, target, journal, outcome)
        fd = _open(root, target, outcome)
        if fd is not None:
            made.append(_Open(target, settings, fd))
    return made


def _make_file(root: Root, target: Target, journal: Journal, outcome: Outcome) -> None:
    """Make an empty file; one that somebody else made meanwhile is not counted as ours."""
    try:
        fd = root.open(target.path, create=True)
    except FileExistsError:
        return
    except OSError as error:
        outcome.failed.append((target.path, _why(error)))
        return
    try:
        _keep_owner(root, fd, target.path)
        journal.add(Entry(op="created", path=target.path, ino=os.fstat(fd).st_ino))
        outcome.created += 1
    finally:
        os.close(fd)


def _make_folder(root: Root, path: bytes) -> int:
    """Make one directory and return its inode number."""
    with root.parent(path) as (folder, name):
        os.mkdir(name, dir_fd=folder)
    fd = root.open(path)
    try:
        _keep_owner(root, fd, path)
        return os.fstat(fd).st_ino
    finally:
        os.close(fd)


def _open(root: Root, target: Target, outcome: Outcome) -> int | None:
    """A descriptor of the target; None (and counted) where there is none."""
    try:
        fd = root.open(target.path)
    except FileNotFoundError:
        if not target.create:
            outcome.absent += 1
        return None
    except OSError as error:
        outcome.failed.append((target.path, _why(error)))
        return None
    problem = _wrong_object(fd, target)
    if problem:
        os.close(fd)
        outcome.failed.append((target.path, problem))
        return None
    return fd


def _keep_owner(root: Root, fd: int, path: bytes) -> None:
    """What root makes belongs to the owner of the directory that it lies in."""
    if os.geteuid() == 0:
        with root.parent(path) as (folder, _):
            info = os.fstat(folder)
        os.fchown(fd, info.st_uid, info.st_gid)


def _wrong_object(fd: int, target: Target) -> str:
    info = os.fstat(fd)
    if stat.S_ISDIR(info.st_mode) != (target.kind == "directory"):
        return f"it is not a {target.kind}"
    foreign = stat.S_ISREG(info.st_mode) and info.st_nlink > 1 and os.geteuid() == 0
    return "refused as root: the file has several hard links" if foreign else ""


def _compare(store: Store, one: _Open, journal: Journal | None, outcome: Outcome) -> None:
    for setting in one.settings:
        try:
            old = store.read(one.fd, setting.key)
        except OSError as error:
            outcome.failed.append((one.target.path, f"cannot read {setting.key}: {_why(error)}"))
            continue
        if old == setting.value:
            outcome.unchanged += 1
            continue
        one.to_do.append(setting)
        if journal is None:
            outcome.changed += 1
            outcome.lines.append((one.target.path, f"set {setting.key} ({setting.hint})"))
        else:
            journal.add(
                Entry(op="set", path=one.target.path, key=setting.key, old=old, new=setting.value)
            )


def _write(store: Store, one: _Open, outcome: Outcome) -> None:
    for setting in one.to_do:
        try:
            store.write(one.fd, setting.key, setting.value)
            outcome.changed += 1
        except OSError as error:
            outcome.failed.append((one.target.path, f"cannot set {setting.key}: {_why(error)}"))


def _why(error: OSError) -> str:
    known = {"ELOOP": "a symbolic link is on the way", "EXDEV": "it leads out of the directory"}
    import errno

    name = errno.errorcode.get(error.errno or 0, "")
    return known.get(name, error.strerror or name)


@dataclass(frozen=True)
class Reading:
    """One setting as the store reports it. `state`: ok, differs, missing."""

    path: bytes
    setting: Setting
    got: bytes | None
    state: str


def _equal(setting: Setting, got: bytes | None) -> bool:
    return got == setting.value


def verify(
    root: Root, store: Store, targets: Iterable[Target], outcome: Outcome
) -> Iterator[Reading]:
    """Read every setting back; targets that are not there are counted in `outcome.absent`."""
    fits = store.fits if isinstance(store, Judge) else _equal
    for target in targets:
        settings, gaps = store.translate(target.hints, target.kind)
        outcome.gaps += gaps
        fd = _open(root, target, outcome) if settings else None
        if fd is None:
            outcome.absent += bool(settings) and target.create
            continue
        try:
            for setting in settings:
                try:
                    got = store.read(fd, setting.key)
                except OSError as error:
                    outcome.failed.append((target.path, _why(error)))
                    continue
                state = "ok" if fits(setting, got) else "missing" if got is None else "differs"
                yield Reading(target.path, setting, got, state)
        finally:
            os.close(fd)
