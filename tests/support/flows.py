"""Small runs as Analysis tables, labelled by the real labeller: tasks and their accesses.

run = Flowing()
a, b = run.task("make"), run.task("use")
run.write(a, "x.dat", size)
run.read(b, "x.dat", size, start, end)      # the whole file without a range
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from tests.support.rows import file_row, role, task_row
from tests.support.wfinstances import labelled
from tracehint.analyzer.model import CONSUMERS, FILES, PRODUCERS, TASKS, Analysis


class Flowing:
    """Collects tasks and accesses."""

    def __init__(self, nodes: int = 4) -> None:
        self.nodes = nodes
        self.tasks: list[dict[str, Any]] = []
        self.files: dict[str | bytes, int] = {}
        self.sizes: dict[int, int] = {}
        self.gone: set[str | bytes] = set()  # paths that the run deleted
        self.made: list[dict[str, Any]] = []
        self.used: list[dict[str, Any]] = []

    def task(self, kind: str) -> int:
        """Add a task of a type; tasks run one after the other."""
        number = len(self.tasks)
        name = f"{kind}_{number}"
        self.tasks.append(task_row(number, name, type=kind, command=kind, host="n"))
        return number

    def _access(
        self,
        rows: list[dict[str, Any]],
        task: int,
        path: str | bytes,
        size: int,
        start: int,
        end: int | None,
    ) -> dict[str, Any]:
        file = self.files.setdefault(path, len(self.files))
        self.sizes[file] = size
        end = size if end is None else end
        row = {"file": file, "task": task, "bytes": end - start, "unique_bytes": end - start,
               "ranges": [[start, end]], "how": ["read"], "first_s": 1.0 + len(rows) * 1e-6,
               "last_s": 8.0}  # fmt: skip  # a table
        rows.append(row)
        return row

    def write(
        self, task: int, path: str | bytes, size: int, start: int = 0, end: int | None = None
    ) -> None:
        """Add a write by `task` to [start, end) of a file of `size` bytes."""
        row = self._access(self.made, task, path, size, start, end)
        row |= {"owned_bytes": row["unique_bytes"], "superseded": False, "how": ["write"]}

    def read(
        self, task: int, path: str | bytes, size: int, start: int = 0, end: int | None = None
    ) -> None:
        """Add a read by `task` of [start, end) of a file of `size` bytes."""
        row = self._access(self.used, task, path, size, start, end)
        row |= {"cover": row["unique_bytes"] / max(1, size), "peek": False}

    def analysis(self) -> Analysis:
        """Return the run with edges and labels."""
        made, used = ({row["file"] for row in rows} for rows in (self.made, self.used))
        files = [
            file_row(
                f,
                path if isinstance(path, bytes) else path.encode(),
                self.sizes[f],
                deleted=path in self.gone,
                role=role(f in made, f in used),
            )
            for path, f in self.files.items()
        ]
        tables = {
            "tasks": pa.Table.from_pylist(self.tasks, TASKS),
            "files": pa.Table.from_pylist(files, FILES),
            "producers": pa.Table.from_pylist(self.made, PRODUCERS),
            "consumers": pa.Table.from_pylist(self.used, CONSUMERS),
        }
        return labelled(tables, self.nodes)
