"""WfFormat instances (WfCommons), versions 1.0 to 1.6, of any size.

Up to 1.4 a task contains its files and is identified by name; from 1.5 on `specification` lists
tasks and files, `execution` their runs, joined by id. File ids are not paths: they are used
unchanged, below the root `/`. Few instances contain start times: a task with only a runtime is
placed at the end of its parents (columns.py).
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterable, Iterator
from datetime import datetime
from pathlib import Path
from typing import IO, Any

from tracehint.adapters.engines.graph_base import (
    DeclaredGraph,
    bounded_int,
    iso_time,
    nanoseconds,
    number,
    processor_time,
)
from tracehint.adapters.engines.unpack import open_packed
from tracehint.adapters.engines.wfformat.columns import WfColumns
from tracehint.errors import InputError
from tracehint.limits import check, values_of

_ARRAYS = frozenset(
    {
        "workflow.tasks",
        "workflow.jobs",
        "workflow.specification.tasks",
        "workflow.specification.files",
        "workflow.execution.tasks",
        "workflow.machines",
        "workflow.execution.machines",
    }
)
_OBJECTS = frozenset({"workflow", "workflow.specification", "workflow.execution"})
_COUNTER = re.compile(r"_(?:ID\d+|\d{5,})$")
_DOUBLED = re.compile(r"^([A-Za-z0-9-]+)_\1(?:_.*)?$")
_DATES = ("%Y%m%dT%H%M%S%z", "%m-%d-%yT%H:%M:%SZ", "%m-%d-%YT%H:%M:%SZ")
_MAX_WORDS = 4096


def sniff(_path: Path, head: bytes) -> bool:
    """Whether the head is a JSON object with a workflow and a schema version."""
    return head.lstrip()[:1] == b"{" and (
        b'"schemaVersion"' in head or (b'"workflow"' in head and b'"rules"' not in head)
    )


def read(path: Path) -> DeclaredGraph:
    """Read the tasks with their files; sizes and, if given, bytes, times and machines."""
    found = _Contents()
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


class _Contents:
    """Contents of the file in columns: a text that occurs a million times is stored once."""

    def __init__(self) -> None:
        self.out = WfColumns()
        self.run: dict[str, Any] = {}
        self._invalid_entries = 0  # entries that are not tasks or files

    def take(self, where: str, value: Any) -> None:
        """Add one value of the file."""
        key = where.rpartition(".")[2]
        if where == "workflow.specification.tasks":
            self._task(value)
        elif where == "workflow.specification.files":
            if isinstance(value, dict) and isinstance(value.get("id"), str):
                self.out.size(value["id"], bounded_int(value.get("sizeInBytes")))
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
        self._invalid_entries += 1
        check("strange-rows", "the lists of tasks and files", self._invalid_entries)

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
            self.out.size(name, bounded_int(file.get("sizeInBytes", file.get("size"))))
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
        """Return the tables."""
        started = _time(self.run.get("executedAt"))
        span = number(self.run.get("makespanInSeconds", self.run.get("makespan")))
        end = started + round(span * 1e9) if started and span is not None and span >= 0 else None
        return self.out.graph(started or 0, bounded_int(end))


def _names(values: Any) -> list[str]:
    return [v for v in values if isinstance(v, str)] if isinstance(values, list) else []


def type_of(name: str) -> str:
    """Return the type: mProject of `mProject_ID0000004`, map of `map_map_reads_1_ID0000025`."""
    short = _COUNTER.sub("", name)
    doubled = _DOUBLED.match(short)
    return doubled[1] if doubled else short


def _execution(value: dict[str, Any]) -> dict[str, Any]:
    """Return a task's execution as arguments of WfColumns.ran."""
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
        "length_ns": None if runtime is None or runtime < 0 else bounded_int(round(runtime * 1e9)),
        "read_bytes": bounded_int(value.get("readBytes", value.get("bytesRead"))),
        "written_bytes": bounded_int(value.get("writtenBytes", value.get("bytesWritten"))),
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
    """Parse a date in any spelling that occurs (ISO 8601, compact, month first) to ns."""
    if not isinstance(text, str) or len(text) > 64:
        return None
    found = iso_time(text)
    for form in _DATES if found is None else ():
        try:
            return nanoseconds(datetime.strptime(text, form).timestamp())
        except (ValueError, OverflowError, OSError):
            continue
    return found


