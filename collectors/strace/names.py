"""The tree of names: which file a path means now, through renames, links and symlinks.

A tree instead of a table of paths, so that renaming a directory costs as much
as renaming a file.
"""

from __future__ import annotations

from tracehint.collectors.strace.model import FileRec

_MAX_LINKS = 40  # as the kernel
MAX_DEPTH = 2048  # components of a path; a longer one is nonsense in a 4096-byte path


class Node:
    """One name. `fresh`: a directory made in this run, so what is unknown below was not there."""

    __slots__ = ("absent", "children", "file", "fresh", "link", "stat")

    def __init__(self) -> None:
        self.children: dict[bytes, Node] = {}
        self.file: FileRec | None = None
        self.link: bytes | None = None  # target of a symbolic link made in this run
        self.fresh = False
        self.absent = False  # a call failed with ENOENT here
        self.stat: tuple[int, int, int] | None = None  # dev, ino, size seen by stat


def normal(path: bytes) -> bytes:
    """An absolute path without `//`, `.` and `..`, by the text alone."""
    if b"//" not in path and b"/." not in path and (path[-1:] != b"/" or path == b"/"):
        return path
    parts: list[bytes] = []
    for part in path.split(b"/"):
        if part == b"..":
            if parts:
                parts.pop()
        elif part and part != b".":
            parts.append(part)
    return b"/" + b"/".join(parts)


class NameTree:
    """The tree. All paths are absolute and normal."""

    def __init__(self) -> None:
        self.root = Node()
        self.links = 0

    def node(self, path: bytes) -> Node:
        """The name's node, made when it is new. Symbolic links are not followed."""
        node = self.root
        fresh = False
        for part in path[1:].split(b"/", MAX_DEPTH) if path != b"/" else ():
            fresh = node.fresh
            child = node.children.get(part)
            if child is None:
                child = node.children[part] = Node()
                child.absent = fresh
            node = child
        return node

    def find(self, path: bytes) -> Node | None:
        """The name's node if the run has met it."""
        node = self.root
        for part in path[1:].split(b"/", MAX_DEPTH) if path != b"/" else ():
            child = node.children.get(part)
            if child is None:
                return None
            node = child
        return node

    def resolve(self, path: bytes, *, follow: bool) -> bytes:
        """The path after the symbolic links that this run made. `follow`: also the last part."""
        if not self.links:
            return path
        for _ in range(_MAX_LINKS):
            step = self._first_link(path, follow)
            if step is None:
                return path
            path = step
        return path

    def _first_link(self, path: bytes, follow: bool) -> bytes | None:
        node, parts = self.root, path[1:].split(b"/", MAX_DEPTH)
        for i, part in enumerate(parts):
            child = node.children.get(part)
            if child is None:
                return None
            last = i == len(parts) - 1
            if child.link is not None and (follow or not last):
                base = b"/" + b"/".join(parts[:i])
                rest = b"/".join(parts[i + 1 :])
                target = child.link if child.link[:1] == b"/" else base + b"/" + child.link
                return normal(target + (b"/" + rest if rest else b""))
            node = child
        return None

    def parent(self, path: bytes) -> tuple[Node, bytes]:
        """The directory's node and the last component."""
        folder, _, name = path.rpartition(b"/")
        return self.node(folder or b"/"), name

    def detach(self, path: bytes) -> Node | None:
        """Take the name away (unlink, rename); the old node with all below it."""
        folder, name = self.parent(path)
        old = folder.children.get(name)
        gone = folder.children[name] = Node()
        gone.absent = True
        if old is not None and old.link is not None:
            self.links -= 1
        return old

    def attach(self, path: bytes, node: Node) -> Node | None:
        """Put a node at the path; the node that it replaces."""
        folder, name = self.parent(path)
        old = folder.children.get(name)
        folder.children[name] = node
        node.absent = False
        if node.link is not None:
            self.links += 1
        if old is not None and old.link is not None:
            self.links -= 1
        return old
