"""Swift/K: the run's log (`SCRIPT-RUNID.log`) and its wrapper logs (`SCRIPT-RUNID.d`).

The log needs `log4j.logger.swift=DEBUG`. It contains jobs, times, sites and, from 0.95 on, the
files of each job; the wrapper's `JOBID-info` contains the files in all versions. Based on the
sources of Swift/K; no Swift was run. The restart log (.rlog) names files but no tasks.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from tracehint.adapters.engines.emitters import EmitRequest, Emitted
from tracehint.adapters.engines.graph_base import (
    DeclaredGraph,
    GraphBuilder,
    folder_of,
    nanoseconds,
    raw_name,
)
from tracehint.adapters.engines.unpack import lines_of, read_lines, read_text
from tracehint.adapters.stores.base import Gap, merge_gaps
from tracehint.errors import UsageError
from tracehint.hintgen.hints.model import HintFile, Rule
from tracehint.hintgen.hints.template import HOLES, Template, parse
from tracehint.hintgen.text.escape import comment
from tracehint.version import __version__

_LINE = re.compile(r"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}[+-]\d{4}) [A-Z]+ +\S+ (.*)$")
_JOB = re.compile(
    r"(JOB_START|JOB_END|JOB_CANCELED|APPLICATION_EXCEPTION|THREAD_ASSOCIATION|JOB_TASK) "
    r"jobid=(\S+)(.*)$"
)
_STAGE_IN = re.compile(r"START jobid=(\S+) - Staging in files \[(.*)\]\s*$")
_STAGE_OUT = re.compile(
    r"FILE_STAGE_OUT_START srcname=(.*?) srcdir=.* destdir=(.*?) desthost=.* jobid=(\S+)\s*$"
)
_KNOWN = re.compile(
    rb"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}[+-]\d{4} [A-Z]+ +\S+ "
    rb"(?:JOB_|THREAD_ASSOCIATION|FILE_STAGE|SWIFTSCRIPT NAME|RUN_ID|.*jobid=)",
    re.MULTILINE,
)
_INFO = "-info"
_MAX_INFO = 8 << 20
_URL = re.compile(r"^[a-z]+://[^/]*/")


@dataclass
class _Job:
    """One job of the log; times in ns."""

    kind: str = ""
    command: str = ""
    host: str = ""
    start: int | None = None
    end: int | None = None
    status: int | None = None
    files: dict[tuple[str, bytes], None] = field(default_factory=dict)


def sniff(path: Path, head: bytes) -> bool:
    """Whether this is a log of Swift/K or a directory of wrapper logs."""
    if path.is_dir():
        return path.name.endswith(".d") and any(_list_wrapper_logs(path))
    return bool(_KNOWN.search(head))


def _list_wrapper_logs(folder: Path) -> list[str]:
    try:
        with os.scandir(folder) as entries:
            return sorted(
                e.name
                for e in entries
                if e.name.endswith(_INFO) and e.is_file(follow_symlinks=False)
            )
    except OSError:
        return []


def read(path: Path) -> DeclaredGraph:
    """Read one task per job of the log; a retried call has several jobs."""
    out = GraphBuilder("swift-k", folder_of(path))
    jobs: dict[str, _Job] = {}
    if not path.is_dir():
        _read_log(path, jobs)
    infos = path if path.is_dir() else path.with_suffix(".d")
    for name in _list_wrapper_logs(infos) if not infos.is_symlink() else []:
        _read_info(infos / name, jobs.setdefault(name.removesuffix(_INFO), _Job()))
    for task, job in jobs.items():
        kind = job.kind or task.rpartition("-")[0]
        out.task(
            task,
            name=task,
            type=kind,
            command=raw_name(job.command or kind),
            start_ns=job.start,
            end_ns=job.end,
            exit_status=job.status,
            host=job.host,
        )
        for direction, path_name in job.files:
            out.file(task, direction, path_name)
    if jobs and not any(job.files for job in jobs.values()):
        out.notes.append("the log names no files: keep the wrapper logs (alwaysTransferWrapperLog)")
    return out.graph()


def _read_log(path: Path, jobs: dict[str, _Job]) -> None:
    for line in read_lines(path):
        found = _LINE.match(line)
        if found is None:
            continue  # most lines of a debug log do not concern jobs
        message = found[2]
        event = _JOB.match(message)
        if event is not None:
            _record_event(jobs.setdefault(event[2], _Job()), event[1], event[3], _time(found[1]))
        elif (staged := _STAGE_IN.match(message)) is not None:
            job = jobs.setdefault(staged[1], _Job())
            for name in staged[2].split(", ") if staged[2] else []:
                job.files["in", raw_name(_URL.sub("", name))] = None
        elif (staged := _STAGE_OUT.match(message)) is not None:
            job = jobs.setdefault(staged[3], _Job())
            folder = _URL.sub("", staged[2])
            name = staged[1] if folder in ("", ".") else f"{folder}/{staged[1]}"
            job.files["out", raw_name(name)] = None


def _record_event(job: _Job, event: str, rest: str, time: int | None) -> None:
    host = re.search(r" host=(\S+)", rest)
    job.host = host[1] if host else job.host
    if event == "JOB_START":
        job.start = time
        kind = re.match(r" tr=(\S+)", rest)
        job.kind = kind[1] if kind else job.kind
        arguments = re.search(r" arguments=\[(.*?)\](?: tmpdir=| host=|$)", rest)
        words = arguments[1].replace(", ", " ") if arguments else ""
        job.command = f"{job.kind} {words}".strip()
    elif event in ("JOB_END", "JOB_CANCELED", "APPLICATION_EXCEPTION"):
        job.end = time
        job.status = 0 if event == "JOB_END" else 1


def _read_info(path: Path, job: _Job) -> None:
    """Add the data of the wrapper's log: `INF=a|b` and `OUTF=c` are the files of the job."""
    values: dict[str, str] = {}
    times: dict[str, int | None] = {}
    for line in lines_of(read_text(path, _MAX_INFO), path):
        key, equals, value = line.partition("=")
        if equals and key in ("EXEC", "STDIN", "STDOUT", "STDERR", "INF", "OUTF", "ARGS"):
            values.setdefault(key, value)
        elif line.startswith("Progress "):
            words = line.split()
            if len(words) >= 4:
                times.setdefault(words[3], _time(f"{words[1]} {words[2]}"))
    for key, direction in (("INF", "in"), ("OUTF", "out")):
        for name in values.get(key, "").split("|"):
            if name:
                job.files[direction, raw_name(name)] = None
    job.start = times.get("EXECUTE") if job.start is None else job.start
    job.end = times.get("EXECUTE_DONE") if job.end is None else job.end
    if job.status is None and "EXECUTE_DONE" in times:
        job.status = 0
    program = values.get("EXEC", "")
    job.kind = job.kind or program.rpartition("/")[2]
    arguments = values.get("ARGS", "").removeprefix("-a ")
    job.command = f"{program} {arguments}".strip() if program else job.command


