"""Set hints below a root. Everything happens on open descriptors.

Work goes in batches: open and read the old values, write them to the manifest, wait until it is on
disk, then change. So 10,000 hints cost about 40 waits, and a crash loses nothing.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, field

from tracehint.adapters.plan import Target
from tracehint.adapters.stores.asked import asked_once
from tracehint.adapters.stores.base import Setting, Store, says
from tracehint.adapters.stores.beneath import Root
from tracehint.adapters.stores.journal import JournalEntry, LockedJournal
from tracehint.adapters.stores.make import make_targets
from tracehint.adapters.stores.outcome import Outcome

BATCH = 256  # open descriptors at a time; the usual limit is 1024

Wanted = tuple[Target, list[Setting]]


@dataclass
class _Open:
    target: Target
    settings: list[Setting]
    fd: int
    to_do: list[Setting] = field(default_factory=list)


def check_keys(store: Store, targets: Iterable[Target], *, allow_trusted: bool) -> None:
    """Refuse the whole job when any setting has a name that must not be written."""
    said = asked_once(store)
    keys = {setting.key for target in targets for setting in said(target)[0]}
    for key in sorted(keys):
        store.check_key(key, allow_trusted=allow_trusted)


def apply(
    root: Root, store: Store, targets: list[Target], journal: LockedJournal | None
) -> Outcome:
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
    root: Root, store: Store, targets: list[Target], journal: LockedJournal | None, outcome: Outcome
) -> list[_Open]:
    """Open what is there; make what is to be made, and open it."""
    wanted: list[Wanted] = []
    for target in targets:
        settings, gaps = store.translate(target.hints, target.kind)
        outcome.gaps += gaps
        if settings:
            wanted.append((target, settings))
    batch, missing = _open_all(root, wanted, outcome)
    make = [(target, settings) for target, settings in missing if target.create]
    outcome.absent += len(missing) - len(make)
    if not make:
        return batch
    if journal is None:
        _foretell(make, outcome)
        return batch
    make_targets(root, [target for target, _ in make], journal, outcome)
    made, _ = _open_all(root, make, outcome)  # why one is not there has been noted
    return batch + made


def _open_all(
    root: Root, wanted: list[Wanted], outcome: Outcome
) -> tuple[list[_Open], list[Wanted]]:
    """(what could be opened, what is not there)."""
    batch: list[_Open] = []
    missing: list[Wanted] = []
    for target, settings in wanted:
        try:
            fd = outcome.open(root, target)
        except FileNotFoundError:
            missing.append((target, settings))
            continue
        if fd is not None:
            batch.append(_Open(target, settings, fd))
    return batch, missing


def _foretell(make: list[Wanted], outcome: Outcome) -> None:
    for target, settings in make:
        outcome.created += 1
        outcome.changed += len(settings)
        outcome.lines.append((target.path, "create"))
        outcome.lines += [(target.path, f"set {s.key} ({s.hint})") for s in settings]


def _compare(store: Store, one: _Open, journal: LockedJournal | None, outcome: Outcome) -> None:
    for setting in one.settings:
        try:
            old = store.read(one.fd, setting.key)
        except OSError as error:
            outcome.fail(one.target.path, error, f"cannot read {setting.key}")
            continue
        if says(store, setting.key, setting.value, old):
            outcome.unchanged += 1
            continue
        one.to_do.append(setting)
        if journal is None:
            outcome.changed += 1
            outcome.lines.append((one.target.path, f"set {setting.key} ({setting.hint})"))
        else:
            journal.add(
                JournalEntry(
                    op="set", path=one.target.path, key=setting.key, old=old, new=setting.value
                )
            )


def _write(store: Store, one: _Open, outcome: Outcome) -> None:
    for setting in one.to_do:
        try:
            store.write(one.fd, setting.key, setting.value)
            outcome.changed += 1
        except OSError as error:
            outcome.fail(one.target.path, error, f"cannot set {setting.key}")
