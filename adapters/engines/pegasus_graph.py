"""Pegasus: the abstract workflow (workflow.yml). Needs PyYAML, which Pegasus brings itself."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

from tracehint.adapters.engines.graph_base import (
    DeclaredGraph,
    GraphBuilder,
    bounded,
    folder_of,
    raw_name,
    read_text,
)
from tracehint.errors import InputError, MissingDependencyError

_LIMIT = 256 << 20
_DIRECTION = {"input": ("in",), "output": ("out",), "inout": ("in", "out"), "checkpoint": ()}


def sniff(_path: Path, head: bytes) -> bool:
    """YAML with a Pegasus version at its start."""
    return head.startswith((b"pegasus:", b"x-pegasus:")) and b"jobs:" in head


def read(path: Path) -> DeclaredGraph:
    """The jobs, their files and dependencies."""
    data = _load(path)
    jobs = data.get("jobs") if isinstance(data, dict) else None
    if not isinstance(jobs, list):
        raise InputError(f"{path}: no list of jobs", "Give the workflow.yml of Pegasus 5.")
    out = GraphBuilder("pegasus", folder_of(path))
    parents = _parents(data.get("jobDependencies"))
    for number, job in enumerate(jobs):
        if not isinstance(job, dict):
            out.notes.append(f"job {number} is not a mapping")
            continue
        task = str(job.get("id", number))
        kind = str(job.get("name", job.get("type", "job")))
        words = [kind, *(str(w) for w in _list(job.get("arguments")))]
        out.task(task, name=f"{kind} {task}", type=kind, command=raw_name(" ".join(words)),
                 parents=parents.get(task, []))  # fmt: skip
        _files(out, task, job)
    return out.graph()


def _files(out: GraphBuilder, task: str, job: dict[str, Any]) -> None:
    for use in _list(job.get("uses")):
        if isinstance(use, dict) and isinstance(use.get("lfn"), str):
            for direction in _DIRECTION.get(str(use.get("type")), ()):
                out.file(task, direction, raw_name(use["lfn"]), bounded(use.get("size")))


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _parents(dependencies: Any) -> dict[str, list[str]]:
    result: dict[str, list[str]] = {}
    for entry in _list(dependencies):
        if isinstance(entry, dict):
            for child in _list(entry.get("children")):
                result.setdefault(str(child), []).append(str(entry.get("id")))
    return result


def _load(path: Path) -> Any:
    try:
        yaml: Any = importlib.import_module("yaml")
    except ImportError:
        raise MissingDependencyError(
            f"{path}: PyYAML is needed to read it", "pip install pyyaml"
        ) from None

    class NoAliases(yaml.SafeLoader):  # type: ignore[misc]
        """Aliases could make a small file endless."""

        def compose_node(self, parent: Any, index: Any) -> Any:
            if self.check_event(yaml.events.AliasEvent):
                raise InputError(f"{path}: YAML aliases are not read", "Write it without them.")
            return super().compose_node(parent, index)

    try:
        return yaml.load(read_text(path, _LIMIT), Loader=NoAliases)
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise InputError(f"{path}: not YAML: {str(error)[:200]}", "Check the file.") from None
