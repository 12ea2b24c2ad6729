"""A real workflow as the tests define it: a script for its inputs, a command, its jobs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Job:
    """One job of the workflow's definition; `marker` is text that only its command contains.

    `reads` and `writes` are the declared inputs and outputs, relative to the working directory.
    """

    name: str
    marker: str
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Workflow:
    """One row of the table of real runs.

    `prepare` creates the inputs in an empty folder, from fixed seeds. `not_used`: (job, path) of
    declared inputs that the programs never open, known from their sources.
    """

    name: str
    title: str
    needs: tuple[str, ...]  # programs
    prepare: Callable[[Path], None]
    command: tuple[str, ...]
    jobs: Callable[[], list[Job]]
    not_used: Callable[[], set[tuple[str, str]]] = set
    shows: tuple[tuple[str, str], ...] = ()  # (path, its primary pattern by the definition)
