"""Snakemake: the records of `.snakemake/metadata`, the output of a dry run, the table of
`--detailed-summary`, or the graph of `--d3dag`, which has jobs and their order but no files."""

from __future__ import annotations

import base64
import binascii
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TypedDict

from tracehint.adapters.engines.graph_base import (
    DeclaredGraph,
    GraphBuilder,
    absolute,
    bounded_int,
    nanoseconds,
    number,
    raw_name,
)
from tracehint.adapters.engines.unpack import lines_of, parse_json, read_text
from tracehint.errors import InputError
from tracehint.schemas.wording import plural

_MAX_RECORD = 64 << 20
_MAX_RECORDS = 5_000_000
_D3DAG = re.compile(rb'\s*\{\s*"(?:nodes|links|edges)"\s*:\s*\[\s*\{')
_BUILDS = re.compile(rb"(?m)^Building DAG of jobs\.\.\.\r?$")
_DRY, _END = b"\nThis was a dry-run", 4096
_SUMMARY = ("output_file", "date", "rule")
_JOB = re.compile(r"(?:local)?(?:rule|checkpoint) (\S+):")
_MESSAGE = re.compile(r"(?m)^Job \d+: ")
_NO_FILE = re.compile(
    r"<TBD>|.* \((?:pipe|service|retrieve from storage|keep local|send to storage)\)"
)


def sniff(path: Path, head: bytes) -> bool:
    """Whether this is a workflow directory after a run, its .snakemake or metadata, or output."""
    if path.is_dir():
        return _metadata_folder(path) is not None
    if _BUILDS.search(head):
        return _DRY in head or _DRY in _end_of(path)  # not a log: records contain more
    return head.startswith(b"output_file\tdate\trule") or bool(_D3DAG.match(head))


def _end_of(path: Path) -> bytes:
    try:
        with path.open("rb") as stream:
            stream.seek(-min(_END, path.stat().st_size), os.SEEK_END)
            return stream.read()
    except OSError:
        return b""


def _metadata_folder(path: Path) -> Path | None:
    for folder in (path / ".snakemake" / "metadata", path / "metadata", path):
        if folder.name == "metadata" and folder.is_dir() and not folder.is_symlink():
            inside = folder.absolute().parent.name == ".snakemake"
            return folder if inside else None
    return None


def read(path: Path) -> DeclaredGraph:
    """Read one task per job. Outputs of one job share rule, command, start and job hash."""
    if not path.is_dir():
        return read_printed(path, path.parent)
    folder = _metadata_folder(path)
    if folder is None:
        raise InputError(f"{path}: no .snakemake/metadata", "Give the workflow's directory.")
    out = GraphBuilder("snakemake", os.fsencode(folder.absolute().parent.parent))
    jobs: dict[tuple[Any, ...], dict[str, Any]] = {}
    for file in _records(folder):
        _add_record(file, folder, jobs, out)
    spent = resources_of(folder, out.notes)
    for at, job in enumerate(sorted(jobs.values(), key=_order)):
        _add_job(out, f"s{at}", job, spent)
    return out.graph()


def read_printed(path: Path, directory: Path) -> DeclaredGraph:
    """Read Snakemake's output from a run in this directory."""
    text, out = read_text(path), GraphBuilder("snakemake", absolute(directory))
    if text.lstrip()[:1] == "{":
        return _read_d3dag(path, text, out)
    if text.startswith(_SUMMARY[0]):
        return _read_summary(path, text, out)
    return _read_dry_run(path, text, out)


def _order(job: dict[str, Any]) -> tuple[int, list[bytes]]:
    return (job["start"] or 0, job["outputs"])


def _records(folder: Path) -> list[Path]:
    """Return record files; long names are split into folders with @. No link is followed."""
    found: list[Path] = []
    for where, folders, files in os.walk(folder, followlinks=False):
        folders[:] = sorted(f for f in folders if f.startswith("@"))
        found += (Path(where) / f for f in sorted(files))
        if len(found) > _MAX_RECORDS:
            raise InputError(f"{folder}: more than {_MAX_RECORDS:,} records", "Split the workflow.")
    return [f for f in found if not f.is_symlink()]


def _output_of(file: Path, folder: Path) -> bytes | None:
    encoded = "".join(p.removeprefix("@") for p in file.relative_to(folder).parts)
    try:
        return base64.b64decode(encoded.encode(), validate=True)
    except (binascii.Error, ValueError):
        return None


def _names(given: Any) -> list[Any]:
    return given if isinstance(given, list) else []


