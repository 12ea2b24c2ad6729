"""Makeflow: classic, JSON and JX files, and the log, whose job id is the pid of a local job.

A Makeflow file is read together with the log next to it, and the other way round.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tracehint.adapters.engines.graph_base import (
    DeclaredGraph,
    GraphBuilder,
    folder_of,
    number,
    raw_name,
)
from tracehint.adapters.engines.makeflow.jx import entry_names, load_document
from tracehint.adapters.engines.unpack import parse_json, read_lines, read_text
from tracehint.analyzer.tasks.describe import type_of_text
from tracehint.errors import InputError, MissingDependencyError
from tracehint.limits import check

SUFFIX = ".makeflowlog"
_WAITING, _RUNNING, _COMPLETE, _FAILED, _ABORTED = range(5)
_EVENT = re.compile(r"(\d{10,17}) (\d{1,9}) ([0-4]) (\d{1,10})(?: \d+)*$")
_RULE = re.compile(rb"^[^\s#=:][^#=\n]*:(?:[^=\n].*)?\n(?:@.*\n|[ \t]*#.*\n)*\t", re.MULTILINE)

_RESOURCES = re.compile(r"\b(?:CORES|MEMORY)\b|\"resources\"")
_GNU_MAKE = re.compile(rb"\$[(@<^*?]|^\.PHONY|^(?:ifdef|ifeq|include|define) ", re.MULTILINE)


@dataclass
class _Node:
    """One rule: its files, and its attempts as (pid, start, end, state), times in µs."""

    command: str = ""
    sources: list[bytes] = field(default_factory=list)
    targets: list[bytes] = field(default_factory=list)
    parents: list[str] = field(default_factory=list)
    attempts: list[list[int | None]] = field(default_factory=list)
    cores: float | None = None  # requested
    memory_bytes: float | None = None


def sniff(path: Path, head: bytes) -> bool:
    """Whether this is a log, JSON with rules, or text with rules and TAB-indented commands."""
    if path.name.endswith((SUFFIX, ".makeflow", ".mf")):
        return True
    if head.lstrip()[:1] == b"{":
        return b'"rules"' in head and b'"command"' in head
    if head.startswith((b"# NODE\t", b"# STARTED ", b"# FILE ")):
        return True
    if _GNU_MAKE.search(head):
        return False
    makefile = path.name.lower().startswith(("makefile", "gnumakefile"))
    return not makefile and not path.name.endswith(".mk") and bool(_RULE.search(head))


def read(path: Path) -> DeclaredGraph:
    """Read the rules, joined with the run's log if there is one."""
    if path.name.endswith(SUFFIX) or _is_log(path):
        workflow = path.with_name(path.name.removesuffix(SUFFIX))
        log: Path | None = path
    else:
        workflow, log = path, path.with_name(path.name + SUFFIX)
    out = GraphBuilder("makeflow", folder_of(path))
    nodes: dict[int, _Node] = {}
    if log is not None and log.is_file():
        _read_log(log, nodes, out)
    declared = any(node.command for node in nodes.values())
    if workflow != log and workflow.is_file():
        text = read_text(workflow, 256 << 20)
        if not declared:
            _add_rules(_rules(text, workflow), nodes, out)
        if _RESOURCES.search(text):
            try:
                _add_requests(_rules(text, workflow), nodes)
            except MissingDependencyError as error:  # the log contains the graph
                out.notes.append(f"what rules request is not known: {error.what}")
    if nodes and not any(n.command or n.targets for n in nodes.values()):
        out.notes.append("the log names no files: run makeflow with --log-verbose")
    measured = summaries(path.absolute().parent, out.notes)
    for rule in sorted(nodes):
        _add(out, rule, nodes[rule], measured.get(rule, []))
    return out.graph()


def _is_log(path: Path) -> bool:
    with path.open("rb") as stream:
        return stream.read(16).startswith((b"# NODE\t", b"# STARTED ", b"# FILE "))


