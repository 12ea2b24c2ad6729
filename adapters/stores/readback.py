"""Read the hints below a root back, through the store's own reader."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from tracehint.adapters.plan import Target
from tracehint.adapters.stores.base import Judge, Setting, Store
from tracehint.adapters.stores.beneath import Root
from tracehint.adapters.stores.outcome import Outcome


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
    """Read every setting back; targets that are not there are counted in `outcome.absent`."""
    fits = store.fits if isinstance(store, Judge) else _equal
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


def _equal(setting: Setting, got: bytes | None) -> bool:
    return got == setting.value
