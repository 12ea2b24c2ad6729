"""Pegasus: the abstract workflow (workflow.yml) and the kickstart records of its run.

Given the workflow, a record file, or the submit directory that holds both. Needs PyYAML.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tracehint.adapters.engines.graph_base import (
    DeclaredGraph,
    GraphBuilder,
    bounded,
    folder_of,
    number,
    raw_name,
)
from tracehint.adapters.engines.kickstart import BEGIN, Invocation, find_outputs, read_records
from tracehint.adapters.engines.unpack import read_text
from tracehint.adapters.engines.yaml_text import load_yaml
from tracehint.errors import InputError

_LIMIT = 256 << 20
_MAX_NAMES = 10_000  # looked at in a directory
_DIRECTION = {"input": ("in",), "output": ("out",), "inout": ("in", "out"), "checkpoint": ()}


def sniff(path: Path, head: bytes) -> bool:
    """YAML with a Pegasus version at its start, a kickstart record, or a directory with one."""
    if path.is_dir():
        return (path / "braindump.yml").is_file() and _workflow_in(path) is not None
    return _is_workflow(head) or head[:4096].lstrip().startswith(BEGIN)


def _is_workflow(head: bytes) -> bool:
    return head.startswith((b"pegasus:", b"x-pegasus:")) and b"jobs:" in head


def _workflow_in(folder: Path) -> Path | None:
    """The workflow of a submit directory; links are not followed."""
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
    """The jobs with files and dependencies, and every invocation of them that is recorded."""
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
    """The invocations of each job, in the order of their start; damaged files are notes."""
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
    """The jobs of the workflow; their records are taken out of `records`."""
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
        out.notes.append(f"{len(records)} recorded jobs are not in the workflow (staging, cleanup)")


def _add_job(
    out: GraphBuilder, task: str, job: dict[str, Any], parents: list[str], records: list[Invocation]
) -> None:
    """One row per invocation; the last one has the files."""
    kind = str(job.get("name", job.get("type", "")))
    if not kind:
        kind = _plain(records[-1].transformation) if records else "job"
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
    """Declared files, with the sizes that were seen; then files that only a record has."""
    files: dict[tuple[str, bytes], int | None] = {}
    for use in _list(job.get("uses")):
        if isinstance(use, dict) and isinstance(use.get("lfn"), str):
            size = bounded(number(use.get("size")))
            for direction in _DIRECTION.get(str(use.get("type")), ()):
                files[direction, raw_name(use["lfn"])] = size
    for direction, name, size in records[-1].files if records else []:
        known = files.get((direction, name))
        files[direction, name] = known if size is None else size
    for (direction, name), size in files.items():
        out.file(task, direction, name, size)


def _plain(transformation: str) -> str:
    """`namespace::name:version` without what is around the name."""
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
