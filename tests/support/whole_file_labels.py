"""Pattern labels for runs in which every access is the whole file (tests only).

Independent of the analyzer: the definitions of the patterns for that special
case, so that hint rules can be tested without it.
"""

from __future__ import annotations

import json
from collections import defaultdict
from typing import Any

import pyarrow as pa

from tracehint.analyzer.model import EDGES, GROUPS, PATTERNS, Analysis


def label(run: dict[str, Any], tables: dict[str, pa.Table], reduce_share: float = 0.25) -> Analysis:
    """Label every file: broadcast, reduce, distribute, pipeline or stage_in."""
    makers: dict[int, list[int]] = defaultdict(list)
    readers: dict[int, list[int]] = defaultdict(list)
    for f, t in zip(*(tables["producers"][c].to_pylist() for c in ("file", "task")), strict=True):
        makers[f].append(t)
    for f, t in zip(*(tables["consumers"][c].to_pylist() for c in ("file", "task")), strict=True):
        readers[f].append(t)
    size = dict(zip(*(tables["files"][c].to_pylist() for c in ("file", "size_bytes")), strict=True))
    patterns: dict[int, tuple[str, int | None]] = {}
    into: dict[int, list[int]] = defaultdict(list)
    out_of: dict[int, list[int]] = defaultdict(list)
    read_bytes: dict[int, int] = defaultdict(int)
    for f, tasks in readers.items():
        for task in tasks:
            read_bytes[task] += (size[f] or 0) if makers[f] else 0
        if len(tasks) >= 2:
            patterns[f] = ("broadcast", None)
        elif not makers[f]:
            patterns[f] = ("stage_in", None)
        else:
            patterns[f] = ("pipeline", None)
            into[tasks[0]].append(f)
            out_of[makers[f][0]].append(f)
    groups: list[dict[str, Any]] = []

    def add(pattern: str, task: int, files: list[int]) -> None:
        groups.append(
            {"group": len(groups), "pattern": pattern, "task": task, "files": files,
             "bytes": sum(size[f] or 0 for f in files), "primary": True, "evidence": "{}"}
        )  # fmt: skip
        for f in files:
            patterns[f] = (pattern, len(groups) - 1)

    for task, files in out_of.items():
        if len(files) >= 2 and len({readers[f][0] for f in files}) >= 2:
            add("distribute", task, files)
    for task, files in into.items():
        total = sum(size[f] or 0 for f in files)
        if len({makers[f][0] for f in files}) >= 2 and total >= reduce_share * read_bytes[task]:
            add("reduce", task, files)
    rows = [
        {"file": f, "edge": None, "pattern": p, "primary": True, "confidence": 1.0, "group": g,
         "evidence": json.dumps({"n": len(readers[f])}), "placement": "", "saves_bytes": size[f],
         "runner_up": "", "runner_up_saves_bytes": 0}
        for f, (p, g) in patterns.items()
    ]  # fmt: skip
    return Analysis(
        run=run, **tables, edges=pa.Table.from_pylist([], EDGES),
        patterns=pa.Table.from_pylist(rows, PATTERNS), groups=pa.Table.from_pylist(groups, GROUPS),
    )  # fmt: skip
