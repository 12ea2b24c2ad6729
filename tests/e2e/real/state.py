"""What exists while a log is played: files, open descriptions, processes, and accesses."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class Inode:
    """One file below the root."""

    path: str  # relative to the root; the last name that it had
    size: int
    existed: bool
    before: int = 0  # size at the start of the run
    links: set[str] = field(default_factory=set)  # the names that it has now
    former: set[str] = field(default_factory=set)  # and those that it had
    replaced: bool = False

    def named(self, path: str) -> None:
        """It has this name now."""
        self.path = path
        self.links.add(path)
        self.former.add(path)


@dataclass
class Opened:
    """An open file description; `file` is None for what lies elsewhere."""

    file: Inode | None
    at: int = 0
    append: bool = False


@dataclass
class Process:
    """One process with its descriptors: number -> (description, closed by exec)."""

    parent: Process | None
    fds: dict[int, tuple[Opened, bool]] = field(default_factory=dict)
    commands: list[list[str]] = field(default_factory=list)
    start: float = 0.0
    end: float = 0.0


@dataclass(frozen=True)
class Access:
    """Bytes [start, end) of a file; a truncation has its new size in `start`."""

    process: Process
    file: Inode
    op: str  # read, write, truncate
    start: int
    end: int
    mapped: bool = False
