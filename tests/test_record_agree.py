"""Collectors, one truth: the demo workflow gives the same graph with eBPF, strace, preload."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.support.cli import tracehint
from tracehint.collectors.registry import check

DEMO = Path(__file__).parent.parent / "datasets" / "demo"
pytestmark = [pytest.mark.full, pytest.mark.slow, pytest.mark.ebpf]


def graph(folder: Path, collector: str) -> dict[str, set[Any]]:
    """What the analysis says, with names instead of identifiers."""
    work = folder / collector / "work"  # of the same name: paths below it are compared
    shutil.copytree(DEMO, work)
    done = tracehint(
        "record",
        "--quiet",
        "--collector",
        collector,
        "-o",
        "../run.trace",
        "--",
        "sh",
        "run.sh",
        cwd=work,
    )
    assert done.returncode == 0, done.stderr
    done = tracehint("analyze", "run.trace", "--format", "json", cwd=work.parent)
    data = json.loads(done.stdout)
    assert data["run"]["lost_events"] == 0
    tasks = {t["id"]: t["name"] for t in data["tasks"]}
    files = {f["id"]: (f["path"], f["version"]) for f in data["files"]}
    return {
        "tasks": {(t["name"], t["engine"], t["exit_status"]) for t in data["tasks"]},
        "files": {
            (f["path"], f["version"], f["role"], f["size_bytes"])
            for f in data["files"]
            if f["role"] != "software"
        },
        "edges": {
            (tasks[e["producer"]], files[e["file"]], tasks[e["consumer"]], e["bytes"], e["via"])
            for e in data["edges"]
        },
        "patterns": {
            (files[f["id"]], p["pattern"], p["primary"])
            for f in data["files"]
            for p in f["patterns"]
        },
    }


@pytest.mark.parametrize("other", ["strace", "preload"])
def test_the_demo_is_the_same_run_for_both(tmp_path: Path, other: str) -> None:
    for name in ("ebpf", other):
        found = check(name)
        if not found.usable:
            pytest.skip(f"{name}: {found.reason}")
    ebpf, second = graph(tmp_path, "ebpf"), graph(tmp_path, other)
    assert len(ebpf["edges"]) > 20
    for part, expected in ebpf.items():
        assert second[part] == expected, part
