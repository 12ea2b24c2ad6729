"""Pegasus: the abstract workflow (workflow.yml) and the kickstart records of its run.

Input: the workflow, a record file, or the submit directory with both. Requires PyYAML.
"""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tracehint.adapters.engines.graph_base import (
    DeclaredGraph,
    GraphBuilder,
    bounded_int,
    folder_of,
    iso_time,
    nanoseconds,
    number,
    raw_name,
)
from tracehint.adapters.engines.unpack import read_text
from tracehint.adapters.engines.yaml_files import load_yaml
from tracehint.errors import InputError
from tracehint.schemas.wording import plural

_LIMIT = 256 << 20
_MAX_NAMES = 10_000  # examined in a directory
_DIRECTION = {"input": ("in",), "output": ("out",), "inout": ("in", "out"), "checkpoint": ()}


def sniff(path: Path, head: bytes) -> bool:
    """Whether this is a Pegasus workflow, a kickstart record, or a directory with a workflow."""
    if path.is_dir():
        return (path / "braindump.yml").is_file() and _workflow_in(path) is not None
    return _is_workflow(head) or head[:4096].lstrip().startswith(BEGIN)


def _is_workflow(head: bytes) -> bool:
    return head.startswith((b"pegasus:", b"x-pegasus:")) and b"jobs:" in head


def _workflow_in(folder: Path) -> Path | None:
    """Return the workflow of a submit directory; links are not followed."""
    try:
        names = sorted(p for p in folder.iterdir() if p.suffix in (".yml", ".yaml"))[:_MAX_NAMES]
        for path in names:
            if path.is_file() and not path.is_symlink():
                with path.open("rb") as stream:
                    if _is_workflow(stream.read(1 << 16)):
                        return path
    except OSError:
        pass
    return None


def read(path: Path) -> DeclaredGraph:
    """Read the jobs with files and dependencies, and all recorded invocations of them."""
    if path.is_dir():
        workflow, outputs = _workflow_in(path), find_outputs(path)
        folder = path / "x"
    elif _record_file(path):
        workflow, outputs, folder = _workflow_in(path.parent), [path], path
    else:
        workflow, outputs, folder = path, find_outputs(path.parent), path
    out = GraphBuilder("pegasus", folder_of(folder))
    records = _records(outputs, out)
    if workflow is not None:
        _add_workflow(out, workflow, records)
    elif not records:
        raise InputError(f"{path}: neither a workflow.yml nor a kickstart record", "Check it.")
    for task in sorted(records):
        _add_job(out, task, {}, [], records[task])
    return out.graph()


def _record_file(path: Path) -> bool:
    try:
        with path.open("rb") as stream:
            return stream.read(4096).lstrip().startswith(BEGIN)
    except OSError:
        return False


def _records(outputs: list[Path], out: GraphBuilder) -> dict[str, list[Invocation]]:
    """Return each job's invocations in order of start; damaged files become notes."""
    found: dict[str, list[Invocation]] = {}
    for path in outputs:
        try:
            for record in read_records(path):
                found.setdefault(record.task or path.name.partition(".out")[0], []).append(record)
        except InputError as error:
            out.notes.append(f"left out: {error.what}")
    for rows in found.values():
        rows.sort(key=lambda r: r.start_ns or 0)
    return found


def _add_workflow(out: GraphBuilder, path: Path, records: dict[str, list[Invocation]]) -> None:
    """Add the jobs of the workflow, and remove their records from `records`."""
    data = load_yaml(read_text(path, _LIMIT), path)
    jobs = data.get("jobs") if isinstance(data, dict) else None
    if not isinstance(jobs, list):
        raise InputError(f"{path}: no list of jobs", "Give the workflow.yml of Pegasus 5.")
    parents = _parents(data.get("jobDependencies"))
    for at, job in enumerate(jobs):
        if not isinstance(job, dict):
            out.notes.append(f"job {at} is not a mapping")
            continue
        task = str(job.get("id", at))
        _add_job(out, task, job, parents.get(task, []), records.pop(task, []))
    if records:
        out.notes.append(
            f"{plural(len(records), 'recorded job')} not in the workflow (staging, cleanup)"
        )