# Arrays of a JSON file of any size, one item at a time.
#
# The containers of the requested arrays are parsed here; everything else is decoded by
# the standard library, one item at a time. Memory depends on the largest item, not on the file.


CHUNK = 4 << 20
_BLANK = re.compile(r"[ \t\r\n]*")
_SCALAR_END = re.compile(r"[\s,\]}]")


class JsonStreamError(ValueError):
    """The text is not JSON, or an item is too large."""


class JsonStream:
    """Reader of one JSON document. `arrays` and `objects` are dotted paths: each item of an array
    is one event, objects are entered, and any other value is one event."""

    def __init__(self, stream: IO[bytes], arrays: frozenset[str], objects: frozenset[str]) -> None:
        self._stream, self._arrays, self._objects = stream, arrays, objects
        self._decoder = json.JSONDecoder()
        self._utf8 = codecs.getincrementaldecoder("utf-8")("replace")
        self._text, self._at, self._ended = "", 0, False
        self._checked = False  # whether the values in this text were counted

    def events(self) -> Iterator[tuple[str, Any]]:
        """Yield (path, value) in the order of the file. Raises JsonStreamError."""
        yield from self._value("")

    def _read_chunk(self) -> bool:
        if self._ended:
            return False
        chunk = self._stream.read(CHUNK)
        self._ended = not chunk
        self._text = self._text[self._at :] + self._utf8.decode(chunk, final=self._ended)
        self._at, self._checked = 0, False
        check("item-bytes", "an item", len(self._text) - CHUNK)
        return True

    def _peek(self) -> str:
        """Return the next character that is not blank; empty at the end."""
        while True:
            found = _BLANK.match(self._text, self._at)
            self._at = found.end() if found else self._at
            if self._at < len(self._text):
                return self._text[self._at]
            if not self._read_chunk():
                return ""

    def _expect(self, char: str) -> None:
        found = self._peek()
        if found != char:
            raise JsonStreamError(f"expected {char!r}, found {found!r}")
        self._at += 1

    def _decode(self) -> Any:
        """Decode one value; more text is read until the value is complete."""
        first = self._peek()
        want = len(self._text)
        while True:
            self._check_values()
            try:
                value, end = self._decoder.raw_decode(self._text, self._at)
            except RecursionError:
                raise JsonStreamError("nested too deeply") from None
            except ValueError as error:
                if not self._ended and self._grow(want):
                    want = len(self._text) * 2
                    continue
                raise JsonStreamError(f"not JSON: {error}") from None
            # a number may continue in the next chunk unless a delimiter follows
            if first in '{["tfn' or _SCALAR_END.match(self._text, end) or not self._read_chunk():
                self._at = end
                return value

    def _check_values(self) -> None:
        """Count values once per text: the rest after its first item has fewer."""
        if not self._checked and len(self._text) - self._at > CHUNK:  # else it is too short
            check("json-values", "an item", values_of(self._text[self._at :]) - CHUNK)
            self._checked = True

    def _grow(self, want: int) -> bool:
        """Read more text, twice as much each time, to decode a large item few times."""
        grown = False
        while not self._ended and (not grown or len(self._text) - self._at < want):
            grown = self._read_chunk()
        return grown

    def _value(self, path: str) -> Iterator[tuple[str, Any]]:
        first = self._peek()
        if first == "{" and (path in self._objects or not path):
            yield from self._object(path)
        elif first == "[" and path in self._arrays:
            yield from self._array(path)
        else:
            yield path, self._decode()

    def _object(self, path: str) -> Iterator[tuple[str, Any]]:
        self._expect("{")
        if self._peek() == "}":
            self._at += 1
            return
        while True:
            key = self._decode()
            if not isinstance(key, str):
                raise JsonStreamError("a key is not text")
            self._expect(":")
            yield from self._value(f"{path}.{key}" if path else key)
            if self._peek() == "}":
                self._at += 1
                return
            self._expect(",")

    def _array(self, path: str) -> Iterator[tuple[str, Any]]:
        self._expect("[")
        if self._peek() == "]":
            self._at += 1
            return
        while True:
            yield path, self._decode()
            if self._peek() == "]":
                self._at += 1
                return
            self._expect(",")