def _add_record(
    file: Path, folder: Path, jobs: dict[tuple[Any, ...], dict[str, Any]], out: GraphBuilder
) -> None:
    output = _output_of(file, folder)
    try:
        record = parse_json(read_text(file, _MAX_RECORD), file)
    except InputError as error:
        out.notes.append(error.what)
        return
    if output is None or not isinstance(record, dict):
        out.notes.append(f"{file.name}: not a record of an output")
        return
    texts = {
        k: record.get(k) if isinstance(record.get(k), str) else "" for k in ("rule", "shellcmd")
    }
    start, end = nanoseconds(record.get("starttime")), nanoseconds(record.get("endtime"))
    inputs, logs = _names(record.get("input")), _names(record.get("log"))
    # Times differ per output, so only the hash distinguishes jobs.
    job_hash = record.get("job_hash")
    apart = start if job_hash is None else str(job_hash)
    key = (texts["rule"], texts["shellcmd"], apart, tuple(map(str, inputs)))
    job = jobs.setdefault(
        key,
        {
            "outputs": [],
            "inputs": inputs,
            "logs": logs,
            "start": start,
            "end": end,
            "incomplete": record.get("incomplete") is True,
            **texts,
        },
    )
    job["outputs"].append(output)
    job["start"] = min((t for t in (job["start"], start) if t is not None), default=None)
    job["end"] = max((t for t in (job["end"], end) if t is not None), default=None)


def _add_job(
    out: GraphBuilder, task: str, job: dict[str, Any], spent: Mapping[bytes, JobResources]
) -> None:
    start, end = job["start"], job["end"]
    if start is not None and end is not None and end < start:
        start, end = end, start  # file times can precede the job's start
    outputs = sorted(job["outputs"])
    out.task(
        task,
        name=outputs[0].decode("utf-8", "backslashreplace"),
        type=job["rule"],
        command=raw_name(job["shellcmd"]),
        start_ns=start,
        end_ns=end,
        exit_status=None if job["incomplete"] else 0,
        **next((spent[name] for name in outputs if name in spent), JobResources()),
    )
    for name in dict.fromkeys(n for n in job["inputs"] if isinstance(n, str)):
        out.file(task, "in", raw_name(name))
    for name in outputs:
        out.file(task, "out", name)
    for name in dict.fromkeys(n for n in job["logs"] if isinstance(n, str)):
        out.file(task, "out", raw_name(name))


def _read_d3dag(path: Path, text: str, out: GraphBuilder) -> DeclaredGraph:
    """Read the graph: nodes are jobs; an edge leads from a file's producer to its consumer."""
    data = parse_json(text, path)
    nodes, edges = data.get("nodes"), data.get("edges", data.get("links"))
    if not isinstance(nodes, list) or not isinstance(edges, list):
        raise InputError(f"{path}: no nodes and edges", "Use: snakemake --d3dag")
    parents: dict[str, list[str]] = {}
    for edge in edges:
        if isinstance(edge, dict) and {"u", "v"} <= edge.keys():
            parents.setdefault(str(edge["v"])[:64], []).append(f"s{str(edge['u'])[:64]}")
    for at, node in enumerate(nodes):
        value = node.get("value") if isinstance(node, dict) else None
        if not isinstance(value, dict):
            out.notes.append(f"node {at} is not a job")
            continue
        job, rule = str(node.get("id", value.get("jobid", at)))[:64], value.get("rule")
        label = value.get("label")
        rule = rule if isinstance(rule, str) else ""
        name = " ".join(label.split()) if isinstance(label, str) else rule
        out.task(f"s{job}", name=name, type=rule, parents=parents.get(job, []))
    return out.graph()


def _read_dry_run(path: Path, text: str, out: GraphBuilder) -> DeclaredGraph:
    """Read the jobs that would run and have outputs (unlike `all`). File names are separated by a
    comma and a space: a name that contains these is read as two."""
    at = -1
    for at, job in enumerate(_jobs(text)):
        out.task(f"s{at}", name=job["output"].partition(", ")[0], type=job.get("rule", ""))
        for way, key in (("in", "input"), ("out", "output")):
            for name in dict.fromkeys(job.get(key, "").split(", ")):
                if name and not _NO_FILE.fullmatch(name):
                    out.file(f"s{at}", way, raw_name(name))
    if at < 0:
        raise InputError(f"{path}: no jobs", "Use: snakemake -n, or --detailed-summary")
    if hidden := len(_MESSAGE.findall(text)):
        out.notes.append(f"no files known of {plural(hidden, 'job')} whose rule has a `message:`")
    return out.graph()