def _time(text: str) -> int | None:
    """Parse `2015-06-01 12:00:00,123-0500`, or the same with a point and more digits."""
    try:
        short = re.sub(r"[.,](\d{1,6})\d*", r".\1", text)
        return nanoseconds(datetime.strptime(short, "%Y-%m-%d %H:%M:%S.%f%z").timestamp())
    except (ValueError, OverflowError, OSError):
        return None


# Swift/K: a policy file for Collective Data Management (`swift -cdm.file F`).
#
# A rule of the file is `rule REGEX POLICY ARGUMENTS`; the first that matches wins. Templates
# become Java regular expressions of plain ASCII without blanks, so no name from a trace can begin
# a line, a field or a comment.


# pattern -> (policy, directory in its arguments, reason)
POLICIES: dict[str, tuple[str, str, str]] = {
    "broadcast": ("BROADCAST", "local", "one copy on every node"),
    "pipeline": ("DIRECT", "shared", "no staging: written and read in place"),
    "stage_in": ("LOCAL cp", "shared", "copied to the one node that reads it"),
    "gather": ("GATHER", "", "outputs are collected before they leave the node"),
    "reduce": ("GATHER", "", "outputs are collected before they leave the node"),
}
GATHER_LIMIT = 500_000_000  # bytes; the value of the manual's example


