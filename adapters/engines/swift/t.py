"""Swift/T: a module with location helpers and, per rule, the annotated call as a comment.

Calls are in the user's own script, so they can only be shown. The code in this file is constant,
except for two tables: hosts from `tracehint locate --format json` (`--locations FILE`) and tasks of
a plan (`--hosts FILE`); their strings pass one escaper.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
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
from tracehint.adapters.engines.planned import nodes_of
from tracehint.adapters.engines.unpack import read_lines
from tracehint.adapters.place.hosts import Host
from tracehint.adapters.stores.base import Gap, merge_gaps
from tracehint.analyzer.tasks.describe import shorten, type_of_text
from tracehint.errors import InputError
from tracehint.hintgen.hints.model import HintFile, Plan, Rule
from tracehint.hintgen.text.escape import comment
from tracehint.hintgen.text.textfile import TextFile
from tracehint.schemas.wording import plural
from tracehint.version import __version__

_LOCATIONS_FILE = TextFile(
    kind="A list of locations",
    limit="hints-bytes",
    check="Check --locations.",
    remedy="Write it again: tracehint locate --format json",
)
# pattern -> (strictness, advice); HARD only if the data are on that node alone
LOCATIONS: dict[str, tuple[str, str]] = {
    "pipeline": ("soft", "run the consumer on the node that holds the file"),
    "reduce": ("soft", "run the consumer on the node that holds most of the group"),
    "gather": ("soft", "run the consumer on the node that holds most of the file"),
    "stage_in": ("soft", "run the one reader on the node of its input"),
    "scatter": ("soft", "run each reader on the node that holds its region"),
    "distribute": ("soft", "run each consumer on the node that holds its file"),
}
HELPERS = """\
import location;

// SOFT: the task may run elsewhere when the node is busy. HARD: only there.
(location l) tracehint_soft(string host) {
  l = location(hostmapOneWorkerRank(host), SOFT, NODE);
}
(location l) tracehint_hard(string host) {
  l = location(hostmapOneWorkerRank(host), HARD, NODE);
}
"""


def emit(hints: HintFile, request: EmitRequest) -> Emitted:
    """Return the Swift/T module, for -o or standard output."""
    text, gaps = module(hints, read_locations(request.locations) if request.locations else {})
    remarks = ["Put the annotations before the calls of your script; see the comments."]
    if hints.plan is not None and hints.plan.tasks:
        nodes = nodes_of(hints.plan, request.hosts)
        text += "\n".join(["", *planned_tasks(hints.plan, nodes), ""])
        if not nodes:
            remarks.append("The plan's tasks have parts but no nodes yet: give --hosts FILE.")
    return Emitted(files={request.output: text.encode()}, gaps=merge_gaps(gaps), remarks=remarks)


def planned_tasks(plan: Plan, nodes: Mapping[int, Host]) -> list[str]:
    """Return a table of the plan's tasks with their nodes, or with their parts without nodes.

    Top-level arrays: the calls that use them are at the top level, or in loops there.
    """
    lines = [f"// a plan for {comment(plan.cluster)}: {comment(plan.strategy)}"]
    if not nodes:
        lines += ["int tracehint_part[string];"]
        rows = {task.name: str(task.part) for task in plan.tasks}
        lines += [f"tracehint_part[{quote_text(n)}] = {rows[n]};" for n in sorted(rows)]
        return lines
    lines += [
        '// @location=tracehint_soft(tracehint_node["TASK"]) call(...);',
        "string tracehint_node[string];",
    ]
    names = {quote_text(task.name): quote_text(nodes[task.part].name) for task in plan.tasks}
    return [*lines, *(f"tracehint_node[{name}] = {names[name]};" for name in sorted(names))]


def module(hints: HintFile, hosts: Mapping[str, str]) -> tuple[str, list[Gap]]:
    """The module's text; patterns without an annotation are gaps."""
    lines = [f"// tracehint {__version__}: locations for Swift/T", "", HELPERS]
    gaps: list[Gap] = []
    if hosts:
        lines += ["string tracehint_host[string];"]
        lines += [
            f"tracehint_host[{quote_text(p)}] = {quote_text(h)};" for p, h in sorted(hosts.items())
        ]
        lines.append("")
    for rule in hints.rules:
        lines.append(f"// {comment(rule.id)} {comment(rule.pattern)}: {comment(rule.template)}")
        if rule.pattern not in LOCATIONS or not rule.consumers:
            reason = "no call whose placement matters"
            lines.append(f"//   not expressible: {reason}")
            gaps.append(Gap(hint=rule.pattern, level="none", reason=reason))
            continue
        lines += _calls(rule, hosts)
    return "\n".join(lines) + "\n", gaps


def _calls(rule: Rule, hosts: Mapping[str, str]) -> list[str]:
    strictness, what = LOCATIONS[rule.pattern]
    example = rule.examples[0] if rule.examples else rule.template
    where = f"tracehint_host[{quote_text(example)}]" if example in hosts else '"HOST"'
    lines = [f"//   {what}; tracehint locate prints the HOST"]
    for consumer in rule.consumers[:5]:
        call = f"{identifier(consumer)}(...)"
        lines.append(f"//   @location=tracehint_{strictness}({where}) {call};")
    return lines


def identifier(text: str) -> str:
    """Return a task type as a Swift/T name."""
    kept = re.sub(r"[^A-Za-z0-9_]", "_", text)[:60]
    return kept if re.match(r"[A-Za-z]", kept) else f"task_{kept}"


