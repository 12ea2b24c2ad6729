"""The tasks of a planned workflow, for `tracehint place --parts`: one look, however many they are.

tracehint-parts 1 <number of tasks, 10 digits>\n     29 bytes
<offset, 11 digits> <length, 11 digits>\n            24 bytes for each task
{"part": 3, "inputs": ["a.dat", ...]}\n              JSON records; part null: none
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tracehint.errors import InputError, UsageError
from tracehint.hintgen.hints.pathtext import to_bytes, to_text

HEADER, INDEX = 29, 24
MAX_RECORD = 64 << 20  # bytes of one task's record that are read
_HEAD = re.compile(rb"tracehint-parts 1 (\d{10})\n")
_ROW = re.compile(rb"(\d{11}) (\d{11})\n")
_REMEDY = "Write it again: tracehint emit HINTS --workflow-engine ..."


@dataclass(frozen=True)
class Placed:
    """One task: its part (None: it may run anywhere) and the paths that it reads."""

    part: int | None
    inputs: tuple[bytes, ...]


def encode(tasks: Sequence[Placed]) -> bytes:
    """The table's bytes."""
    records = [
        json.dumps({"part": task.part, "inputs": [to_text(path) for path in task.inputs]}).encode()
        + b"\n"
        for task in tasks
    ]
    at = HEADER + INDEX * len(records)
    index = []
    for record in records:
        index.append(b"%011d %011d\n" % (at, len(record)))
        at += len(record)
    return b"".join([b"tracehint-parts 1 %010d\n" % len(records), *index, *records])


def read_task(path: Path, task: int) -> Placed:
    """The task's record. Raises InputError: not such a table; UsageError: no such task."""
    try:
        with path.open("rb") as stream:
            head = _HEAD.fullmatch(stream.read(HEADER))
            if head is None:
                raise _bad(path)
            if task >= int(head[1]):
                raise UsageError(f"{path} has no task {task}", f"It has {int(head[1])}, from 0.")
            stream.seek(HEADER + INDEX * task)
            row = _ROW.fullmatch(stream.read(INDEX))
            if row is None or int(row[2]) > MAX_RECORD:
                raise _bad(path)
            stream.seek(int(row[1]))
            return _record(path, stream.read(int(row[2])))
    except OSError as error:
        raise InputError(f"{path}: {os.strerror(error.errno or 0)}", _REMEDY) from error


def _record(path: Path, raw: bytes) -> Placed:
    try:
        data = json.loads(raw)
        part, inputs = data["part"], data["inputs"]
        if not (part is None or (type(part) is int and part >= 0)) or type(inputs) is not list:
            raise _bad(path)
        return Placed(part, tuple(to_bytes(text) for text in inputs))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise _bad(path) from error


def _bad(path: Path) -> InputError:
    return InputError(f"{path} is no table of parts", _REMEDY)
