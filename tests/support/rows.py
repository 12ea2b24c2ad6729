"""Rows of an analysis, with default values in the columns that a test does not set."""

from __future__ import annotations

from typing import Any

TASK = {
    "host": "node1", "site": "", "start_s": 0.0, "end_s": 9.0, "exit_status": 0, "attempt": 1,
    "processes": 1, "engine": False, "source": "observed",
}  # fmt: skip  # a table
FILE = {"version": 0, "other_paths": [], "role": None, "deleted": False, "exact_share": 1.0}


def task_row(task: int, name: str, **more: Any) -> dict[str, Any]:
    """Return a task whose type and command are its name."""
    return {"task": task, "name": name, "type": name, "command": name, **TASK, **more}


def file_row(file: int, path: bytes, size: int | None, **more: Any) -> dict[str, Any]:
    """Return a version of a file, alone in its lineage."""
    return {"file": file, "lineage": file, "path": path, "size_bytes": size, **FILE, **more}


def role(made: object, used: object) -> str:
    """Return the role of a file in the run, by its writers and readers."""
    return "input" if not made else "intermediate" if used else "output"