def quote_text(text: str) -> str:
    """Return a Swift/T string literal of printable ASCII; other characters become `?`."""
    plain = re.sub(r"[^ -~]", "?", text)
    return '"' + plain.replace("\\", "\\\\").replace('"', '\\"') + '"'


def read_locations(path: Path) -> dict[str, str]:
    """Map each path to its first host, from the JSON of `tracehint locate`.

    Paths below the working directory become relative to it, as the workflow's tasks name them, so
    that the table stays valid if the folder is moved.
    """
    data = _LOCATIONS_FILE.json(path)
    here = f"{Path.cwd()}/"
    try:
        rows = [row for row in data["files"] if row["nodes"]]
        return {
            os.path.normpath(str(row["path"])).removeprefix(here): str(row["nodes"][0])
            for row in rows
        }
    except (TypeError, KeyError, AttributeError, IndexError) as error:
        raise InputError(
            f"{path} is not output of `tracehint locate --format json`", "Write it again."
        ) from error


# Swift/T: the log that TURBINE_LOG=1 writes. It names app commands, ranks and durations.
#
# The only files it names are redirections of stdin, stdout and stderr; with TURBINE_LOG_RANKS=1
# each duration belongs to a known command. Based on the sources of Swift/T; no Swift was run.


_LINE = re.compile(r"\s*(?:\[(\d{1,9})\]\s*)?(\d{1,12}\.\d{3}) +(.*)$")
_APP = re.compile(
    r"(?:(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d) )?app: *(\d{1,9}):(\d{1,12})"
    r"(?: +io=(.*?) *: +| +(?:: +)?)(.*)$"
)
_SHELL = re.compile(r"shell: (.*?)((?: (?:stdin|stdout|stderr) \S+)*)\s*$")
_DURATION = re.compile(r"(?:shell command )?duration: *(\d{1,12}\.\d{1,6})\s*$")
_HOST = re.compile(r"hostname: *(\S+)")
_STREAM = re.compile(r"(stdin|stdout|stderr)[ =]([^\s{}\[\]]+)")
_KNOWN = re.compile(
    rb"^\s*(?:\[\d+\]\s*)?\d+\.\d{3} +(?:\d{4}-\d\d-\d\d \d\d:\d\d:\d\d )?(?:app: *\d+:\d|shell: )",
    re.MULTILINE,
)


@dataclass
class _App:
    """One app call; seconds since the start of the run."""

    rank: str
    command: str
    streams: str
    begin: float
    length: float | None = None
    host: str = ""


def sniff(path: Path, head: bytes) -> bool:
    """Whether the head has lines with a time and an app command."""
    return not path.is_dir() and bool(_KNOWN.search(head))


def read(path: Path) -> DeclaredGraph:
    """Read one task per app call."""
    out = GraphBuilder("swift-t", folder_of(path))
    apps, zero = _read_log(read_lines(path), out)
    for number, app in enumerate(apps):
        task = f"a{number}"
        start = None if zero is None else nanoseconds(zero + app.begin)
        end = None if zero is None or app.length is None else zero + app.begin + app.length
        out.task(
            task,
            name=shorten(app.command),
            type=type_of_text(app.command),
            command=raw_name(app.command),
            start_ns=start,
            end_ns=nanoseconds(end),
            host=app.host,
        )
        for stream, name in dict.fromkeys(_STREAM.findall(app.streams)):
            out.file(task, "in" if stream == "stdin" else "out", raw_name(name))
    return out.graph()


def _read_log(lines: list[str], out: GraphBuilder) -> tuple[list[_App], float | None]:
    """Return the calls in order, and the start of the run (seconds since the epoch)."""
    apps: list[_App] = []
    waiting: dict[str, list[_App]] = {}  # by rank; "" for lines without a rank
    hosts: dict[str, str] = {}
    zero: float | None = None
    unclear = 0
    for line in lines:
        found = _LINE.match(line)
        if found is None:
            continue  # output of the apps themselves
        rank, seconds, message = found[1] or "", float(found[2]), found[3]
        app = _parse_start(message, rank, seconds)
        if app is not None:
            call = _APP.match(message)
            if zero is None and call is not None and call[1]:
                zero = _epoch(call[1], seconds)
            apps.append(app)
            waiting.setdefault(rank, []).append(app)
        elif (length := _DURATION.match(message)) is not None:
            running = waiting.pop(rank, [])
            if len(running) == 1:
                running[0].length = float(length[1])
            else:
                unclear += 1
        elif (named := _HOST.match(message)) is not None:
            hosts.setdefault(rank, named[1])
    for app in apps:
        app.host = hosts.get(app.rank, "") if app.rank else ""
    if unclear:
        out.notes.append(
            f"{plural(unclear, 'duration')} of several possible commands: set TURBINE_LOG_RANKS=1"
        )
    return apps, zero


def _parse_start(message: str, rank: str, seconds: float) -> _App | None:
    call = _APP.match(message)
    if call is not None:
        return _App(rank, call[5], call[4] or "", seconds)
    shell = _SHELL.match(message)
    return None if shell is None else _App(rank, shell[1], shell[2], seconds)


def _epoch(text: str, seconds: float) -> float | None:
    """Return the local date of a line minus its seconds since the start."""
    try:
        return datetime.strptime(text, "%Y-%m-%d %H:%M:%S").timestamp() - seconds
    except (ValueError, OverflowError, OSError):
        return None