def _add(out: GraphBuilder, rule: int, node: _Node, measured: list[Summary]) -> None:
    """Add one row per attempt; only the last one gets the files."""
    task = f"n{rule}"
    target = node.targets[0].decode("utf-8", "backslashreplace") if node.targets else task
    name, kind = target, type_of_text(node.command)
    command = raw_name(node.command)
    attempts = node.attempts or [[None, None, None, None]]
    for attempt, (pid, start, end, state) in enumerate(attempts, 1):
        last = attempt == len(attempts)
        spent, peak = find_usage(measured, start)
        status = {_COMPLETE: 0, _FAILED: 1, _ABORTED: 1}.get(state) if state is not None else None
        out.task(
            task if last else f"{task}#{attempt}",
            name=name,
            type=kind,
            command=command,
            pid=pid,
            start_ns=None if start is None else start * 1000,
            end_ns=None if end is None else end * 1000,
            exit_status=status,
            attempt=attempt,
            cpu_ns=spent,
            cores=node.cores,
            memory_bytes=node.memory_bytes,
            peak_bytes=peak,
            parents=node.parents,
        )
    for direction, files in (("in", node.sources), ("out", node.targets)):
        for file in dict.fromkeys(files):
            out.file(task, direction, file)


def _read_log(path: Path, nodes: dict[int, _Node], out: GraphBuilder) -> None:
    for at, line in enumerate(read_lines(path), 1):
        if line.startswith("# "):
            _parse_declaration(line, nodes)
            continue
        found = _EVENT.match(line)
        if found:
            time, node, state, pid = (int(g) for g in found.groups())
            _record_event(nodes.setdefault(node, _Node()), time, state, pid)
        elif line.strip():
            out.bad_line(at)


def _parse_declaration(line: str, nodes: dict[int, _Node]) -> None:
    """Parse `# KEY <id> ...`, tab-separated; other comments do not describe the graph."""
    key, *rest = line[2:].split("\t")
    if not rest or not rest[0].isdigit() or len(rest[0]) > 9:
        return
    node = nodes.setdefault(int(rest[0]), _Node())
    if key == "COMMAND":
        node.command = "\t".join(rest[1:])
    elif key in ("SOURCES", "TARGETS"):
        # the log lists them in reverse order of the file
        files = [raw_name(name) for name in rest[:0:-1] if name]
        (node.sources if key == "SOURCES" else node.targets).extend(files)
    elif key == "PARENTS":
        node.parents = [f"n{p}" for p in rest[1:] if p.isdigit()]


def _record_event(node: _Node, time: int, state: int, pid: int) -> None:
    if state == _RUNNING:
        node.attempts.append([pid, time, None, None])
    elif state in (_COMPLETE, _FAILED, _ABORTED) and node.attempts:
        node.attempts[-1][2:] = [time, state]


def _add_rules(rules: list[_RuleRow], nodes: dict[int, _Node], out: GraphBuilder) -> None:
    for at, (command, sources, targets, *_) in enumerate(rules):
        node = nodes.setdefault(at, _Node())
        node.command, node.sources, node.targets = command, sources, targets
        if command.startswith("MAKEFLOW "):
            out.notes.append(f"rule {at} runs another workflow: {command[9:200]!r}")
    maker = {f: n for n, node in nodes.items() for f in node.targets}
    for at, node in nodes.items():
        above = {maker[f] for f in node.sources if f in maker} - {at}
        node.parents = [f"n{p}" for p in sorted(above)]


def _add_requests(rules: list[_RuleRow], nodes: dict[int, _Node]) -> None:
    """Add the resources that rules request; none if the file and the log differ in rules."""
    if len(rules) != len(nodes):
        return
    for at, (*_, cores, memory) in enumerate(rules):
        megabytes = number(memory)
        if at in nodes:
            nodes[at].cores = number(cores)
            nodes[at].memory_bytes = None if megabytes is None else megabytes * (1 << 20)


def _rules(text: str, path: Path) -> list[_RuleRow]:
    return _json_rules(text, path) if text.lstrip()[:1] == "{" else _classic_rules(text)


_RuleRow = tuple[str, list[bytes], list[bytes], Any, Any]  # with cores and MB


def _classic_rules(text: str) -> list[_RuleRow]:
    from tracehint.adapters.engines.makeflow.text import parse_rules

    raw = text.encode("utf-8", "surrogateescape").decode("latin-1")
    rows = []
    for rule in parse_rules(raw):
        command = rule.command.encode("latin-1", "replace").decode("utf-8", "surrogateescape")
        files = list(rule.sources), list(rule.targets)
        rows.append((command, *files, rule.cores, rule.memory))
    return rows


