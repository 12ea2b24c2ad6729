"""Analyses of any size, built column by column: `stages` of `width` tasks each in chains.

Task i of stage k reads one file of task i of stage k - 1 and a table that all tasks read, and
writes one file. Labels: pipeline for the chains, broadcast for the table.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from tests.support.hostile import HOSTILE_NAMES
from tracehint.analyzer.model import ANALYSIS_TABLES, Analysis

SIZE = 1 << 20


def chains(stages: int, width: int, hosts: int = 4) -> Analysis:
    """Return the analysis of stages * width tasks and as many files, plus one table."""
    n = stages * width
    task = np.arange(1, n + 1)
    stage = (task - 1) // width
    file, table = task, n + 1
    feeds = task[stage < stages - 1]  # task t feeds task t + width
    names = [f"step{s:02d}_{i:05d}" for s, i in zip(stage, (task - 1) % width, strict=True)]
    paths = [f"s{s:02d}/out_{i:05d}.dat".encode() for s, i in zip(stage, task % width, strict=True)]
    tables: dict[str, dict[str, Any]] = {
        "tasks": _tasks(task, stage, names, hosts),
        "files": {
            "file": [*file, table], "lineage": [*file, table], "version": [0] * (n + 1),
            "path": [*paths, b"table.tbl"], "other_paths": [[]] * (n + 1),
            "role": [*np.where(stage < stages - 1, "intermediate", "output"), "input"],
            "size_bytes": [SIZE] * (n + 1), "deleted": [False] * (n + 1),
            "exact_share": [1.0] * (n + 1),
        },
        "producers": {
            **_side(task, file, stage * 10.0 + 8, "write"), "owned_bytes": [SIZE] * n,
            "superseded": [False] * n,
        },
        "consumers": {
            **_side([*(feeds + width), *task], [*feeds, *[table] * n],
                    np.concatenate([stage[feeds - 1] * 10.0 + 11, stage * 10.0 + 1]), "read"),
            "cover": [1.0] * (len(feeds) + n), "peek": [False] * (len(feeds) + n),
        },
        "edges": {
            "edge": np.arange(len(feeds)), "producer": feeds, "file": feeds,
            "consumer": feeds + width, "bytes": [SIZE] * len(feeds), "via": ["data"] * len(feeds),
            "order": ["certain"] * len(feeds),
        },
        "patterns": _labels([*feeds, table], ["pipeline"] * len(feeds) + ["broadcast"]),
    }  # fmt: skip  # a table
    return Analysis(
        run_facts(10.0 * stages, [f"node{i}" for i in range(hosts)]),
        **{name: _table(name, tables.get(name, {})) for name in ANALYSIS_TABLES},
    )


def _tasks(task: Any, stage: Any, names: list[str], hosts: int) -> dict[str, Any]:
    n = len(task)
    return {
        "task": task, "name": names, "type": [f"step{s:02d}" for s in stage],
        "command": [f"step{s:02d} --in x" for s in stage],
        "host": [f"node{i % hosts}" for i in range(n)], "site": [""] * n,
        "start_s": stage * 10.0 + (task % 7) * 0.1, "end_s": stage * 10.0 + 9.0,
        "exit_status": np.zeros(n), "attempt": np.ones(n), "processes": np.ones(n),
        "engine": [False] * n, "source": ["observed"] * n,
    }  # fmt: skip  # a table


def hostile_run() -> Analysis:
    """Return a run of one producer and, per hostile name, a file and its consumer of that name."""
    n = len(HOSTILE_NAMES)
    file = np.arange(1, n + 1)
    shown = [name.decode("utf-8", "surrogateescape") for name in HOSTILE_NAMES]
    shown = [s.encode("utf-8", "backslashreplace").decode() for s in shown]
    task = np.arange(1, n + 2)
    tables: dict[str, dict[str, Any]] = {
        "tasks": {
            "task": task, "name": ["gen", *shown], "type": ["gen", *shown],
            "command": ["gen", *shown], "host": ["</script>"] * (n + 1), "site": [""] * (n + 1),
            "start_s": [0.0] * (n + 1), "end_s": [1.0] * (n + 1), "exit_status": [0] * (n + 1),
            "attempt": [1] * (n + 1), "processes": [1] * (n + 1), "engine": [False] * (n + 1),
            "source": ["observed"] * (n + 1),
        },
        "files": {
            "file": file, "lineage": file, "version": [0] * n, "path": HOSTILE_NAMES,
            "other_paths": [[]] * n, "role": ["intermediate"] * n, "size_bytes": [SIZE] * n,
            "deleted": [False] * n, "exact_share": [1.0] * n,
        },
        "producers": {**_side([1] * n, file, np.zeros(n), "write"), "owned_bytes": [SIZE] * n,
                      "superseded": [False] * n},
        "consumers": {**_side(file + 1, file, np.ones(n), "read"), "cover": [1.0] * n,
                      "peek": [False] * n},
        "edges": {"edge": file, "producer": [1] * n, "file": file, "consumer": file + 1,
                  "bytes": [SIZE] * n, "via": ["data"] * n, "order": ["certain"] * n},
        "patterns": _labels(file, ["scatter"] * n),
    }  # fmt: skip  # a table
    facts = run_facts(1.0, ["</script>"])
    facts["command"] = ["</title><script>alert(1)</script>", *shown[:20]]
    return Analysis(facts, **{k: _table(k, tables.get(k, {})) for k in ANALYSIS_TABLES})


def run_facts(duration: float, hosts: list[str]) -> dict[str, Any]:
    return {
        "command": ["sh", "wf.sh"],
        "hosts": hosts,
        "sites": [],
        "collector": "ebpf",
        "started": "2026-01-01T00:00:00Z",
        "duration_s": duration,
        "nodes": 4,
        "data_roots": ["/data"],
        "lost_events": 0,
        "completeness": {"score": 1.0, "blind_to": [], "notes": []},
    }


def _side(task: Any, file: Any, at: Any, how: str) -> dict[str, Any]:
    n = len(task)
    return {
        "file": file,
        "task": task,
        "bytes": [SIZE] * n,
        "unique_bytes": [SIZE] * n,
        "ranges": [[[0, SIZE]]] * n,
        "how": [[how]] * n,
        "first_s": at,
        "last_s": at,
    }


def _labels(file: Any, patterns: list[str]) -> dict[str, Any]:
    n = len(patterns)
    return {
        "file": file,
        "pattern": patterns,
        "primary": [True] * n,
        "confidence": [1.0] * n,
        "evidence": ['{"consumers": 1, "note": "</script>"}'] * n,
        "placement": ["local"] * n,
        "saves_bytes": [SIZE] * n,
        "runner_up": ["striped"] * n,
        "runner_up_saves_bytes": [0] * n,
    }


def _table(name: str, columns: dict[str, Any]) -> pa.Table:
    schema = ANALYSIS_TABLES[name]
    count = len(next(iter(columns.values()))) if columns else 0
    arrays = []
    for field in schema:
        values = columns.get(field.name)
        arrays.append(
            pa.nulls(count, field.type) if values is None else pa.array(values).cast(field.type)
        )
    return pa.table(arrays, schema=schema)
