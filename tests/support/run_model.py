"""A small run under construction, as the tables of an analysis and of a bundle (runs.py)."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from tests.support.bundles import RunBuilder
from tracehint.analyzer.model import (
    ANALYSIS_TABLES,
    DECLARED_TASK,
    PROC_TASK,
    Analysis,
    Options,
    Segmentation,
)
from tracehint.schemas.store import Bundle, table_from_rows
from tracehint.schemas.tables import TABLES

ROOT = "/data"


@dataclass
class Run:
    """A run under construction; `analysis()` and `bundle()` are its two views."""

    rows: dict[str, list[dict[str, Any]]] = field(
        default_factory=lambda: {name: [] for name in ANALYSIS_TABLES}
    )
    raw: RunBuilder = field(default_factory=lambda: RunBuilder(cwd=ROOT, data_roots=[ROOT]))
    tasks: dict[str, dict[str, Any]] = field(default_factory=dict)
    files: dict[str, dict[str, Any]] = field(default_factory=dict)
    groups: dict[str, dict[str, Any]] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)

    def analysis(self) -> Analysis:
        """Return the tables that an analyzer would derive."""
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
        }  # fmt: skip  # a table
        cut = self._cut(tables["tasks"])
        return Analysis(
            run,
            **tables,
            options=Options(),
            proc_task=cut.proc_task,
            declared_task=cut.declared_task,
        )

    def bundle(self) -> Bundle:
        """Return the raw records."""
        self.raw.manifest.blind_to = list(self.facts.get("blind", []))
        tables = {name: table_from_rows(name, rows) for name, rows in self.raw.rows.items()}
        assert set(tables) == set(TABLES)
        return Bundle(Path("run.trace"), self.raw.manifest, tables)

    def _cut(self, tasks: pa.Table) -> Segmentation:
        """Return the task of each process and of each declared task."""
        procs = [{"proc": t["proc"], "task": t["task"]} for t in self.tasks.values()]
        declared = [{"declared": n, "task": t["task"]} for n, t in self.tasks.items()]
        known = {row["task"] for row in self.raw.rows["declared_tasks"]}
        return Segmentation(
            tasks,
            pa.Table.from_pylist(procs, schema=PROC_TASK),
            pa.Table.from_pylist(
                [d for d in declared if d["declared"] in known], schema=DECLARED_TASK
            ),
        )

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
                        {
                            "edge": len(self.rows["edges"]) + 1,
                            "producer": made["task"],
                            "file": made["file"],
                            "consumer": used["task"],
                            "bytes": min(made["unique_bytes"], used["unique_bytes"]),
                            "via": "data",
                            "order": self.facts.get(("order", used["task"]), "certain"),
                        }
                    )


def parse_size(text: str) -> int:
    match = re.fullmatch(r"([\d.]+)([KMG]?)", text)
    assert match, text
    return int(float(match[1]) * (1 << (10 * " KMG".index(match[2] or " "))))
