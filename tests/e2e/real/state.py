"""State of a log's replay: files, open descriptions, processes, and accesses."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Inode:
    """One file below the root."""

    path: str  # relative to the root; its latest name
    size: int
    existed: bool
    before: int = 0  # size at the start of the run
    links: set[str] = field(default_factory=set)  # current names
    former: set[str] = field(default_factory=set)  # all names, current and past
    replaced: bool = False

    def named(self, path: str) -> None:
        """Add a name, which becomes the latest one."""
        self.path = path
        self.links.add(path)
        self.former.add(path)


@dataclass
class Opened:
    """An open file description; `file` is None outside the root."""

    file: Inode | None
    at: int = 0
    append: bool = False


@dataclass
class Process:
    """One process with its descriptors: number -> (description, close-on-exec)."""

    parent: Process | None
    fds: dict[int, tuple[Opened, bool]] = field(default_factory=dict)
    commands: list[list[str]] = field(default_factory=list)
    start: float = 0.0
    end: float = 0.0


@dataclass(frozen=True)
class Access:
    """Bytes [start, end) of a file; for a truncation `start` is the new size."""

    process: Process
    file: Inode
    op: str  # read, write, truncate
    start: int
    end: int
    mapped: bool = False
