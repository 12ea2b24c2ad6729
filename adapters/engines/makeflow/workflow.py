"""A Makeflow workflow's graph for emitters (classic, JSON, JX): tasks with files, in order."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from tracehint.adapters.engines.makeflow.jx import entry_names, load_document
from tracehint.adapters.engines.makeflow.text import Task, parse_rules
from tracehint.adapters.paths import inside
from tracehint.errors import InputError
from tracehint.hintgen.match.match import Declared
from tracehint.hintgen.text.textfile import TextFile

_FILE = TextFile(kind="A workflow", limit="names-bytes", check="Check the path.")


@dataclass(frozen=True, kw_only=True)
class Workflow:
    """Tasks with the `text` of a classic file (as Latin-1), or the `data` of a JSON file."""

    tasks: tuple[Task, ...]
    text: str = ""
    data: dict[str, Any] | None = None

    @cached_property
    def files(self) -> list[bytes]:
        """Files below the working directory that tasks name, each once."""
        found: dict[bytes, None] = {}
        for task in self.tasks:
            found.update(dict.fromkeys(p for p in (*task.targets, *task.sources) if inside(p)))
        return list(found)

    def describe_files(self, peeks: Collection[tuple[str, str]] = ()) -> Declared:
        """Return the tasks and types that produce and consume each of `files`.

        `peeks` of a hint file: readers that only read headers are omitted, as in the run that the
        rules were learned from.
        """
        at = {path: i for i, path in enumerate(self.files)}
        types: list[str | None] = [None] * len(at)
        makers: list[list[str]] = [[] for _ in at]
        readers: list[list[str]] = [[] for _ in at]
        reading: list[list[str]] = [[] for _ in at]
        names = [f"{task.type}:{number}" for number, task in enumerate(self.tasks)]
        for task, name in zip(self.tasks, names, strict=True):  # names become parts of groups
            for path in dict.fromkeys(task.targets):
                if path in at:
                    types[at[path]] = task.type
                    makers[at[path]].append(name)
        for task, name in zip(self.tasks, names, strict=True):
            for path in dict.fromkeys(task.sources):
                if path in at and (types[at[path]] or "", task.type) not in peeks:
                    readers[at[path]].append(name)
                    reading[at[path]].append(task.type)
        return Declared(
            producer_types=types,
            consumer_types=_types(reading),
            producers=makers,
            consumers=readers,
        )


def _types(reading: Sequence[Sequence[str]]) -> list[list[str]]:
    return [sorted(set(types)) for types in reading]


def read_workflow(path: Path) -> Workflow:
    """Read a Makeflow file. Raise InputError with the position."""
    raw = _FILE.read(path)
    text = raw.decode("latin-1")
    if not text.lstrip().startswith("{") and path.suffix not in (".json", ".jx"):
        return Workflow(tasks=tuple(parse_rules(text)), text=text)
    data = _json(path, raw)
    rules_data = data.get("rules")
    if not isinstance(rules_data, list):
        raise InputError(f"{path} has no list of rules", "Give a Makeflow file (JSON or classic).")
    return Workflow(tasks=tuple(_task(path, i, raw) for i, raw in enumerate(rules_data)), data=data)


def _json(path: Path, raw: bytes) -> dict[str, Any]:
    data = load_document(raw.decode("utf-8", "surrogateescape"), path)
    if not isinstance(data, dict):
        raise InputError(f"{path} is not a JSON object", "Give a Makeflow file.")
    return data


def _task(path: Path, number: int, raw: Any) -> Task:
    if not isinstance(raw, dict):
        raise InputError(f"{path}: rule {number} is not an object", "Check the file.")
    command = raw.get("command")
    return Task(
        targets=tuple(entry_names(path, number, raw, "outputs")),
        sources=tuple(entry_names(path, number, raw, "inputs")),
        command=command if isinstance(command, str) else "",
        at=0 if isinstance(command, str) else None,
    )
