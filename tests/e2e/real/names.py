"""Replay of a log's calls on names: working directories, renames, links."""

from __future__ import annotations

import os
import re
from pathlib import Path

from tests.e2e.real.lines import Call, text
from tests.e2e.real.state import Inode, Process

FD = re.compile(r"^(-?\d+|AT_FDCWD)(?:<(.*)>(?:\(deleted\))?)?$", re.DOTALL)


class Names:
    """Files below `root` by name; `sizes` are the files that existed before."""

    def __init__(self, root: Path, sizes: dict[str, int]) -> None:
        self.root = os.fspath(root.resolve())
        self.names = {
            path: Inode(path, size, existed=True, before=size) for path, size in sizes.items()
        }
        self.inodes = list(self.names.values())
        for file in self.inodes:
            file.named(file.path)
        self._dirs: dict[int, str] = {}

    def _inside(self, path: str) -> str | None:
        """Return the path relative to the root; None for paths elsewhere."""
        full = os.path.normpath(path)
        return full.removeprefix(self.root + "/") if full.startswith(self.root + "/") else None

    def _named(self, folder: str | None, printed: str, process: Process) -> str:
        name = text(printed)
        if name.startswith("/"):
            return name
        match = FD.match(folder) if folder else None
        where = match[2] if match and match[2] else self._cwd(process)
        return f"{where}/{name}"

    def _cwd(self, process: Process) -> str:
        found: Process | None = process
        while found:
            if id(found) in self._dirs:
                return self._dirs[id(found)]
            found = found.parent
        return self.root

    def _chdir(self, process: Process, call: Call) -> None:
        self._dirs[id(process)] = self._named(None, call.args[0], process)

    def _fchdir(self, process: Process, call: Call) -> None:
        match = FD.match(call.args[0])
        assert match
        self._dirs[id(process)] = match[2]

    def _rename(self, process: Process, call: Call) -> None:
        at = len(call.name) > len("rename")
        one = self._named(call.args[0] if at else None, call.args[1 if at else 0], process)
        two = self._named(call.args[2] if at else None, call.args[3 if at else 1], process)
        old, new = self._inside(one), self._inside(two)
        if new is None or old is None:
            assert (new, old) == (None, None), f"renamed over the root's border: {one} {two}"
            return
        below = [p for p in self.names if p == old or p.startswith(old + "/")]
        for path in below:
            self._drop(new + path.removeprefix(old), replaced=True)
            file = self.names.pop(path)
            file.links.discard(path)
            file.named(new + path.removeprefix(old))
            self.names[file.path] = file

    def _unlink(self, process: Process, call: Call) -> None:
        at = call.name == "unlinkat"
        path = self._inside(
            self._named(call.args[0] if at else None, call.args[1 if at else 0], process)
        )
        if path:
            self._drop(path, replaced=False)

    def _drop(self, path: str, *, replaced: bool) -> None:
        file = self.names.pop(path, None)
        if file:
            file.links.discard(path)
            if file.links and file.path == path:
                file.path = min(file.links)
            file.replaced = replaced and not file.links

    def _link(self, process: Process, call: Call) -> None:
        at = call.name == "linkat"
        one = self._named(call.args[0] if at else None, call.args[1 if at else 0], process)
        two = self._named(call.args[2] if at else None, call.args[3 if at else 1], process)
        old, new = self._inside(one), self._inside(two)
        assert (old is None) == (new is None), f"linked over the root's border: {call}"
        if old and new:
            self.names[new] = self.names[old]
            self.names[new].named(new)

    def _symlink(self, process: Process, call: Call) -> None:
        target, folder = call.args[0], call.args[1] if call.name == "symlinkat" else None
        path = self._inside(self._named(folder, call.args[-1], process))
        assert path is None, f"a symbolic link below the root: {path} -> {target}"
