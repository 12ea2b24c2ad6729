"""The file/task graph as values: every picture and export is made from a Drawing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class GraphNode:
    """A task, a file, or a fold of several: `count` says of how many."""

    id: str
    kind: str  # task, file
    label: str  # visible text: task name or type, path or template
    count: int
    bytes: int  # of the files; for tasks, bytes read and written
    role: str = ""  # files: input, intermediate, output
    pattern: str = ""  # files: the primary label
    confidence: float = 1.0
    saves_bytes: int = 0
    start_s: float | None = None  # tasks
    end_s: float | None = None
    kinds: int = 1  # templates in a fold of files
    type: str = ""  # tasks: what tasks of one kind share


@dataclass(frozen=True)
class Link:
    """Data that goes from a task to a file (write) or from a file to a task (read)."""

    source: str
    target: str
    bytes: int
    count: int  # (task, file) pairs
    pattern: str = ""
    via: str = "data"  # data, engine_copy, declared
    peek: bool = False  # nothing but peeks


@dataclass(frozen=True)
class Drawing:
    """A bipartite graph ready to be drawn."""

    nodes: tuple[GraphNode, ...]
    links: tuple[Link, ...]
    folded: bool
    left_out: dict[str, int]  # what is not shown -> count


def title(run: Mapping[str, Any], source: Path | None = None) -> str:
    """What was run, the program without its directories; the name of the bundle (or its JSON) for
    runs that others recorded."""
    program, *arguments = run["command"] or ("",)
    command = " ".join([program.rstrip("/").rpartition("/")[2] or program, *arguments])
    return command or (source.name if source else "") or "a run"
