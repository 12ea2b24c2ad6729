"""Nine workflows, each recorded at once by eBPF and the preload library: one analysis.

Declared limits of the library are excluded: of mapped files it records the mapped range only, so
their bytes and patterns are not compared. Programs that a workflow creates and executes are
excluded too: eBPF records that the library reads them before they start. Engine processes have no
names here: GNU parallel kills one before the program that it executes has started, which the
library names after the previous program.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.real.compare import missing
from tests.e2e.real.workflows import WORKFLOWS
from tests.e2e.support import Run, analyze
from tests.support.cli import TRACEHINT
from tests.support.patience import PATIENCE_S
from tests.test_created_engines import ENGINES, prepared
from tracehint.collectors.registry import check
from tracehint.schemas.store import read_bundle

pytestmark = [pytest.mark.full, pytest.mark.slow, pytest.mark.ebpf, pytest.mark.engine]

DEMO = Path(__file__).parents[2] / "datasets" / "demo"
Prepare = Callable[[Path], tuple[list[str], dict[str, str]]]


def demo(folder: Path) -> tuple[list[str], dict[str, str]]:
    """The bundled workflow."""
    shutil.copytree(DEMO, folder)
    return ["sh", "run.sh"], dict(os.environ)


def real(name: str) -> Prepare:
    """Return one workflow of the table of real runs."""
    workflow = next(w for w in WORKFLOWS if w.name == name)

    def made(folder: Path) -> tuple[list[str], dict[str, str]]:
        if absent := missing(workflow):
            pytest.skip(f"not installed: {', '.join(absent)}")
        folder.mkdir()
        workflow.prepare(folder)
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        return list(workflow.command), {**os.environ, "PATH": path}

    return made


NINE: dict[str, Prepare] = {
    "demo": demo,
    **{w.name: real(w.name) for w in WORKFLOWS},
    "cwltool": lambda folder: prepared(folder, ENGINES["cwltool"]),
}


def mapped(bundle: Path) -> set[str]:
    """Return the paths of files with mapped extents."""
    tables = read_bundle(bundle).tables
    opens = {r["open"]: r["path"] for r in tables["opens"].select(["open", "path"]).to_pylist()}
    rows = tables["extents"].select(["open", "how"]).to_pylist()
    return {os.fsdecode(opens[r["open"]] or b"") for r in rows if r["how"] == "mmap"}


def made_programs(bundle: Path) -> set[str]:
    """Return the paths of executed programs."""
    paths = read_bundle(bundle).tables["processes"]["exe"].to_pylist()
    return {os.fsdecode(path) for path in paths if path}


def seen(run: Run, without: set[str], programs: set[str]) -> dict[str, Counter[Any]]:
    """Return the analysis with names instead of identifiers; `without`: mapped files."""

    def among(paths: set[str], path: str) -> bool:
        return any(p == path or p.endswith("/" + path) for p in paths)

    names = {k: t["name"] for k, t in run.tasks.items()}
    files = {
        k: f
        for k, f in run.files.items()
        if f["role"] != "software" and not among(programs, f["path"])
    }
    exact = {k: f for k, f in files.items() if not among(without, f["path"])}
    return {
        "tasks": Counter(
            (None if t["engine"] else t["name"], t["exit_status"]) for t in run.tasks.values()
        ),
        "files": Counter((f["path"], f["version"], f["role"]) for f in files.values()),
        "sizes": Counter((f["path"], f["version"], f["size_bytes"]) for f in exact.values()),
        "edges": Counter(
            (names[e["producer"]], files[e["file"]]["path"], names[e["consumer"]], e["via"],
             e["bytes"] if e["file"] in exact else None)
            for e in run.analysis["edges"] if e["file"] in files
        ),
        "patterns": Counter(
            (f["path"], f["version"], p["pattern"], p["primary"])
            for f in exact.values() for p in f["patterns"]
        ),
    }  # fmt: skip  # a table


@pytest.mark.parametrize("name", NINE)
def test_both_collectors_see_one_run(name: str, tmp_path: Path) -> None:
    found = check("all")
    if not found.usable:
        pytest.skip(found.reason)
    work = tmp_path / "work"
    command, env = NINE[name](work)
    words = [*TRACEHINT, "record", "--quiet", "--collector", "all", "-o", "../run.trace", "--"]
    done = subprocess.run(
        [*words, *command], cwd=work, env=env, capture_output=True, text=True, timeout=PATIENCE_S
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "tracehint: 0 differences" in done.stderr, done.stderr
    bundles = [tmp_path / "run.trace", tmp_path / "run.preload.trace"]
    without = set[str]().union(*map(mapped, bundles))
    # the library's own files, which eBPF records, are outside
    programs = made_programs(bundles[0])
    ebpf, preload = (
        seen(analyze(b, "--data-root", os.fspath(work)), without, programs) for b in bundles
    )
    assert ebpf["files"]
    for part, expected in ebpf.items():
        assert preload[part] == expected, (part, preload[part] - expected, expected - preload[part])
