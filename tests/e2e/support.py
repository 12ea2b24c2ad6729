"""Shared by the end-to-end tests: run the real command line, read the contract JSON."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.support import cli

Edge = tuple[str, str, str]  # producer, path, consumer


def tracehint(
    *args: str | Path, cwd: Path | None = None, ok: Sequence[int] = (0,)
) -> subprocess.CompletedProcess[str]:
    """Run tracehint; fail the test with its output if the exit code is unexpected."""
    done = cli.tracehint(*args, cwd=cwd or Path.cwd())
    assert done.returncode in ok, f"exit {done.returncode}\n{done.stdout}\n{done.stderr}"
    assert "Traceback" not in done.stderr, done.stderr
    return done


@dataclass
class Run:
    """One recorded and analysed run."""

    bundle: Path
    analysis: dict[str, Any]
    tasks: dict[str, dict[str, Any]] = field(default_factory=dict)
    files: dict[str, dict[str, Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.tasks = {task["id"]: task for task in self.analysis["tasks"]}
        self.files = {file["id"]: file for file in self.analysis["files"]}

    def edges(self, label: dict[str, str], *, via: str = "data") -> set[Edge]:
        """Edges with tasks by their label (task id -> label) and files by path."""
        return {
            (label[e["producer"]], self.files[e["file"]]["path"], label[e["consumer"]])
            for e in self.analysis["edges"]
            if e["via"] == via
        }

    def primary(self, path: str) -> str | None:
        """Return the primary pattern of the last version of a path."""
        versions = [f for f in self.files.values() if f["path"] == path]
        assert versions, f"{path} is not in the analysis"
        last = max(versions, key=lambda f: int(f["version"]))
        names = [p["pattern"] for p in last["patterns"] if p["primary"]]
        return names[0] if names else None

    def labels(self, path: str) -> set[str]:
        """Return all patterns of all versions of a path."""
        return {
            p["pattern"] for f in self.files.values() if f["path"] == path for p in f["patterns"]
        }


def record(command: Sequence[str], cwd: Path, bundle: Path, *options: str) -> Run:
    """Record a command and analyse it."""
    tracehint("record", "-o", bundle, *options, "--", *command, cwd=cwd)
    return analyze(bundle)


def analyze(bundle: Path, *options: str) -> Run:
    """Analyse a bundle."""
    done = tracehint("analyze", bundle, "--format", "json", *options)
    return Run(bundle, json.loads(done.stdout))


_READS = ("read", "pread64", "readv", "preadv", "preadv2")
_WRITES = ("write", "pwrite64", "writev", "pwritev", "pwritev2")
_CALL = re.compile(r"^\d+ +(\w+)\((.*)\) += (\d+)")
_FD_PATH = re.compile(r"(?:^|, )\d+<(/[^>]*)>")


def strace_io(log: Path, root: Path) -> tuple[set[str], set[str]]:
    """Return the files below root that a `strace -f -y` log shows as read and as written.

    Only transfers of at least one byte count. This independent reader of the few calls that the
    tested programs make shares no code with the product, so it can serve as the truth.
    """
    prefix = os.fspath(root.resolve()) + "/"
    reads: set[str] = set()
    writes: set[str] = set()
    for line in log.read_text(errors="surrogateescape").splitlines():
        match = _CALL.match(line)
        if not match or int(match[3]) == 0:
            continue
        call, paths = match[1], [p for p in _FD_PATH.findall(match[2]) if p.startswith(prefix)]
        names = [p.removeprefix(prefix) for p in paths]
        if call in _READS or call == "mmap":
            reads.update(names[:1])
        elif call in _WRITES:
            writes.update(names[:1])
        elif call in ("copy_file_range", "sendfile"):
            full = [p.removeprefix(prefix) for p in _FD_PATH.findall(match[2])]
            source, target = (full[0], full[1]) if call == "copy_file_range" else (full[1], full[0])
            reads.add(source)
            writes.add(target)
    return (
        {r for r in reads if not r.startswith("/")},
        {w for w in writes if not w.startswith("/")},
    )


def edges_of(io: dict[str, tuple[set[str], set[str]]]) -> set[Edge]:
    """Return edges writer -> reader over every file that one task writes and another reads."""
    writers: dict[str, list[str]] = {}
    for task, (_, writes) in io.items():
        for path in writes:
            writers.setdefault(path, []).append(task)
    return {
        (producer, path, task)
        for task, (reads, _) in io.items()
        for path in reads
        for producer in writers.get(path, ())
        if producer != task
    }


def makeflow_rules(text: str) -> list[tuple[list[str], list[str], str]]:
    """Return (targets, sources, command) of every rule of a simple Makeflow file, in file order."""
    rules = []
    lines = text.splitlines()
    for k, line in enumerate(lines):
        if line.startswith("\t"):
            targets, _, sources = lines[k - 1].partition(":")
            rules.append((targets.split(), sources.split(), line.strip()))
    return rules


def one_task_per(run: Run, commands: Iterable[str]) -> dict[str, str]:
    """Map the id of every non-engine task to its command; each command is exactly one task."""
    wanted = list(commands)
    label: dict[str, str] = {}
    for task in run.tasks.values():
        if task["engine"]:
            continue
        hits = [c for c in wanted if task["command"] == c or task["command"].endswith(c)]
        assert len(hits) == 1, f"task {task['command']!r} is {len(hits)} rules"
        label[task["id"]] = hits[0]
    assert sorted(label.values()) == sorted(wanted)
    return label
