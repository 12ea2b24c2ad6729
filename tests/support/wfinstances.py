"""WfFormat 1.5 instances as Analysis tables, for tests of hint transfer.

Instances declare which files a task reads and writes, without ranges: every access counts as the
whole file, so a file with several readers is a broadcast.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import tarfile
from collections.abc import Collection, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from tests.support.rows import file_row, role, task_row
from tracehint.analyzer.model import CONSUMERS, EDGES, FILES, PRODUCERS, TASKS, Analysis, Options
from tracehint.analyzer.patterns.run_labels import label

_DECLARED = {"command": "", "host": "n", "source": "declared"}
_UNKNOWN = {"start_s": None, "end_s": None, "exit_status": None}
Instance = dict[str, Any]


def data_folder() -> Path:
    """Return the folder of shared data sets; skip the test if there is none."""
    root = os.environ.get("TRACEHINT_DATA", "")
    folder = Path(root) / "wfinstances"
    if not root or not folder.is_dir():
        pytest.skip("TRACEHINT_DATA does not name a folder with wfinstances")
    return folder


def corpus(
    folder: Path, only: str = "", names: Collection[str] | None = None
) -> Iterator[tuple[str, str, Instance]]:
    """Yield (workflow, instance, JSON) of corpus.tar.xz: paths with `only` in them, or names."""
    with tarfile.open(folder / "corpus.tar.xz", "r:xz") as archive:
        for member in archive:
            if member.isfile() and member.name.endswith(".json") and only in member.name:
                if names is not None and Path(member.name).stem not in names:
                    continue
                stream = archive.extractfile(member)
                assert stream is not None
                path = Path(member.name)
                workflow = path.parent.name
                if workflow == "nextflow":
                    workflow = "nf-core/" + path.stem.split("-")[0]
                yield workflow, path.stem, json.load(stream)


def task_type(name: str) -> str:
    """Return the type of a task: its name without the counter."""
    return re.sub(r"_ID\d+$", "", name)


def analysis_of(instance: Instance, *, hash_types: str = "", nodes: int = 4) -> Analysis:
    """Return the analysis of an instance; with `hash_types` (a salt), type names become hashes."""
    spec = instance["workflow"]["specification"]
    sizes = {f["id"]: f.get("sizeInBytes") or 0 for f in spec.get("files") or []}
    files: dict[str, int] = {}
    tasks, made, read = [], [], []
    for number, task in enumerate(spec["tasks"]):
        kind = task_type(task["name"])
        if hash_types:
            kind = hashlib.sha1((hash_types + kind).encode()).hexdigest()[:10]
        tasks.append(task_row(number, f"{kind}_{number}", type=kind, **_DECLARED, **_UNKNOWN))
        for ids, rows in ((task.get("outputFiles"), made), (task.get("inputFiles"), read)):
            for name in ids or []:
                rows.append((files.setdefault(name, len(files)), number, sizes.get(name, 0)))
    written, used = {f for f, _, _ in made}, {f for f, _, _ in read}
    rows = [
        file_row(f, os.fsencode(name), sizes.get(name), role=role(f in written, f in used))
        for name, f in files.items()
    ]
    tables = {
        "tasks": pa.Table.from_pylist(tasks, TASKS),
        "files": pa.Table.from_pylist(rows, FILES),
        "producers": _access(made, PRODUCERS, owned_bytes=True, superseded=False),
        "consumers": _access(read, CONSUMERS, cover=1.0, peek=False),
    }
    return labelled(tables, nodes)


def labelled(tables: dict[str, pa.Table], nodes: int) -> Analysis:
    """Return the analysis of files, producers, consumers and tasks, with edges and labels added."""
    run = {
        "command": [], "hosts": [], "nodes": nodes, "lost_events": 0, "started": "",
        "completeness": {"score": 1.0, "blind_to": [], "notes": []},
    }  # fmt: skip  # a table
    flow = SimpleNamespace(**tables, edges=_edges(tables))
    found = label(flow, tables["tasks"], Options(nodes=nodes), run)
    return Analysis(
        run=run, **{**tables, "consumers": found.consumers}, edges=flow.edges,
        patterns=found.patterns, groups=found.groups,
    )  # fmt: skip  # a table


def _edges(tables: dict[str, pa.Table]) -> pa.Table:
    query = """
        select row_number() over (order by p.file, p.task, c.task) as edge, p.task as producer,
               p.file, c.task as consumer, c.unique_bytes as bytes, 'declared' as via,
               'certain' as "order"
        from made p join read c using (file)
    """
    con = duckdb.connect()
    con.register("made", tables["producers"])
    con.register("read", tables["consumers"])
    return con.sql(query).to_arrow_table().cast(EDGES)


def _access(rows: list[tuple[int, int, int]], schema: pa.Schema, **more: Any) -> pa.Table:
    out = []
    for file, task, size in rows:
        row = {
            "file": file, "task": task, "bytes": size, "unique_bytes": size,
            "ranges": [[0, size]] if size else [], "how": ["declared"], **more,
        }  # fmt: skip  # a table
        if "owned_bytes" in row:
            row["owned_bytes"] = size
        out.append(row)
    return pa.Table.from_pylist(out, schema)
