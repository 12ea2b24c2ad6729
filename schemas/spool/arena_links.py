"""Where paths of a recording led: symbolic links among their directories, and at their end.

Links are looked at when the recording is converted, as far as they are still there. What the
path of a directory leads to is found out once, and below it its own name only.
"""

from __future__ import annotations

import os
import stat

_MAX_LINKS = 40  # as the kernel
_UP = (b"..", b".")


class RealPaths:
    """Paths without symbolic links. here: this is the host that recorded; elsewhere, its links
    mean nothing and only the text is looked at."""

    def __init__(self, *, here: bool) -> None:
        self._here = here
        self._meant: dict[bytes, bytes] = {}
        self._real: dict[bytes, bytes | None] = {}

    def named(self, path: bytes) -> bytes:
        """Without symbolic links among the directories; a link that comes last stays."""
        if not path.startswith(b"/"):
            return path
        path = path.rstrip(b"/") or b"/"
        folder, _, name = path.rpartition(b"/")
        if name in _UP:
            return self._directory(path)
        folder = self._directory(folder or b"/")
        return (b"" if folder == b"/" else folder) + b"/" + name

    def opened(self, path: bytes, inode: int) -> bytes:
        """What an open of the path opened: a link that comes last is followed, where it still
        leads to that file."""
        path = at = self.named(path)
        if not self._here or not path.startswith(b"/"):
            return path
        try:
            for _ in range(_MAX_LINKS):
                found = os.lstat(at)
                if not stat.S_ISLNK(found.st_mode):
                    return at if found.st_ino == inode else path
                target = os.readlink(at)  # noqa: PTH115  # of a name in bytes
                below = b"" if target.startswith(b"/") else at.rpartition(b"/")[0] + b"/"
                at = self.named(below + target)
        except (OSError, ValueError):
            pass
        return path

    def _directory(self, path: bytes) -> bytes:
        """The directory that the path means, by its text where it is not there any more."""
        found = self._meant.get(path)
        if found is None:
            found = os.path.normpath(path).replace(b"//", b"/")
            if self._here:
                found = self._resolved(path) or found
            self._meant[path] = found
        return found

    def _resolved(self, path: bytes) -> bytes | None:
        """The real path of a directory, None where there is none; step by step from the root."""
        real: bytes | None = b""
        end = 0
        while end < len(path) and real is not None:
            begin, end = end + 1, path.find(b"/", end + 1)
            end = len(path) if end < 0 else end
            if path[:end] not in self._real:
                self._real[path[:end]] = self._step(real, path[begin:end])
            real = self._real[path[:end]]
        return b"/" if real == b"" else real

    def _step(self, folder: bytes, name: bytes) -> bytes | None:
        """The real path of a directory in one whose real path is given (`""`: the root)."""
        if not name or name == b".":
            return folder
        if name == b"..":
            return folder.rpartition(b"/")[0]
        path = folder + b"/" + name
        try:
            mode = os.lstat(path).st_mode
            if stat.S_ISLNK(mode):
                path = os.path.realpath(path)
                mode = os.lstat(path).st_mode
        except (OSError, ValueError):
            return None
        return (b"" if path == b"/" else path) if stat.S_ISDIR(mode) else None
