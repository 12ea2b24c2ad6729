"""Slots of nodes, shared by all `tracehint place` of one driver: a locked file for each.

The lock goes on to the command that is started (it inherits the descriptor) and ends with it,
however it ends. Nothing is ever waited for.
"""

from __future__ import annotations

import fcntl
import os
from dataclasses import dataclass, field
from pathlib import Path

from tracehint.adapters.place.hosts import Host


@dataclass
class Slots:
    """`folder` None: nobody counts, every slot is free. `problem` says why, where it should be."""

    folder: Path | None
    problem: str = ""
    held: dict[str, int] = field(default_factory=dict)  # name of a node -> descriptor

    def take(self, host: Host) -> bool:
        """Take a slot of the node; False: all are taken."""
        if self.folder is None or host.slots == 0 or host.name in self.held:
            return True
        for number in range(host.slots):
            fd = self._lock(f"{host.name}.{number}")
            if fd is not None:
                self.held[host.name] = fd
                return True
        return bool(self.problem)

    def free(self, host: Host) -> bool:
        """Whether a slot could be taken; none is kept."""
        held = host.name in self.held
        found = self.take(host)
        if found and not held and host.name in self.held:
            os.close(self.held.pop(host.name))
        return found

    def _lock(self, name: str) -> int | None:
        """Descriptor of the locked file; None: somebody has it, or (`problem`) it cannot be."""
        assert self.folder is not None
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            fd = os.open(self.folder / name, flags, 0o600)
        except OSError as error:
            self.problem = f"{self.folder}: {error.strerror}"
            return None
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(fd)
            return None
        except OSError as error:
            self.problem = f"{self.folder}: {error.strerror}"
            os.close(fd)
            return None
        return fd

    def keep(self, host: Host | None) -> None:
        """Let go of all slots but the node's, which the command that is started inherits."""
        for name, fd in self.held.items():
            if host is not None and name == host.name:
                os.set_inheritable(fd, True)
            else:
                os.close(fd)
        self.held = {n: fd for n, fd in self.held.items() if host is not None and n == host.name}


def open_slots(folder: Path) -> Slots:
    """The slots below `folder`, which is made; where that cannot be, nobody counts."""
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        info = folder.stat()
    except OSError as error:
        return Slots(None, f"slots are not counted: {folder}: {error.strerror}")
    if info.st_uid != os.geteuid():
        return Slots(None, f"slots are not counted: {folder} belongs to another user")
    return Slots(folder)
