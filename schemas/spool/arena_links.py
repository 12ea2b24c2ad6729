"""Resolve symbolic links in recorded paths: in their directories, and in the last component.

Links are read when the recording is converted, as far as they still exist. Each directory is
resolved once, and below it only the last component. If another host converts the recording,
the recording host resolves the links beforehand (`resolved_links`).
"""

from __future__ import annotations

import os
import stat
import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from tracehint.schemas.spool.mount_names import MARK, MAX_TABLE, NamesOutside

_MAX_LINKS = 40  # as in the kernel
_UP = (b"..", b".")
_MAX_DEPTH = 16  # levels of names that are relative to another directory
_MAX_PATH = 4096
_PAGE = 4096
# Copied from arena_layout.py, which needs NumPy (tests/test_preload_layout.py compares them).
_CHUNK_MAGIC = 0x4B4E4843
_CHUNK = struct.Struct("<II8xIII4x")  # magic, kind, size, epoch, used
_EPISODE = struct.Struct("<I40xIQ280x")  # kind, path, inode
_BRIEF = struct.Struct("<I12xQ20xI88x")  # kind, inode, path
_NAME = struct.Struct("<16xQQ40x")  # two texts
_KINDS = {"episode": 1, "name": 8, "process": 6, "brief": 17}
_FIRST_AT, _FIRST = 328, 6  # episodes in the record of a process


@dataclass(frozen=True)
class Resolved:
    """Symbolic links resolved on the recording host. Paths that are not in it have none."""

    directories: dict[bytes, bytes] = field(default_factory=dict)  # path -> real path
    files: dict[tuple[bytes, int], bytes] = field(default_factory=dict)  # path, inode -> real path


class RealPaths:
    """Resolves paths to paths without symbolic links, as outside of containers. here: this is the
    recording host; elsewhere, links on disk are ignored, and `resolved` has those of that host.
    mounts: the recorder's mount table."""

    def __init__(
        self, *, here: bool, resolved: Resolved | None = None, mounts: bytes = b""
    ) -> None:
        self.outside = NamesOutside(mounts)
        self._here = here
        self._given = resolved or Resolved()
        self._meant: dict[bytes, bytes] = {}
        self._real: dict[bytes, bytes | None] = {}

    def resolve_directories(self, path: bytes) -> bytes:
        """Resolve symbolic links in the directories; a link in the last component stays."""
        path, _ = self.outside.both(path)
        if not path.startswith(b"/"):
            return path
        path = path.rstrip(b"/") or b"/"
        folder, _, name = path.rpartition(b"/")
        if name in _UP:
            return self._directory(path)
        folder = self._directory(folder or b"/")
        return (b"" if folder == b"/" else folder) + b"/" + name

    def resolve_open(self, path: bytes, inode: int) -> bytes:
        """Return the file that an open of the path opened: a link in the last component is
        followed if it still leads to that inode."""
        outside, inside = self.outside.both(path)
        if outside != inside and self._here and not self._leads(outside, inode):
            # a descriptor that was opened outside has a path of outside
            outside = inside if self._leads(inside, inode) else outside
        path = at = self.resolve_directories(outside)
        if not self._here or not path.startswith(b"/"):
            return self._given.files.get((path, inode), path)
        try:
            for _ in range(_MAX_LINKS):
                found = os.lstat(at)
                if not stat.S_ISLNK(found.st_mode):
                    return at if found.st_ino == inode else path
                target = os.readlink(at)  # noqa: PTH115  # of a name in bytes
                below = b"" if target.startswith(b"/") else at.rpartition(b"/")[0] + b"/"
                at = self.resolve_directories(below + target)
        except (OSError, ValueError):
            pass
        return path

    def _leads(self, path: bytes, inode: int) -> bool:
        try:
            return os.stat(path).st_ino == inode  # noqa: PTH116  # of a name in bytes
        except (OSError, ValueError):
            return False

    def links_of(self, opened: Iterable[tuple[bytes, int]], named: Iterable[bytes]) -> Resolved:
        """Return the links that another host needs to resolve the same paths: of opened files with
        their inodes, and of other names."""
        files = {}
        for path, inode in opened:
            at = self.resolve_directories(path)
            if (real := self.resolve_open(path, inode)) != at:
                files[at, inode] = real
        for path in named:
            self.resolve_directories(path)
        plain = {path: os.path.normpath(path).replace(b"//", b"/") for path in self._meant}
        moved = {path: real for path, real in self._meant.items() if real != plain[path]}
        return Resolved(moved, files)

    def _directory(self, path: bytes) -> bytes:
        """Return the real path of a directory; its normalised text if it no longer exists."""
        found = self._meant.get(path)
        if found is None:
            found = os.path.normpath(path).replace(b"//", b"/")
            if self._here:
                found = self._resolve(path) or found
            else:
                found = self._given.directories.get(path, found)
            self._meant[path] = found
        return found

    def _resolve(self, path: bytes) -> bytes | None:
        """Return the real path of a directory, None if there is none; stepwise from the root."""
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
        """Return the real path of a directory in a folder with a real path (`""`: the root)."""
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