def _add_job(
    out: GraphBuilder, task: str, job: dict[str, Any], parents: list[str], records: list[Invocation]
) -> None:
    """Add one row per invocation; the last one gets the files."""
    kind = str(job.get("name", job.get("type", "")))
    if not kind:
        kind = _short_name(records[-1].transformation) if records else "job"
    words = [kind, *(str(w) for w in _list(job.get("arguments")))]
    for attempt, record in enumerate(records, 1):
        last = attempt == len(records)
        out.task(
            task if last else f"{task}#{attempt}",
            name=f"{kind} {task}",
            type=kind,
            command=record.command or raw_name(" ".join(words)),
            workdir=record.cwd,
            pid=record.pid,
            start_ns=record.start_ns,
            end_ns=record.end_ns,
            exit_status=record.status,
            attempt=attempt,
            parents=parents,
            host=record.host,
        )
    if not records:
        out.task(
            task,
            name=f"{kind} {task}",
            type=kind,
            command=raw_name(" ".join(words)),
            parents=parents,
        )
    _files(out, task, job, records)


def _files(out: GraphBuilder, task: str, job: dict[str, Any], records: list[Invocation]) -> None:
    """Add declared files with recorded sizes, then files that only a record contains."""
    files: dict[tuple[str, bytes], int | None] = {}
    for use in _list(job.get("uses")):
        if isinstance(use, dict) and isinstance(use.get("lfn"), str):
            size = bounded_int(number(use.get("size")))
            for direction in _DIRECTION.get(str(use.get("type")), ()):
                files[direction, raw_name(use["lfn"])] = size
    for direction, name, size in records[-1].files if records else []:
        known = files.get((direction, name))
        files[direction, name] = known if size is None else size
    for (direction, name), size in files.items():
        out.file(task, direction, name, size)


def _short_name(transformation: str) -> str:
    """Return the name in `namespace::name:version`."""
    return transformation.rpartition("::")[2].partition(":")[0] or "job"


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _parents(dependencies: Any) -> dict[str, list[str]]:
    result: dict[str, list[str]] = {}
    for entry in _list(dependencies):
        if isinstance(entry, dict):
            for child in _list(entry.get("children")):
                result.setdefault(str(child), []).append(str(entry.get("id")))
    return result


# Records of pegasus-kickstart (YAML, version 3): program, times, pid and files.
#
# A job's output file (`NAME.out.000`) contains one record, or one per task of a clustered job, and
# other sections after lines of dashes. The derivation is the job's id in workflow.yml.


BEGIN = b"- invocation:"
OUTPUT_FILE = re.compile(r"\.out(?:\.\d{3,})?$")
_RECORDS_LIMIT = 64 << 20
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
    """Return job output files in and below a submit directory; links are not followed.

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
            raise InputError(
                f"{folder}: more than {_MAX_FILES:,} job outputs", "Give a subdirectory."
            )
    return [p for p in found if not p.is_symlink() and _begins(p)]


def _begins(path: Path) -> bool:
    try:
        with path.open("rb") as stream:
            return BEGIN in stream.read(4096)
    except OSError:
        return False


def read_records(path: Path) -> Iterator[Invocation]:
    """Yield the invocations of one output file. Raises InputError."""
    text = read_text(path, _RECORDS_LIMIT)
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
        files=list(_files_of_record(_mapping(data.get("files")))),
    )


def _files_of_record(files: dict[Any, Any]) -> Iterator[tuple[str, bytes, int | None]]:
    for name, facts in files.items():
        row = _mapping(facts)
        logical = _text(row.get("lfn")) or _text(name)
        if name in _STREAMS or not logical or "error" in row:
            continue
        direction = "out" if _text(row.get("output")).lower() == "true" else "in"
        yield direction, raw_name(logical), _integer(row.get("size"))


def _status(status: dict[str, Any]) -> int | None:
    """Return the exit code, or 128 plus the signal number."""
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
