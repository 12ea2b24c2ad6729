"""Nodes that do not answer, remembered for all `tracehint place` of one driver, said once.

A marker file per node beside the slots: `NAME.away` since when it has not answered, `NAME.there`
when it last did. Within their times nobody asks again, so that a node that is away holds up one
task and not each.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from tracehint.adapters.place.hosts import Host

AWAY_S, THERE_S = 60.0, 10.0


@dataclass
class Roll:
    """`ask` is the host file's check. `folder` None: every task asks. `said`: what is new."""

    folder: Path | None
    ask: Callable[[Host], bool]
    now: Callable[[], float] = time.time
    said: list[str] = field(default_factory=list)

    def answers(self, host: Host) -> bool:
        """Whether the node can be used."""
        if not host.check:
            return True
        if self._fresh(host, "there", THERE_S):
            return True
        if self._fresh(host, "away", AWAY_S):
            return False
        there = self.ask(host)
        gone, here = ("away", "there") if there else ("there", "away")
        was = self._remove(host, gone)
        new = self._mark(host, here)
        if there and was:
            self.said.append(f"{host.name} answers again")
        if not there and new:
            self.said.append(f"{host.name} does not answer: its tasks run on other nodes")
        return there

    def _path(self, host: Host, what: str) -> Path | None:
        return self.folder / f"{host.name}.{what}" if self.folder else None

    def _fresh(self, host: Host, what: str, seconds: float) -> bool:
        path = self._path(host, what)
        try:
            return path is not None and abs(self.now() - path.lstat().st_mtime) < seconds
        except OSError:
            return False

    def _mark(self, host: Host, what: str) -> bool:
        """Renew the marker; True: there was none."""
        path = self._path(host, what)
        if path is None:
            return True
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        new = True
        try:
            os.close(os.open(path, flags, 0o600))
        except FileExistsError:
            new = False
        except OSError:
            return True
        with suppress(OSError):
            os.utime(path, (self.now(), self.now()), follow_symlinks=False)
        return new

    def _remove(self, host: Host, what: str) -> bool:
        path = self._path(host, what)
        try:
            if path is not None:
                path.unlink()
        except OSError:
            return False
        return path is not None
