"""WfFormat instances (WfCommons), versions 1.0 to 1.6, of any size.

Up to 1.4 a task holds its files and is known by its name; from 1.5 on tasks and files are listed
in `specification`, what happened in `execution`, joined by id. File ids are no paths: they are
kept as they are, below the root `/`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

from tracehint.adapters.engines.graph_base import (
    DeclaredGraph,
    GraphBuilder,
    bounded,
    nanoseconds,
    number,
    open_packed,
    raw_name,
)
from tracehint.adapters.engines.json_stream import JsonStream, JsonStreamError
from tracehint.errors import InputError

_ARRAYS = frozenset(
    {"workflow.tasks", "workflow.jobs", "workflow.specification.tasks",
     "workflow.specification.files", "workflow.execution.tasks", "workflow.machines",
     "workflow.execution.machines"}
)  # fmt: skip
_OBJECTS = frozenset({"workflow", "workflow.specification", "workflow.execution"})
_COUNTER = re.compile(r"_(?:ID\d+|\d{5,})$")
_DOUBLED = re.compile(r"^([A-Za-z0-9-]+)_\1(?:_.*)?$")
_DATES = ("%Y%m%dT%H%M%S%z", "%m-%d-%yT%H:%M:%SZ", "%m-%d-%YT%H:%M:%SZ")
_MAX_WORDS = 4096


def sniff(_path: Path, head: bytes) -> bool:
    """A JSON object with a workflow and a schema version."""
    return head.lstrip()[:1] == b"{" and (
        b'"schemaVersion"' in head or (b'"workflow"' in head and b'"rules"' not in head)
    )


def read(path: Path) -> DeclaredGraph:
    """The tasks with their files; sizes and, where given, bytes, times and machines."""
    found = _Found()
    try:
        with open_packed(path) as stream:
            for where, value in JsonStream(stream, _ARRAYS, _OBJECTS).events():
                found.take(where, value)
    except JsonStreamError as error:
        raise InputError(f"{path}: {error}", "Get the file again.") from None
    except (OSError, EOFError, ValueError) as error:
        raise InputError(f"{path}: cannot be unpacked: {error}", "Get the file again.") from None
    if not found.tasks:
        raise InputError(f"{path}: no tasks in it", "Give a WfFormat instance (1.0 to 1.6).")
    return found.graph()


class _Found:
    """What the file held. Texts that occur often are kept once."""

    def __init__(self) -> None:
        self.tasks: dict[str, dict[str, Any]] = {}
        self.executed: dict[str, dict[str, Any]] = {}
        self.sizes: dict[str, int | None] = {}
        self.run: dict[str, Any] = {}
        self.skipped = 0
        self._same: dict[str, str] = {}

    def take(self, where: str, value: Any) -> None:
        """One value of the file."""
        key = where.rpartition(".")[2]
        if where in ("workflow.tasks", "workflow.jobs"):
            self._old_task(value)
        elif where == "workflow.specification.tasks":
            self._task(value)
        elif where == "workflow.specification.files":
            if isinstance(value, dict) and isinstance(value.get("id"), str):
                self.sizes[self._keep(value["id"])] = bounded(value.get("sizeInBytes"))
        elif where == "workflow.execution.tasks":
            if isinstance(value, dict) and isinstance(value.get("id"), str):
                self.executed[value["id"]] = _execution(value)
        elif key in ("executedAt", "makespan", "makespanInSeconds") and "tasks" not in where:
            self.run[key] = value

    def _keep(self, text: str) -> str:
        return self._same.setdefault(text, text)

    def _names(self, values: Any) -> list[str]:
        if not isinstance(values, list):
            return []
        return [self._keep(v) for v in values if isinstance(v, str)]

    def _add(self, task: str, row: dict[str, Any]) -> None:
        if task in self.tasks:
            self.skipped += 1
        else:
            self.tasks[self._keep(task)] = row

    def _old_task(self, value: Any) -> None:
        if not isinstance(value, dict) or not isinstance(value.get("name"), str):
            self.skipped += 1
            return
        files = value.get("files")
        ins: list[str] = []
        outs: list[str] = []
        for file in files if isinstance(files, list) else []:
            if not isinstance(file, dict) or not isinstance(file.get("name"), str):
                continue
            folder = file.get("path")
            name = self._keep((folder if isinstance(folder, str) else "") + file["name"])
            self.sizes[name] = bounded(file.get("sizeInBytes", file.get("size")))
            (ins if file.get("link") == "input" else outs).append(name)
        self._add(value["name"], self._row(value["name"], value, ins, outs))
        self.executed[value["name"]] = _execution(value)

    def _task(self, value: Any) -> None:
        if not isinstance(value, dict):
            self.skipped += 1
            return
        task = value.get("id", value.get("name"))
        if not isinstance(task, str):
            self.skipped += 1
            return
        ins, outs = self._names(value.get("inputFiles")), self._names(value.get("outputFiles"))
        name = value["name"] if isinstance(value.get("name"), str) else task
        self._add(task, self._row(name, value, ins, outs))

    def _row(
        self, name: str, value: dict[str, Any], ins: list[str], outs: list[str]
    ) -> dict[str, Any]:
        return {
            "name": self._keep(name), "in": ins, "out": outs,
            "parents": self._names(value.get("parents")),
            "children": self._names(value.get("children")),
        }  # fmt: skip

    def graph(self) -> DeclaredGraph:
        """The tables."""
        out = GraphBuilder("wfformat", b"/")
        if self.skipped:
            out.notes.append(f"{self.skipped} tasks left out: no name, or a name that was used")
        above = {task: dict.fromkeys(row["parents"]) for task, row in self.tasks.items()}
        for task, row in self.tasks.items():
            for child in row.pop("children"):
                if child in above:
                    above[child][task] = None
        started = _time(self.run.get("executedAt"))
        span = number(self.run.get("makespanInSeconds", self.run.get("makespan")))
        paths: dict[str, bytes] = {}
        for task, row in self.tasks.items():
            ran = self.executed.get(task, {})
            out.task(task, name=task, type=type_of(row["name"]), parents=list(above[task]), **ran)
            for direction in ("in", "out"):
                for file in dict.fromkeys(row[direction]):
                    path = paths.get(file)
                    if path is None:
                        path = raw_name(file if file.startswith("/") else "/" + file)
                        paths[file] = path
                    out.file(task, direction, path, self.sizes.get(file), raw=True)
        end = started + round(span * 1e9) if started and span is not None and span >= 0 else None
        return out.graph(started or 0, bounded(end))


def type_of(name: str) -> str:
    """`mProject_ID0000004` is of type mProject, `map_map_reads_1_ID0000025` of type map."""
    short = _COUNTER.sub("", name)
    doubled = _DOUBLED.match(short)
    return doubled[1] if doubled else short


def _execution(value: dict[str, Any]) -> dict[str, Any]:
    """What the instance says of a task's run, as arguments of GraphBuilder.task."""
    command = value.get("command")
    words: Iterable[Any] = ()
    if isinstance(command, dict):
        words = _words(command.get("program"), command.get("arguments"))
    elif isinstance(value.get("arguments"), list):
        words = _words(None, value["arguments"])
    start = _time(value.get("executedAt"))
    runtime = number(value.get("runtimeInSeconds", value.get("runtime")))
    end = None
    if start is not None and runtime is not None and runtime >= 0:
        end = bounded(start + round(runtime * 1e9))
    machines = value.get("machines")
    machine = machines[0] if isinstance(machines, list) and machines else value.get("machine")
    return {
        "command": raw_name(" ".join(words)), "start_ns": start, "end_ns": end,
        "read_bytes": bounded(value.get("readBytes", value.get("bytesRead"))),
        "written_bytes": bounded(value.get("writtenBytes", value.get("bytesWritten"))),
        "host": machine[:253] if isinstance(machine, str) else "",
    }  # fmt: skip


def _words(program: Any, arguments: Any) -> Iterator[str]:
    if isinstance(program, str):
        yield program
    for word in arguments[:_MAX_WORDS] if isinstance(arguments, list) else []:
        if isinstance(word, (str, int, float)):
            yield str(word)


def _time(text: Any) -> int | None:
    """Nanoseconds of the spellings that occur: ISO 8601, compact, and month first."""
    if not isinstance(text, str) or len(text) > 64:
        return None
    for form in ("", *_DATES):
        try:
            when = datetime.strptime(text, form) if form else datetime.fromisoformat(text)
            return nanoseconds(when.timestamp())
        except (ValueError, OverflowError, OSError):
            continue
    return None