def _read_summary(path: Path, text: str, out: GraphBuilder) -> DeclaredGraph:
    header, *lines = lines_of(text, path)
    columns = header.rstrip("\r").split("\t")
    if tuple(columns[:3]) != _SUMMARY or "input-file(s)" not in columns:
        raise InputError(f"{path}: not a detailed summary", "Use: snakemake --detailed-summary")
    jobs: dict[tuple[str, ...], list[dict[str, str]]] = {}
    for at, line in enumerate(lines, 2):
        fields = line.rstrip("\r").split("\t")
        if len(fields) == len(columns):
            row = dict(zip(columns, fields, strict=True))
            key = (row["rule"], row.get("shellcmd", ""), row["input-file(s)"])
            jobs.setdefault(key if row.get("shellcmd", "-") != "-" else (*key, str(at)), []).append(
                row
            )
        elif line.strip():
            out.bad_line(at)
    for at, rows in enumerate(jobs.values()):
        task, first = f"s{at}", rows[0]
        command = first.get("shellcmd", "")
        rule = "" if first["rule"] == "-" else first["rule"]
        out.task(
            task,
            name=first["output_file"],
            type=rule,
            command=b"" if command == "-" else raw_name(command),
        )
        for name in dict.fromkeys(first["input-file(s)"].split(",")):
            if name and name != "-":
                out.file(task, "in", raw_name(name))
        for row in rows:
            out.file(task, "out", raw_name(row["output_file"]))
    return out.graph()


# Requested resources, from the logs of runs: one block per job, with `threads` if there are more
# than one; and used resources, from `benchmark:` files, which the logs name.
#
# Benchmarks are read only below the workflow's directory. Snakemake samples: for a job without
# a sample it writes 0 or NA, which counts as unknown.


_MAX_LOGS, _MAX_LOG, _MAX_BENCHMARK = 1000, 256 << 20, 1 << 20
_MAX_S, _MAX_MB = 1e9, 1e9
_MEMORY = re.compile(r"(?:^|, )mem_(?:mib=(\d{1,12})|mb=(\d{1,12})(?!.*mem_mib=\d))")


class JobResources(TypedDict, total=False):
    """Known resources of a job, as arguments of GraphBuilder.task."""

    cpu_ns: int | None
    cores: int | None
    memory_bytes: int | None
    peak_bytes: int | None


def resources_of(metadata: Path, notes: list[str]) -> dict[bytes, JobResources]:
    """Map outputs to the resources in logs and benchmarks; `metadata`: the folder of records."""
    top = metadata.absolute().parent.parent
    folder = metadata.absolute().parent / "log"
    found: dict[bytes, JobResources] = {}
    try:
        logs = sorted(p for p in folder.iterdir() if p.name.endswith(".snakemake.log"))
    except OSError:
        return found
    if len(logs) > _MAX_LOGS:
        notes.append(f"of {len(logs)} logs the last {_MAX_LOGS} are looked into for resources")
    for log in logs[-_MAX_LOGS:]:
        try:
            text = "" if log.is_symlink() else read_text(log, _MAX_LOG)
        except InputError as error:
            notes.append(error.what)
            continue
        for job in _jobs(text):
            memory = _MEMORY.search(job.get("resources", ""))
            known = (
                _read_benchmarks(top, job["benchmark"]) if "benchmark" in job else JobResources()
            )
            known["cores"] = bounded_int(number(job.get("threads", 1)), 32)
            if memory is not None:
                mib, mb = memory.groups()
                known["memory_bytes"] = int(mib) << 20 if mib else int(mb) * 1_000_000
            for name in job["output"].split(", "):
                found[raw_name(name)] = known
    return found


def _jobs(text: str) -> Iterator[dict[str, str]]:
    """Yield the fields of each job with outputs in a log."""
    job: dict[str, str] = {}
    for line in [*text.splitlines(), ""]:
        if line.startswith("    "):
            key, _, value = line.strip().partition(": ")
            job[key] = value
            continue
        if "output" in job:
            yield job
        begun = _JOB.fullmatch(line)
        job = {"rule": begun[1]} if begun else {}


def _read_benchmarks(top: Path, name: str) -> JobResources:
    """Return the CPU time of all repetitions in a benchmark (ns) and the largest peak memory; empty
    if the file cannot be read."""
    path = Path(os.path.normpath(top / name))
    try:
        real = path.resolve()
        if not real.is_relative_to(top.resolve()) or not real.is_file():
            return JobResources()
        head, *rows = [line.split("\t") for line in read_text(real, _MAX_BENCHMARK).splitlines()]
        columns = [dict(zip(head, row, strict=False)) for row in rows]
    except (InputError, OSError, ValueError):  # a NUL in the name
        return JobResources()
    seconds = _numbers(columns, "cpu_time")
    most = max(_numbers(columns, "max_rss"), default=0.0)
    return {
        "cpu_ns": round(sum(seconds) * 1e9) if 0 < sum(seconds) < _MAX_S else None,
        "peak_bytes": round(most * (1 << 20)) if 0 < most < _MAX_MB else None,
    }


def _numbers(rows: list[dict[str, str]], column: str) -> list[float]:
    """Return the numbers of a column; empty if one of them is invalid."""
    found = [number(row.get(column, "")) for row in rows]
    return [value for value in found if value is not None] if None not in found else []
