"""Map names of files inside a container to names outside, by the mount tables of both."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import Any

MARK = b"\0"  # begins the text of a table; names below a table are /MARK, its number, and the name
MAX_TABLE = 256 << 10  # MOST of record/mounts.c; a table of this size was truncated
_OCTAL = re.compile(rb"\\([0-7]{3})")

_Place = tuple[bytes, bytes]  # device, path in its file system


def mounts_of(start: dict[str, Any]) -> bytes:
    """Return the recorder's mount table; empty: unknown."""
    table = start.get("mounts")
    return os.fsencode(table) if isinstance(table, str) else b""


@dataclass(frozen=True)
class _Mount:
    device: bytes
    top: bytes  # mounted directory of the file system, without a slash at the end ("/": empty)
    at: bytes  # mount point, likewise


class Mounts:
    """A table in the format of /proc/PID/mountinfo. Invalid lines are left out."""

    def __init__(self, table: bytes) -> None:
        self.every: list[_Mount] = []
        self._root: int | None = None
        self._on: dict[int, list[tuple[int, _Mount]]] = {}  # number -> mounts on it
        self._known: dict[int, _Mount] = {}
        for line in table.splitlines():
            parts = line.split(b" ", 5)
            if len(parts) == 6 and parts[0].isdigit() and parts[1].isdigit():
                self._add(int(parts[0]), int(parts[1]), parts[2], parts[3:5])
        roots = [n for n, mount in self._known.items() if mount.at == b""]
        on = {n: parent for parent, rows in self._on.items() for n, _ in rows}
        for n in roots:
            if on[n] not in self._known or on[n] == n:
                self._root = n

    def _add(self, number: int, parent: int, device: bytes, names: list[bytes]) -> None:
        top, at = (_OCTAL.sub(_byte, name).rstrip(b"/") for name in names)
        mount = _Mount(device, top, at)
        self._known[number] = mount
        self.every.append(mount)
        self._on.setdefault(parent, []).append((number, mount))

    @property
    def whole(self) -> bool:
        """Whether every name is on a mount of the table; false below a root set by `chroot`, and
        without /proc."""
        return self._root is not None

    def place(self, path: bytes) -> _Place | None:
        """Return device and path of an absolute path without symbolic links; None: no mount."""
        found = self._root
        if found is None:
            return None
        left = len(self._known)
        while left and (above := self._find_covering_mount(found, path)) is not None:
            found, left = above, left - 1
        mount = self._known[found]
        return mount.device, mount.top + path.rstrip(b"/")[len(mount.at) :]

    def _find_covering_mount(self, number: int, path: bytes) -> int | None:
        """Return the first mount on this one on the way to the path."""
        over = [
            (len(mount.at), n)
            for n, mount in self._on.get(number, ())
            if n != number and _is_below(path, mount.at)
        ]
        return min(over, default=(0, None))[1]


def _byte(found: re.Match[bytes]) -> bytes:
    return bytes([int(found[1], 8) & 0xFF])


def _is_below(path: bytes, folder: bytes) -> bool:
    return path == folder or path.startswith(folder + b"/")


class NamesOutside:
    """Maps names inside containers to the recorder's names."""

    def __init__(self, table: bytes) -> None:
        self._outside = Mounts(table)
        self._inside: list[Mounts] = []
        self._bases: dict[bytes, bytes] = {}

    def base(self, text: bytes) -> bytes:
        """Return the prefix of names below this table, a text that begins with MARK."""
        if text not in self._bases:
            self._bases[text] = b"/" + MARK + str(len(self._inside)).encode()
            self._inside.append(Mounts(text[1:] if len(text) < MAX_TABLE else b""))
        return self._bases[text]

    def knows(self, base: bytes) -> bool:
        """Whether names below this base can be mapped."""
        return bool(base) and self._inside[int(base[2:])].whole

    def both(self, path: bytes) -> tuple[bytes, bytes]:
        """Return the names outside and inside; they are equal if there is no other name outside,
        and for names below no table."""
        if not path.startswith(b"/" + MARK):
            return path, path
        number, _, rest = path[2:].partition(b"/")
        inside = b"/" + rest
        if b"/." in inside or b"//" in inside:
            inside = os.path.normpath(inside).replace(b"//", b"/")
        place = self._inside[int(number)].place(inside)
        if place is None or self._outside.place(inside) == place:
            return inside, inside
        device, at = place
        for mount in self._outside.every:
            if mount.device == device and _is_below(at, mount.top):
                outside = mount.at + at[len(mount.top) :] or b"/"
                if self._outside.place(outside) == place:
                    return outside, inside
        return inside, inside
