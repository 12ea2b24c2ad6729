"""Records of pegasus-kickstart (YAML, version 3): what ran, when, as which pid, and its files.

A job's output file (`NAME.out.000`) holds one record, one per task of a clustered job, and parts
of other kinds behind lines of dashes. The derivation is the job's id in workflow.yml.
"""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tracehint.adapters.engines.graph_base import iso_time, nanoseconds, number, raw_name
from tracehint.adapters.engines.unpack import read_text
from tracehint.adapters.engines.yaml_text import load_yaml
from tracehint.errors import InputError

BEGIN = b"- invocation:"
OUTPUT_FILE = re.compile(r"\.out(?:\.\d{3,})?$")
_LIMIT = 64 << 20
_MAX_FILES = 1_000_000
_DEPTH = 4  # submit directories have two levels of folders
_RECORD = re.compile(r"^- invocation:", re.MULTILINE)
_PART = re.compile(r"^(?:-{6,}.*|\[(?:cluster|seqexec)-.*)$", re.MULTILINE)
_STREAMS = frozenset({"stdin", "stdout", "stderr", "metadata"})


@dataclass(frozen=True, kw_only=True)
class Invocation:
    """One invocation. Times in ns; files as (direction, logical name, size in bytes or None)."""

    task: str
    transformation: str
    start_ns: int | None
    end_ns: int | None
    pid: int | None
    status: int | None
    host: str
    cwd: bytes | None
    command: bytes
    files: list[tuple[str, bytes, int | None]] = field(default_factory=list)


def find_outputs(folder: Path) -> list[Path]:
    """Job output files in and below a submit directory; links are not followed.

    Raises InputError when there are too many.
    """
    found: list[Path] = []
    top = os.fspath(folder)
    for where, folders, names in os.walk(top, followlinks=False):
        if where[len(top) :].count(os.sep) >= _DEPTH:
            folders.clear()
        folders.sort()
        found += [Path(where) / n for n in sorted(names) if OUTPUT_FILE.search(n)]
        if len(found) > _MAX_FILES:
            raise InputError(f"{folder}: more than {_MAX_FILES:,} job outputs", "Give a part.")
    return [p for p in found if not p.is_symlink() and _begins(p)]


def _begins(path: Path) -> bool:
    try:
        with path.open("rb") as stream:
            return BEGIN in stream.read(4096)
    except OSError:
        return False


def read_records(path: Path) -> Iterator[Invocation]:
    """The invocations of one output file. Raises InputError."""
    text = read_text(path, _LIMIT)
    begins = [m.start() for m in _RECORD.finditer(text)]
    for begin, end in itertools.pairwise([*begins, len(text)]):
        part = text[begin:end]
        other = _PART.search(part)
        data = load_yaml(part[: other.start()] if other else part, path)
        if isinstance(data, list) and data and isinstance(data[0], dict):
            yield _record(data[0])


def _record(data: dict[str, Any]) -> Invocation:
    job = _mapping(data.get("mainjob"))
    machine, program = _mapping(data.get("machine")), _mapping(job.get("executable"))
    start = iso_time(job.get("start")) or iso_time(data.get("start"))
    length = nanoseconds(job.get("duration", data.get("duration")))
    words = job.get("argument_vector")
    argv = [_text(program.get("file_name")), *(words if isinstance(words, list) else [])]
    cwd = _text(data.get("cwd"))
    return Invocation(
        task=_text(data.get("derivation")),
        transformation=_text(data.get("transformation")),
        start_ns=start,
        end_ns=None if start is None or length is None else start + length,
        pid=_integer(job.get("pid")),
        status=_status(_mapping(job.get("status"))),
        host=_text(machine.get("uname_nodename")) or _text(data.get("hostaddr")),
        cwd=raw_name(cwd) if cwd.startswith("/") else None,
        command=raw_name(" ".join(w for w in argv if isinstance(w, str) and w)),
        files=list(_files(_mapping(data.get("files")))),
    )


def _files(files: dict[Any, Any]) -> Iterator[tuple[str, bytes, int | None]]:
    for name, facts in files.items():
        row = _mapping(facts)
        logical = _text(row.get("lfn")) or _text(name)
        if name in _STREAMS or not logical or "error" in row:
            continue
        direction = "out" if _text(row.get("output")).lower() == "true" else "in"
        yield direction, raw_name(logical), _integer(row.get("size"))


def _status(status: dict[str, Any]) -> int | None:
    """The exit code, or 128 and the signal's number."""
    code = _integer(status.get("regular_exitcode"))
    if code is not None:
        return code
    for key in ("signal_number", "signalled_signal", "signal"):
        signal = _integer(status.get(key))
        if signal is not None:
            return 128 + signal
    return _integer(status.get("raw"))


def _mapping(value: Any) -> dict[Any, Any]:
    return value if isinstance(value, dict) else {}


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _integer(value: Any) -> int | None:
    found = number(value)
    return None if found is None else int(found)
