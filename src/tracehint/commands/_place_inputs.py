"""What `tracehint place` knows before it chooses a node: the task's inputs and where they lie."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tracehint.commands._stores import require_locator
from tracehint.errors import UsageError

if TYPE_CHECKING:
    from tracehint.adapters.place.choose import InputPlaces
    from tracehint.adapters.place.hosts import Host


@dataclass(frozen=True)
class StartedTask:
    """The task that is started: its inputs, and where a workflow or a plan tells of it."""

    inputs: tuple[str, ...]
    workflow: Path | None
    task: int | None
    parts: Path | None
    part: int | None

    @property
    def planned(self) -> bool:
        """Whether a plan says where it runs."""
        return self.part is not None or self.parts is not None


@dataclass(frozen=True)
class NodesAndStore:
    """The nodes, and the store that they share."""

    hosts: Path
    folder: Path | None
    store: str | None
    prefix: str | None
    places: Path | None


@dataclass(frozen=True)
class PlaceFacts:
    """What is known before a node is chosen."""

    nodes: tuple[Host, ...]
    names: list[str]
    known: InputPlaces
    part: int | None


def found_for(task: StartedTask, cluster: NodesAndStore) -> PlaceFacts:
    """The nodes, the inputs and where they lie."""
    from tracehint.adapters.place.choose import InputPlaces

    nodes, part = _nodes(cluster.hosts), None
    if task.planned:
        part, listed = _planned(task.parts, task.task, task.part)
    else:
        listed = _of_rule(task.workflow, task.task)
    names = [*task.inputs, *listed]
    return PlaceFacts(
        nodes, names, InputPlaces() if part is not None else _look(cluster, nodes, names), part
    )


def _of_rule(workflow: Path | None, task: int | None) -> list[str]:
    """Inputs of a Makeflow rule."""
    if workflow is None and task is None:
        return []
    if workflow is None or task is None:
        raise UsageError("--workflow and --task belong together", "Give both, or neither.")
    from tracehint.adapters.engines.workflow import read_workflow

    tasks = read_workflow(workflow).tasks
    if task >= len(tasks):
        raise UsageError(f"{workflow} has no rule {task}", f"It has {len(tasks)}, from 0.")
    return [os.fsdecode(path) for path in tasks[task].sources]


def _nodes(path: Path) -> tuple[Host, ...]:
    from tracehint.adapters.place.hosts import read_hosts

    return read_hosts(path)


def _planned(
    parts: Path | None, task: int | None, part: int | None
) -> tuple[int | None, list[str]]:
    """Part and inputs of the task."""
    from tracehint.adapters.place.table import read_task

    if parts is None:
        return part, []
    if task is None:
        raise UsageError("--parts without --task", "Give the number of the task.")
    found = read_task(parts, task)
    return found.part if part is None else part, [os.fsdecode(path) for path in found.inputs]


def size_of(path: str) -> int:
    """Bytes of the file; 0 where it cannot be asked."""
    try:
        return Path(path).stat().st_size
    except (OSError, ValueError):
        return 0


def _look(cluster: NodesAndStore, nodes: Sequence[Host], names: list[str]) -> InputPlaces:
    """Where the inputs lie; a store that cannot tell is an error."""
    from tracehint.adapters.place.choose import look

    store = cluster.store
    locator = require_locator(store, cluster.prefix, cluster.places) if store else None
    return look(locator, tuple(nodes), names)
