"""Small runs written as text, for the pages of the lint rules and for drawing tests.

One statement a line; `{1..4}` repeats the line; sizes take K, M, G:

    task NAME [type=] [host=] [site=] [start=] [end=] [exit=] [attempt=] [engine]
    file PATH SIZE [role=] [deleted[=SECONDS]] [exact=]
    write TASK PATH [A-B] [at=] [until=] [bytes=] [ops=] [seq=] [small=] [how=] [superseded]
    read  TASK PATH [A-B] [at=] [until=] [bytes=] [ops=] [seq=] [small=] [how=] [peek] [uncertain]
    label PATH PATTERN [saves=] [confidence=] [group=] [placement=]
    meta TASK DIR OP COUNT [errors=]
    declare TASK in|out PATH [SIZE]        after TASK PARENT
    setfattr PATH NAME VALUE at=SECONDS
    nodes N   hosts A,B   sites A,B   blind CODE   lost N   duration SECONDS

The labels are given, not derived: these runs test what is made of an analysis.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from tests.support.bundles import RunBuilder
from tracehint.analyzer.model import ANALYSIS_TABLES, Analysis, Options
from tracehint.analyzer.tasks.model import DECLARED_TASK, PROC_TASK, TaskCut
from tracehint.schemas.store import Bundle, table_from_rows
from tracehint.schemas.tables import TABLES

ROOT = "/data"


@dataclass
class Run:
    """A run under construction; `analysis()` and `bundle()` are its two faces."""

    rows: dict[str, list[dict[str, Any]]] = field(
        default_factory=lambda: {name: [] for name in ANALYSIS_TABLES}
    )
    raw: RunBuilder = field(default_factory=lambda: RunBuilder(cwd=ROOT, data_roots=[ROOT]))
    tasks: dict[str, dict[str, Any]] = field(default_factory=dict)
    files: dict[str, dict[str, Any]] = field(default_factory=dict)
    groups: dict[str, dict[str, Any]] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)

    def analysis(self) -> Analysis:
        """The tables that an analyzer would derive."""
        self._roles()
        self.rows["edges"].clear()
        self._edges()
        tables = {
            name: pa.Table.from_pylist(self.rows[name], schema=schema)
            for name, schema in ANALYSIS_TABLES.items()
        }
        ends = [t["end_s"] for t in self.tasks.values() if t["end_s"] is not None]
        hosts = self.facts.get("hosts") or sorted({t["host"] for t in self.tasks.values()})
        run = {
            "command": ["sh", "wf.sh"], "hosts": hosts, "sites": self.facts.get("sites", []),
            "collector": "ebpf", "started": "2026-01-01T00:00:00Z",
            "duration_s": self.facts.get("duration", max(ends, default=0.0)),
            "nodes": self.facts.get("nodes", 4), "data_roots": [ROOT],
            "lost_events": self.facts.get("lost", 0),
            "completeness": {
                "score": self.facts.get("score", 1.0), "blind_to": self.facts.get("blind", []),
                "notes": [],
            },
        }  # fmt: skip
        return Analysis(run, **tables, options=Options())

    def bundle(self) -> Bundle:
        """The raw facts."""
        self.raw.manifest.blind_to = list(self.facts.get("blind", []))
        tables = {name: table_from_rows(name, rows) for name, rows in self.raw.rows.items()}
        assert set(tables) == set(TABLES)
        return Bundle(Path("run.trace"), self.raw.manifest, tables)

    def cut(self) -> TaskCut:
        """Which process and which declared task is which task."""
        procs = [{"proc": t["proc"], "task": t["task"]} for t in self.tasks.values()]
        declared = [{"declared": n, "task": t["task"]} for n, t in self.tasks.items()]
        known = {row["task"] for row in self.raw.rows["declared_tasks"]}
        return TaskCut(
            self.analysis().tasks, pa.Table.from_pylist(procs, schema=PROC_TASK),
            pa.Table.from_pylist([d for d in declared if d["declared"] in known],
                                 schema=DECLARED_TASK),
        )  # fmt: skip

    def _roles(self) -> None:
        written = {r["file"] for r in self.rows["producers"]}
        own = {(r["file"], r["task"]) for r in self.rows["producers"]}
        read = {r["file"] for r in self.rows["consumers"] if (r["file"], r["task"]) not in own}
        for row in self.rows["files"]:
            if not row["role"]:
                made, used = row["file"] in written, row["file"] in read
                gone = "scratch" if row["deleted"] else "output"
                row["role"] = ("intermediate" if used else gone) if made else "input"

    def _edges(self) -> None:
        readers: dict[int, list[dict[str, Any]]] = {}
        for row in self.rows["consumers"]:
            readers.setdefault(row["file"], []).append(row)
        for made in self.rows["producers"]:
            for used in readers.get(made["file"], ()):
                if used["task"] != made["task"] and not made["superseded"]:
                    self.rows["edges"].append(
                        {"edge": len(self.rows["edges"]) + 1, "producer": made["task"],
                         "file": made["file"], "consumer": used["task"],
                         "bytes": min(made["unique_bytes"], used["unique_bytes"]), "via": "data",
                         "order": self.facts.get(("order", used["task"]), "certain")}
                    )  # fmt: skip


def parse_size(text: str) -> int:
    match = re.fullmatch(r"([\d.]+)([KMG]?)", text)
    assert match, text
    return int(float(match[1]) * (1 << (10 * " KMG".index(match[2] or " "))))


def expand(line: str) -> Iterator[str]:
    """`{1..3}` and the arithmetic-free `{i}` repeat a line; all braces of a line run together."""
    match = re.search(r"\{(\d+)\.\.(\d+)\}", line)
    if not match:
        yield line
        return
    for value in range(int(match[1]), int(match[2]) + 1):
        numbered = line.replace(match[0], str(value))
        yield re.sub(
            r"\{i\*(\d+)([KMG]?)(\+1)?\}",
            lambda m, v=value: str((v - 1 + bool(m[3])) * parse_size(m[1] + m[2])), numbered,
        )  # fmt: skip


def parse_run(text: str) -> Run:
    """The run that `text` describes."""
    run = Run()
    run.raw.process(["sh", "wf.sh"])
    for line in text.splitlines():
        line = line.strip()
        if line and not line.startswith("#"):
            for one in expand(line):
                words = shlex.split(one)
                plain = [w for w in words[1:] if not re.match(r"[a-z]+=", w)]
                options = dict(w.split("=", 1) for w in words[1:] if re.match(r"[a-z]+=", w))
                _VERBS[words[0]](run, plain, options)
    return run


def _task(run: Run, words: list[str], o: dict[str, str]) -> None:
    name = words[0]
    start, end = float(o.get("start", 0)), float(o.get("end", 10))
    number = len(run.tasks) + 1
    proc = run.raw.process(
        o.get("cmd", name).split(), parent=1, start=start, end=end, exit_code=int(o.get("exit", 0))
    )
    row = {
        "task": number, "name": name, "type": o.get("type", re.sub(r"[-_.]?\d+.*$", "", name)),
        "command": o.get("cmd", name), "host": o.get("host", "node1"), "site": o.get("site", ""),
        "start_s": start, "end_s": end, "exit_status": int(o.get("exit", 0)),
        "attempt": int(o.get("attempt", 1)), "processes": 1, "engine": "engine" in words[1:],
        "source": "observed",
    }  # fmt: skip
    run.rows["tasks"].append(row)
    run.tasks[name] = {**row, "proc": proc}


def _file(run: Run, words: list[str], o: dict[str, str]) -> None:
    path = words[0]
    raw = run.raw.file(f"{ROOT}/{path}", size=parse_size(words[1]))
    number = len(run.files) + 1
    run.files[path] = {"file": number, "raw": raw, "size": parse_size(words[1])}
    gone = "deleted" in words[2:] or "deleted" in o
    if "deleted" in o:
        run.raw.name(raw, "unlink", f"{ROOT}/{path}", at=float(o["deleted"]))
    run.rows["files"].append(
        {"file": number, "lineage": number, "version": 0, "path": path.encode(), "other_paths": [],
         "role": o.get("role"), "size_bytes": parse_size(words[1]), "deleted": gone,
         "exact_share": float(o.get("exact", 1))}
    )  # fmt: skip


def _access(run: Run, words: list[str], o: dict[str, str], op: str) -> None:
    task, file = run.tasks[words[0]], run.files[words[1]]
    start, end = 0, file["size"]
    for word in words[2:]:
        if re.fullmatch(r"[\d.]+[KMG]?-[\d.]+[KMG]?", word):
            start, end = (parse_size(part) for part in word.split("-"))
    at = float(o.get("at", task["start_s"] + 0.5))
    until = float(o.get("until", at))
    length, moved = end - start, parse_size(o["bytes"]) if "bytes" in o else end - start
    run.raw.access(op, task["proc"], file["raw"], start, end, at=at, until=until)
    episode, extent = run.raw.rows["opens"][-1], run.raw.rows["extents"][-1]
    ops = int(o.get("ops", 1))
    episode |= {f"{op}_ops": ops, f"{op}_bytes": moved, "seq_ops": int(o.get("seq", ops - 1)),
                "small_ops": int(o.get("small", 0))}  # fmt: skip
    extent |= {"ops": ops, "bytes": moved, "how": o.get("how", op)}
    row = {"file": file["file"], "task": task["task"], "bytes": moved, "unique_bytes": length,
           "ranges": [[start, end]], "how": [o.get("how", op)], "first_s": at,
           "last_s": until}  # fmt: skip
    if op == "write":
        row |= {"owned_bytes": length, "superseded": "superseded" in words[2:]}
        run.rows["producers"].append(row)
    else:
        size = file["size"]
        row |= {"cover": length / size if size else None, "peek": "peek" in words[2:]}
        run.rows["consumers"].append(row)
        if "uncertain" in words[2:]:
            run.facts[("order", task["task"])] = "uncertain"


def _label(run: Run, words: list[str], o: dict[str, str]) -> None:
    file = run.files[words[0]]
    group = None
    if "group" in o:
        known = run.groups.setdefault(
            o["group"],
            {"group": len(run.groups) + 1, "pattern": words[1], "task": None, "files": [],
             "bytes": 0, "primary": True, "evidence": "{}"},
        )  # fmt: skip
        if known not in run.rows["groups"]:
            run.rows["groups"].append(known)
        if "task" in o:
            known["task"] = run.tasks[o["task"]]["task"]
        known["files"].append(file["file"])
        known["bytes"] += file["size"]
        group = known["group"]
    run.rows["patterns"].append(
        {"file": file["file"], "edge": None, "pattern": words[1], "primary": True,
         "confidence": float(o.get("confidence", 1)), "group": group, "evidence": json.dumps({}),
         "placement": o.get("placement", ""), "saves_bytes": parse_size(o.get("saves", "0")),
         "runner_up": "striped", "runner_up_saves_bytes": 0}
    )  # fmt: skip


def _meta(run: Run, words: list[str], o: dict[str, str]) -> None:
    task, folder, op, count = words
    run.raw._add("metadata_ops", proc=run.tasks[task]["proc"], dir=f"{ROOT}/{folder}".encode(),
                 op=op, count=int(count), errors=int(o.get("errors", 0)))  # fmt: skip


def _declared(run: Run, name: str) -> dict[str, Any]:
    for row in run.raw.rows["declared_tasks"]:
        if row["task"] == name:
            return row
    run.raw._add(
        "declared_tasks", task=name, name=name, type=run.tasks[name]["type"],
        command=run.tasks[name]["command"].encode(), workdir=None, pid=None, start_ns=None,
        end_ns=None, exit_status=None, attempt=1, parents=[], read_bytes=None, written_bytes=None,
        engine="test",
    )  # fmt: skip
    for row in run.rows["tasks"]:
        if row["name"] == name:
            row["source"] = "both"
    return run.raw.rows["declared_tasks"][-1]


def _declare(run: Run, words: list[str], o: dict[str, str]) -> None:
    _declared(run, words[0])
    size = parse_size(words[3]) if len(words) > 3 else None
    path = o.get("path", words[2]) if len(words) > 2 else o["path"]
    run.raw._add("declared_io", task=words[0], path=f"{ROOT}/{path}".encode(),
                 direction=words[1], size_bytes=size)  # fmt: skip


def _after(run: Run, words: list[str], _: dict[str, str]) -> None:
    _declared(run, words[1])
    _declared(run, words[0])["parents"].append(words[1])


def _setfattr(run: Run, words: list[str], o: dict[str, str]) -> None:
    at = float(o["at"])
    argv = ["setfattr", "-n", f"user.{words[1]}", "-v", words[2], words[0]]
    run.raw.process(argv, parent=1, start=at, end=at)


def _fact(name: str, kind: type) -> Any:
    def verb(run: Run, words: list[str], _: dict[str, str]) -> None:
        run.facts[name] = words[0].split(",") if kind is list else kind(words[0])

    return verb


_VERBS: dict[str, Any] = {
    "task": _task, "file": _file, "label": _label, "meta": _meta, "declare": _declare,
    "after": _after, "setfattr": _setfattr,
    "write": lambda r, w, o: _access(r, w, o, "write"),
    "read": lambda r, w, o: _access(r, w, o, "read"),
    "nodes": _fact("nodes", int), "hosts": _fact("hosts", list), "sites": _fact("sites", list),
    "blind": _fact("blind", list), "lost": _fact("lost", int), "score": _fact("score", float),
    "duration": _fact("duration", float),
}  # fmt: skip