def _json_rules(text: str, path: Path) -> list[_RuleRow]:
    data = load_document(text, path)
    rules = data.get("rules") if isinstance(data, dict) else None
    if not isinstance(rules, list):
        raise InputError(f"{path}: no list of rules", "Check it: makeflow_analyze --json -k F")
    check("workflow-rules", str(path), len(rules))
    rows: list[_RuleRow] = []
    for rule in rules:
        if not isinstance(rule, dict):
            raise InputError(f"{path}: rule {len(rows)} is not an object", "Check the file.")
        command = rule.get("command")
        if not isinstance(command, str):
            command = f"MAKEFLOW {rule.get('workflow', '')}"
        inputs, outputs = (entry_names(path, len(rows), rule, key) for key in ("inputs", "outputs"))
        asked = rule.get("resources")
        asked = asked if isinstance(asked, dict) else {}
        rows.append((command, inputs, outputs, asked.get("cores"), asked.get("memory")))
    return rows


# CPU time and memory of Makeflow's rules from the summaries of `--monitor=DIR`
# (resource_monitor), which Work Queue and local runs write in the same form.
#
# DIR is not recorded: all folders next to the workflow are searched, and an attempt gets the
# summary with the nearest start.


_SUMMARY = re.compile(r"resource-rule-(\d{1,9})\.summary$")
_MAX_FOLDERS, _MAX_FILES, _MAX_SUMMARY = 100, 1_000_000, 1 << 20
_MAX_START_GAP_S = 5.0  # between Makeflow's start and the monitor's, which copies itself first

# start in seconds since the epoch; CPU time in ns, peak memory in bytes
Summary = tuple[float, tuple[int, int | None]]


def summaries(folder: Path, notes: list[str]) -> dict[int, list[Summary]]:
    """Return the measurements of each rule, from the folders next to the workflow."""
    found: dict[int, list[Summary]] = {}
    try:
        folders = sorted(p for p in folder.iterdir() if p.is_dir() and not p.is_symlink())
    except OSError:
        return found
    paths = [path for one in folders[:_MAX_FOLDERS] for path in _summary_files(one)]
    if len(paths) > _MAX_FILES:
        notes.append(f"of {len(paths):,} summaries {_MAX_FILES:,} are read")
    for path, rule in paths[:_MAX_FILES]:
        summary = _read_summary(path)
        if summary is None:
            notes.append(f"{path.name}: not a summary of resource_monitor")
        else:
            found.setdefault(rule, []).append(summary)
    return found


def find_usage(known: list[Summary], start_us: int | None) -> tuple[int | None, int | None]:
    """Return CPU time and peak memory of the attempt with that start; None without summary."""
    if start_us is None:
        return None, None
    near = [(abs(start - start_us / 1e6), at) for at, (start, _) in enumerate(known)]
    apart, at = min(near, default=(_MAX_START_GAP_S + 1, 0))
    return known[at][1] if apart <= _MAX_START_GAP_S else (None, None)


def _summary_files(folder: Path) -> list[tuple[Path, int]]:
    try:
        names = sorted(folder.iterdir())
    except OSError:
        return []
    matched = [(path, _SUMMARY.match(path.name)) for path in names]
    return [(path, int(m[1])) for path, m in matched if m and not path.is_symlink()]


def _read_summary(path: Path) -> Summary | None:
    try:
        data = parse_json(read_text(path, _MAX_SUMMARY), path)
    except InputError:
        return None
    start, spent = _measure(data, "start", "s"), _measure(data, "cpu_time", "s")
    peak = _measure(data, "memory", "MB")
    if start is None or spent is None:
        return None
    return start, (round(spent * 1e9), None if peak is None else round(peak * (1 << 20)))


def _measure(data: Any, key: str, unit: str) -> float | None:
    """Return a number of a summary, stored as [value, unit]; None if it is invalid."""
    value = data.get(key) if isinstance(data, dict) else None
    if not isinstance(value, list) or len(value) != 2 or value[1] != unit:
        return None
    amount = value[0]
    good = isinstance(amount, int | float) and not isinstance(amount, bool)
    return float(amount) if good and 0 <= amount < 1e11 else None
