"""WfFormat instances (WfCommons), versions 1.0 to 1.6, of any size.

Up to 1.4 a task holds its files and is known by its name; from 1.5 on tasks and files are listed
in `specification`, what happened in `execution`, joined by id. File ids are no paths: they are
kept as they are, below the root `/`. Few instances say when a task began: where only its runtime
is known it is placed at the end of its parents (schedule.py).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

from tracehint.adapters.engines.graph_base import (
    DeclaredGraph,
    bounded,
    iso_time,
    nanoseconds,
    number,
    processor_time,
)
from tracehint.adapters.engines.json_stream import JsonStream, JsonStreamError
from tracehint.adapters.engines.unpack import open_packed
from tracehint.adapters.engines.wfformat_columns import WfColumns
from tracehint.errors import InputError
from tracehint.limits import check

_ARRAYS = frozenset(
    {"workflow.tasks", "workflow.jobs", "workflow.specification.tasks",
     "workflow.specification.files", "workflow.execution.tasks", "workflow.machines",
     "workflow.execution.machines"}
)  # fmt: skip  # a table
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
    except InputError as error:
        raise InputError(f"{path}: {error.what}", error.remedy) from None
    except JsonStreamError as error:
        raise InputError(f"{path}: {error}", "Get the file again.") from None
    except (OSError, EOFError, ValueError) as error:
        raise InputError(f"{path}: cannot be unpacked: {error}", "Get the file again.") from None
    if not found.out.count:
        raise InputError(f"{path}: no tasks in it", "Give a WfFormat instance (1.0 to 1.6).")
    return found.graph()


class _Found:
    """What the file held, in columns: a text that occurs a million times is kept once."""

    def __init__(self) -> None:
        self.out = WfColumns()
        self.run: dict[str, Any] = {}
        self._strange = 0  # entries that are no tasks or files

    def take(self, where: str, value: Any) -> None:
        """One value of the file."""
        key = where.rpartition(".")[2]
        if where == "workflow.specification.tasks":
            self._task(value)
        elif where == "workflow.specification.files":
            if isinstance(value, dict) and isinstance(value.get("id"), str):
                self.out.size(value["id"], bounded(value.get("sizeInBytes")))
            else:
                self._skip()
        elif where == "workflow.execution.tasks":
            if isinstance(value, dict) and isinstance(value.get("id"), str):
                self.out.ran(value["id"], **_execution(value))
            else:
                self._skip()
        elif where in ("workflow.tasks", "workflow.jobs"):
            self._old_task(value)
        elif key in ("executedAt", "makespan", "makespanInSeconds") and "tasks" not in where:
            self.run[key] = value

    def _skip(self, tasks: int = 0) -> None:
        self.out.skipped += tasks
        self._strange += 1
        check("strange-rows", "the lists of tasks and files", self._strange)

    def _old_task(self, value: Any) -> None:
        if not isinstance(value, dict) or not isinstance(value.get("name"), str):
            self._skip(tasks=1)
            return
        files = value.get("files")
        ins: list[str] = []
        outs: list[str] = []
        for file in files if isinstance(files, list) else []:
            if not isinstance(file, dict) or not isinstance(file.get("name"), str):
                continue
            folder = file.get("path")
            name = (folder if isinstance(folder, str) else "") + file["name"]
            self.out.size(name, bounded(file.get("sizeInBytes", file.get("size"))))
            (ins if file.get("link") == "input" else outs).append(name)
        self._add(value["name"], value["name"], value, ins, outs)
        self.out.ran(value["name"], **_execution(value))

    def _task(self, value: Any) -> None:
        task = value.get("id", value.get("name")) if isinstance(value, dict) else None
        if not isinstance(task, str):
            self._skip(tasks=1)
            return
        ins, outs = _names(value.get("inputFiles")), _names(value.get("outputFiles"))
        name = value["name"] if isinstance(value.get("name"), str) else task
        self._add(task, name, value, ins, outs)

    def _add(
        self, task: str, name: str, value: dict[str, Any], ins: list[str], outs: list[str]
    ) -> None:
        parents, children = _names(value.get("parents")), _names(value.get("children"))
        self.out.task(task, type_of(name), parents, children, ins, outs)

    def graph(self) -> DeclaredGraph:
        """The tables."""
        started = _time(self.run.get("executedAt"))
        span = number(self.run.get("makespanInSeconds", self.run.get("makespan")))
        end = started + round(span * 1e9) if started and span is not None and span >= 0 else None
        return self.out.graph(started or 0, bounded(end))


def _names(values: Any) -> list[str]:
    return [v for v in values if isinstance(v, str)] if isinstance(values, list) else []


def type_of(name: str) -> str:
    """`mProject_ID0000004` is of type mProject, `map_map_reads_1_ID0000025` of type map."""
    short = _COUNTER.sub("", name)
    doubled = _DOUBLED.match(short)
    return doubled[1] if doubled else short


def _execution(value: dict[str, Any]) -> dict[str, Any]:
    """What the instance says of a task's run, as arguments of WfColumns.ran."""
    command = value.get("command")
    words: Iterable[Any] = ()
    if isinstance(command, dict):
        words = _words(command.get("program"), command.get("arguments"))
    elif isinstance(value.get("arguments"), list):
        words = _words(None, value["arguments"])
    runtime = number(value.get("runtimeInSeconds", value.get("runtime")))
    machines = value.get("machines")
    machine = machines[0] if isinstance(machines, list) and machines else value.get("machine")
    return {
        "command": " ".join(words),
        "start_ns": _time(value.get("executedAt")),
        "length_ns": None if runtime is None or runtime < 0 else bounded(round(runtime * 1e9)),
        "read_bytes": bounded(value.get("readBytes", value.get("bytesRead"))),
        "written_bytes": bounded(value.get("writtenBytes", value.get("bytesWritten"))),
        "cpu_ns": processor_time(number(value.get("avgCPU")), runtime),
        "host": machine[:253] if isinstance(machine, str) else "",
    }


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
    found = iso_time(text)
    for form in _DATES if found is None else ():
        try:
            return nanoseconds(datetime.strptime(text, form).timestamp())
        except (ValueError, OverflowError, OSError):
            continue
    return found