def resolved_links(arena: memoryview, mounts: bytes) -> Resolved:
    """Resolve the symbolic links in all paths of an arena, on the recording host. mounts: its mount
    table."""
    opened: set[tuple[int, int]] = set()
    named: set[int] = set()
    for kind, records in _chunks(arena):
        if kind == _KINDS["process"]:
            records = records[_FIRST_AT - _CHUNK.size :][: _FIRST * _EPISODE.size]
            kind = _KINDS["episode"]
        if kind == _KINDS["episode"]:
            rows = _EPISODE.iter_unpack(_whole_records(records, _EPISODE))
            opened.update((text, inode) for found, text, inode in rows if found == kind and text)
        elif kind == _KINDS["brief"]:
            rows = _BRIEF.iter_unpack(_whole_records(records, _BRIEF))
            opened.update((text, inode) for found, inode, text in rows if found == kind and text)
        elif kind == _KINDS["name"]:
            named.update(*_NAME.iter_unpack(_whole_records(records, _NAME)))
    links = RealPaths(here=True, mounts=mounts)
    paths = _Paths(arena, links.outside)
    files = ((paths.of(text), inode) for text, inode in opened)
    return links.links_of(files, map(paths.of, named))


def _chunks(arena: memoryview) -> Iterator[tuple[int, memoryview]]:
    """Yield the kind and the records of each chunk."""
    for at in range(0, len(arena) - _PAGE + 1, _PAGE):
        magic, kind, size, _, used = _CHUNK.unpack_from(arena, at)
        if magic == _CHUNK_MAGIC:
            yield kind, arena[at + _CHUNK.size : at + min(size, used)]


def _whole_records(records: memoryview, record: struct.Struct) -> memoryview:
    return records[: len(records) // record.size * record.size]


class _Paths:
    """Converts texts of an arena to absolute paths; empty if a text is missing."""

    def __init__(self, arena: memoryview, outside: NamesOutside) -> None:
        self._arena, self._outside = arena, outside
        self._known: dict[int, bytes] = {0: b""}

    def of(self, text: int, depth: int = 0) -> bytes:
        """Return the path of a text, which may be relative to the path of its directory."""
        if text in self._known or depth > _MAX_DEPTH or (text + 1) * 8 > len(self._arena):
            return self._known.get(text, b"")
        length, folder = struct.unpack_from("<II", self._arena, text * 8)
        name = bytes(self._arena[text * 8 + 8 :][: min(length, _MAX_PATH)])
        if name[:1] == MARK:
            name = self._outside.base(bytes(self._arena[text * 8 + 8 :][: min(length, MAX_TABLE)]))
        above = self.of(folder, depth + 1)
        # an absolute name is below the root set by chroot
        self._known[text] = above + name if name[:1] == b"/" else above + b"/" + name
        return self._known[text]
