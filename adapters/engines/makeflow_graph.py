"""Makeflow: classic, JSON and JX files, and the log. The log's job id is the pid of a local job.

Given a Makeflow file, its log beside it is read too, and the other way round.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tracehint.adapters.engines.graph_base import DeclaredGraph, GraphBuilder, folder_of, raw_name
from tracehint.adapters.engines.makeflow_monitor import Summary, summaries, used
from tracehint.adapters.engines.unpack import parse_json, read_lines, read_text
from tracehint.analyzer.tasks.describe import type_of_text
from tracehint.errors import InputError
from tracehint.limits import check, values_of

SUFFIX = ".makeflowlog"
_WAITING, _RUNNING, _COMPLETE, _FAILED, _ABORTED = range(5)
_EVENT = re.compile(r"(\d{10,17}) (\d{1,9}) ([0-4]) (\d{1,10})(?: \d+)*$")
_RULE = re.compile(rb"^[^\s#=:][^#=\n]*:(?:[^=\n].*)?\n(?:@.*\n|[ \t]*#.*\n)*\t", re.MULTILINE)

_GNU_MAKE = re.compile(rb"\$[(@<^*?]|^\.PHONY|^(?:ifdef|ifeq|include|define) ", re.MULTILINE)


@dataclass
class _Node:
    """One rule: what it needs and makes, and its attempts as (pid, start, end, state), in µs."""

    command: str = ""
    sources: list[bytes] = field(default_factory=list)
    targets: list[bytes] = field(default_factory=list)
    parents: list[str] = field(default_factory=list)
    attempts: list[list[int | None]] = field(default_factory=list)


def sniff(path: Path, head: bytes) -> bool:
    """A log, a JSON file with rules, or a text with rules and commands after a TAB."""
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
    """The rules, joined with the run's log where there is one."""
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
    if not declared and workflow != log and workflow.is_file():
        _read_workflow(workflow, nodes, out)
    if nodes and not any(n.command or n.targets for n in nodes.values()):
        out.notes.append("the log names no files: run makeflow with --log-verbose")
    measured = summaries(path.absolute().parent, out.notes)
    for number in sorted(nodes):
        _add(out, number, nodes[number], measured.get(number, []))
    return out.graph()


def _is_log(path: Path) -> bool:
    with path.open("rb") as stream:
        return stream.read(16).startswith((b"# NODE\t", b"# STARTED ", b"# FILE "))


def _add(out: GraphBuilder, number: int, node: _Node, measured: list[Summary]) -> None:
    """One row per attempt; only the last one has the files."""
    task = f"n{number}"
    target = node.targets[0].decode("utf-8", "backslashreplace") if node.targets else task
    name, kind = target, type_of_text(node.command)
    command = raw_name(node.command)
    attempts = node.attempts or [[None, None, None, None]]
    for attempt, (pid, start, end, state) in enumerate(attempts, 1):
        last = attempt == len(attempts)
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
            cpu_ns=used(measured, start),
            parents=node.parents,
        )
    for direction, files in (("in", node.sources), ("out", node.targets)):
        for file in dict.fromkeys(files):
            out.file(task, direction, file)


def _read_log(path: Path, nodes: dict[int, _Node], out: GraphBuilder) -> None:
    for number, line in enumerate(read_lines(path), 1):
        if line.startswith("# "):
            _declaration(line, nodes)
            continue
        found = _EVENT.match(line)
        if found:
            time, node, state, pid = (int(g) for g in found.groups())
            _event(nodes.setdefault(node, _Node()), time, state, pid)
        elif line.strip():
            out.bad_line(number)


def _declaration(line: str, nodes: dict[int, _Node]) -> None:
    """`# KEY <id> ...`, tab separated; other comments say nothing about the graph."""
    key, *rest = line[2:].split("\t")
    if not rest or not rest[0].isdigit() or len(rest[0]) > 9:
        return
    node = nodes.setdefault(int(rest[0]), _Node())
    if key == "COMMAND":
        node.command = "\t".join(rest[1:])
    elif key in ("SOURCES", "TARGETS"):
        # the log has them in the opposite order of the file
        files = [raw_name(name) for name in rest[:0:-1] if name]
        (node.sources if key == "SOURCES" else node.targets).extend(files)
    elif key == "PARENTS":
        node.parents = [f"n{p}" for p in rest[1:] if p.isdigit()]


def _event(node: _Node, time: int, state: int, pid: int) -> None:
    if state == _RUNNING:
        node.attempts.append([pid, time, None, None])
    elif state in (_COMPLETE, _FAILED, _ABORTED) and node.attempts:
        node.attempts[-1][2:] = [time, state]


def _read_workflow(path: Path, nodes: dict[int, _Node], out: GraphBuilder) -> None:
    text = read_text(path, 256 << 20)
    rules = _json_rules(text, path) if text.lstrip()[:1] == "{" else _classic_rules(text)
    for number, (command, sources, targets) in enumerate(rules):
        node = nodes.setdefault(number, _Node())
        node.command, node.sources, node.targets = command, sources, targets
        if command.startswith("MAKEFLOW "):
            out.notes.append(f"rule {number} runs another workflow: {command[9:200]!r}")
    maker = {f: n for n, node in nodes.items() for f in node.targets}
    for number, node in nodes.items():
        above = {maker[f] for f in node.sources if f in maker} - {number}
        node.parents = [f"n{p}" for p in sorted(above)]


_RuleRow = tuple[str, list[bytes], list[bytes]]


def _classic_rules(text: str) -> list[_RuleRow]:
    from tracehint.adapters.engines.makeflow_text import parse_rules

    raw = text.encode("utf-8", "surrogateescape").decode("latin-1")
    rows = []
    for rule in parse_rules(raw):
        command = rule.command.encode("latin-1", "replace").decode("utf-8", "surrogateescape")
        rows.append((command, list(rule.sources), list(rule.targets)))
    return rows


def load_rules(text: str, path: Path) -> Any:
    """The document of a JSON or JX workflow. Raises InputError."""
    from tracehint.adapters.engines.jx import JxError, evaluate

    check("json-values", str(path), values_of(text))
    try:
        return parse_json(text, path)
    except InputError:
        pass
    try:
        return evaluate(text, path.parent)
    except JxError as error:
        raise InputError(
            f"{path}: neither JSON nor JX: {error}",
            "Check it with jx2json, which also takes values from outside: "
            f"jx2json --define NAME=VALUE {path.name} > plain.json",
        ) from None


def _json_rules(text: str, path: Path) -> list[_RuleRow]:
    data = load_rules(text, path)
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
        rows.append((command, _files(rule.get("inputs")), _files(rule.get("outputs"))))
    return rows


def _files(entries: Any) -> list[bytes]:
    if not isinstance(entries, list):
        return []
    names = [e.get("dag_name") if isinstance(e, dict) else e for e in entries]
    return [raw_name(n) for n in names if isinstance(n, str)]
