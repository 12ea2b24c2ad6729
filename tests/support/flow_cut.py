"""Run the flow on a built bundle with one task per process: the first one is the engine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from tests.support.bundles import RunBuilder
from tests.support.rows import task_row
from tracehint.analyzer import roots as rules
from tracehint.analyzer.dataflow.build import build_flow
from tracehint.analyzer.dataflow.model import Flow
from tracehint.analyzer.execution.local import LocalExtents
from tracehint.analyzer.model import DECLARED_TASK, PROC_TASK, TASKS, Options, Segmentation
from tracehint.schemas.manifest import Manifest
from tracehint.schemas.store import Bundle, table_from_rows

ROOTS = [b"/data"]


def bundle_of(run: RunBuilder) -> Bundle:
    """Return the bundle in memory, without writing it to disk."""
    tables = {name: table_from_rows(name, rows) for name, rows in run.rows.items()}
    return Bundle(Path("run.trace"), run.manifest, tables)


@dataclass
class Case:
    """A run whose tasks are single processes, by name; `engine` is the first one."""

    run: RunBuilder = field(default_factory=lambda: RunBuilder(cwd="/data"))
    tasks: list[dict[str, Any]] = field(default_factory=list)
    declared: list[tuple[str, int]] = field(default_factory=list)
    engine: int = 0

    def __post_init__(self) -> None:
        self.engine = self.task("engine", engine=True)

    def task(
        self,
        name: str,
        *,
        engine: bool = False,
        attempt: int = 1,
        exit_status: int = 0,
        process: bool = True,
        source: str = "observed",
    ) -> int:
        """Add a task of one process with the same number. `process=False`: only declared."""
        first = not self.tasks
        proc = (
            self.run.process([name], parent=None if first else self.engine)
            if process
            else self.run._id()
        )
        more = {"exit_status": exit_status, "attempt": attempt, "engine": engine, "source": source}
        self.tasks.append(task_row(proc, name, host=self.run.host, end_s=999.0, **more))
        return proc

    def chain(self, *names: str) -> list[int]:
        """Add tasks of these names."""
        return [self.task(name) for name in names]

    def cut(self) -> Segmentation:
        """Return the tasks as the segmentation would."""
        procs = [{"proc": r["proc"], "task": r["proc"]} for r in self.run.rows["processes"]]
        declared = [{"declared": d, "task": t} for d, t in self.declared]
        return Segmentation(
            pa.Table.from_pylist(self.tasks, TASKS),
            pa.Table.from_pylist(procs, PROC_TASK),
            pa.Table.from_pylist(declared, DECLARED_TASK),
        )

    def flow(
        self,
        *,
        general: bool = False,
        roots: Sequence[bytes] = ROOTS,
        rows: int = 1 << 19,
        **options: Any,
    ) -> View:
        """Return the flow; `general` forces the general path, `rows` is the size of a partition."""
        bundle = bundle_of(self.run)
        flow = build_flow(
            bundle,
            self.cut(),
            roots,
            Options(**options),
            rules,
            LocalExtents(bundle.tables["extents"]),
            always_general=general,
            rows=rows,
        )
        return View(flow, {t["task"]: t["name"] for t in self.tasks})


def manifest_mounts(manifest: Manifest, fstype: str, source: str, path: str = "/data") -> None:
    """Mount `path` on every host of the manifest."""
    for host in manifest.hosts:
        host.mounts = [{"path": path, "fstype": fstype, "source": source}]


class View:
    """A flow with names instead of numbers."""

    def __init__(self, flow: Flow, names: dict[int, str]) -> None:
        self.flow, self.names = flow, names
        self.files = {
            f["file"]: f | {"key": (f["path"].decode("utf-8", "surrogateescape"), f["version"])}
            for f in flow.files.to_pylist()
        }

    def _users(self, table: pa.Table) -> dict[tuple[str, int], dict[str, dict[str, Any]]]:
        found: dict[tuple[str, int], dict[str, dict[str, Any]]] = {}
        for row in table.to_pylist():
            key = self.files[row["file"]]["key"]
            assert self.names[row["task"]] not in found.get(key, {}), "listed twice"
            found.setdefault(key, {})[self.names[row["task"]]] = row
        return found

    @property
    def producers(self) -> dict[tuple[str, int], dict[str, dict[str, Any]]]:
        """(path, version) -> task name -> row."""
        return self._users(self.flow.producers)

    @property
    def consumers(self) -> dict[tuple[str, int], dict[str, dict[str, Any]]]:
        """(path, version) -> task name -> row."""
        return self._users(self.flow.consumers)

    @property
    def edges(self) -> dict[tuple[str, str, int, str], int]:
        """(producer, path, version, consumer) -> bytes."""
        return {key: row["bytes"] for key, row in self.edge_rows.items()}

    @property
    def edge_rows(self) -> dict[tuple[str, str, int, str], dict[str, Any]]:
        """(producer, path, version, consumer) -> row."""
        found = {}
        for row in self.flow.edges.to_pylist():
            path, version = self.files[row["file"]]["key"]
            key = (self.names[row["producer"]], path, version, self.names[row["consumer"]])
            assert key not in found, "listed twice"
            found[key] = row
        return found

    @property
    def roles(self) -> dict[tuple[str, int], str]:
        """(path, version) -> role."""
        return {f["key"]: f["role"] for f in self.files.values()}

    def file(self, path: str, version: int = 0) -> dict[str, Any]:
        """Return the row of a version."""
        return next(f for f in self.files.values() if f["key"] == (path, version))