def policy_file(hints: HintFile, *, local: str, shared: str) -> tuple[str, list[Gap]]:
    """Return the policy file's text and the hints that it cannot express.

    shared: path of the data on all nodes; empty: unknown, and policies that need it are left out.
    """
    for place in filter(None, (local, shared)):
        if not re.fullmatch(r"/[A-Za-z0-9_./+-]*", place):
            raise UsageError(
                f"the directory {place[:80]!r} is not allowed in a policy file",
                "Give --local-dir and --shared-dir: absolute, without blanks or quotes.",
            )
    lines: list[str] = []
    gaps: list[Gap] = []
    gathers = False
    for rule in sorted(hints.rules, key=lambda r: parse(r.template).specificity, reverse=True):
        statement, problem = _line(rule, local, shared)
        title = f"{rule.id} {rule.pattern}: {rule.template}"
        lines.append(f"# {comment(title)}")
        if statement is None:
            lines.append(f"# not expressible: {comment(problem)}")
            gaps.append(Gap(hint=rule.pattern, level="none", reason=problem))
        else:
            lines.append(statement)
            gathers |= statement.endswith(" GATHER")
    head = [f"# tracehint {__version__}: data policies for Swift/K, swift -cdm.file THIS-FILE"]
    if gathers:
        head += [
            f"property GATHER_LIMIT {GATHER_LIMIT}",
            f"property GATHER_DIR {local}",
            f"property GATHER_TARGET {shared}",
        ]
    return "\n".join([*head, *lines, "rule .* DEFAULT"]) + "\n", gaps


def _line(rule: Rule, local: str, shared: str) -> tuple[str | None, str]:
    """Return the rule's line and "", or None and the reason."""
    if rule.pattern not in POLICIES:
        return None, "Swift/K has no policy for this pattern"
    policy, place, _ = POLICIES[rule.pattern]
    if not shared and (place == "shared" or policy == "GATHER"):
        return None, "no directory that all nodes see: give --shared-dir"
    if policy == "GATHER" and rule.consumers:
        return None, "GATHER packs files into archives, and tasks of this run read them again"
    if rule.conditions.needs:
        return None, "the path alone does not identify the files"
    pattern = java_regex(parse(rule.template), [parse(text) for text in rule.exclude])
    if pattern is None:
        return None, "a name that is not UTF-8 is not allowed in a Java regular expression"
    where = {"local": f" {local}", "shared": f" {shared}", "": ""}[place]
    return f"rule {pattern} {policy}{where}", ""


def java_regex(template: Template, exclude: Iterable[Template] = ()) -> str | None:
    """Return an anchored regex for a path with any leading directories; None: not UTF-8."""
    body = _template_regex(template)
    others = [_template_regex(other) for other in exclude]
    if body is None or None in others:
        return None
    ahead = f"(?!(?:.*/)?(?:{'|'.join(filter(None, others))})$)" if others else ""
    return f"^{ahead}(?:.*/)?{body}$"


def _template_regex(template: Template) -> str | None:
    out = []
    for part in template.parts:
        if isinstance(part, str):
            out.append(f"(?:{HOLES[part].regex})")
            continue
        try:
            text = part.decode("utf-8")
        except UnicodeDecodeError:
            return None
        out.append("".join(map(_java_char, text)))
    return "".join(out)


def _java_char(char: str) -> str:
    """Return one character of a Java regex: letters, digits and `_-/` unchanged, others by code."""
    if char.isascii() and (char.isalnum() or char in "_-/"):
        return char
    if char == ".":
        return r"\."
    raw = char.encode("utf-16-be")
    return "".join(f"\\u{raw[i]:02x}{raw[i + 1]:02x}" for i in range(0, len(raw), 2))


# `--workflow-engine swift-k`: only the policy file.


LOCAL = "/dev/shm"  # tmpfs on every Linux node


def emit(hints: HintFile, request: EmitRequest) -> Emitted:
    """Return the policy file, for -o or standard output."""
    text, gaps = policy_file(hints, local=request.local_dir or LOCAL, shared=request.shared_dir)
    name = request.output.name if request.output else "F"
    return Emitted(
        files={request.output: text.encode()},
        gaps=merge_gaps(gaps),
        remarks=[f"Run: swift -cdm.file {name} WORKFLOW.swift"],
    )
