"""The stores that are measured: a line each, and what each of them offers."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, cast

from scripts.bench.gain.columns import Case
from scripts.bench.gain_stores.flow import Flow, flow_of
from scripts.bench.gain_stores.results import Moved
from scripts.bench.gain_stores.rows import NODES, Row


@dataclass(frozen=True)
class Task:
    """One row to be run; `folder` keeps what is made from it."""

    row: Row
    case: Case
    folder: Path

    def flow(self) -> Flow:
        """The row as a workflow for engines that move declared files."""
        return flow_of(self.case, self.folder / f"{self.row.name}.flow", self.row.unread, NODES)


class Running(Protocol):
    """A store that is up."""

    def run(self, task: Task, column: str) -> Moved:
        """One run of a row in a column."""
        ...


class Bench(Protocol):
    """What the module of a store has. `COLUMNS`: name -> title."""

    COLUMNS: Mapping[str, str]
    missing: Callable[[], str]
    started: Callable[[Path], AbstractContextManager[Running]]


@dataclass(frozen=True)
class Store:
    """A store by its module. `lists`: it moves what tasks declare."""

    name: str
    title: str
    lists: bool = True

    def bench(self) -> Bench:
        """The module, imported now."""
        return cast("Bench", importlib.import_module(f"scripts.bench.gain_stores.{self.name}"))


STORES = {
    store.name: store
    for store in (
        Store("confuga", "Confuga (cctools 9.9), Makeflow `-T chirp`"),
        Store("hdfs", "HDFS 3.3.6, one copy", lists=False),
        Store("work_queue", "Work Queue (cctools 9.9), Makeflow `-T wq`"),
    )
}
