"""The bundled workflow: its analysis matches datasets/demo/truth.json."""

from __future__ import annotations

import fnmatch
import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.support import Run, analyze
from tests.support.engines import ROOT
from tests.support.recordings import Recording, recorded

pytestmark = [pytest.mark.slow]

DRIVERS = {"shell": ["sh", "run.sh"], "makeflow": ["makeflow", "-j", "2", "demo.makeflow"]}
# every driver with every collector
RUNS = [
    pytest.param(("ebpf", "shell"), id="ebpf-shell", marks=pytest.mark.ebpf),
    pytest.param(("ebpf", "makeflow"), id="ebpf-makeflow", marks=pytest.mark.ebpf),
    pytest.param(("strace", "shell"), id="strace-shell"),
    pytest.param(("strace", "makeflow"), id="strace-makeflow", marks=pytest.mark.full),
]


def label_of(command: str) -> str:
    """Return the task's name in truth.json."""
    if match := re.search(r"calibrate\.py records\.bin calibration\.tbl (\d)", command):
        return f"calibrate.py {match[1]}"
    if match := re.search(r"smooth\.py calibrated_\d\.bin (\d)", command):
        return f"smooth.py {match[1]}"
    if match := re.search(r"extremes\.py (\w+)\.bin", command):
        return f"extremes.py {match[1]}"
    return re.search(r"(\w+\.py|sort)\b", command)[1]  # type: ignore[index]


def prepare(folder: Path) -> None:
    shutil.copytree(ROOT / "datasets" / "demo", folder, dirs_exist_ok=True)


def recording(factory: pytest.TempPathFactory, driver: str, collector: str = "ebpf") -> Recording:
    words = DRIVERS[driver]
    return recorded(factory, f"demo {driver}", prepare, lambda: words, collector=collector)


@pytest.fixture(scope="module", params=RUNS)
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Run:
    collector, driver = request.param
    if not shutil.which(DRIVERS[driver][0]):
        pytest.skip(f"{driver} is not installed")
    return analyze(recording(tmp_path_factory, driver, collector).bundle)


@pytest.fixture(scope="module")
def truth(demo: Path) -> dict[str, Any]:
    data: dict[str, Any] = json.loads((demo / "truth.json").read_text())
    return data


def test_tasks_and_edges_are_the_stated_ones(run: Run, truth: dict[str, Any]) -> None:
    label = {t["id"]: label_of(t["command"]) for t in run.tasks.values() if not t["engine"]}
    assert len(label) == truth["tasks"]
    assert len(set(label.values())) == truth["tasks"]
    assert run.edges(label) == {tuple(edge) for edge in truth["edges"]}


def test_primary_patterns_are_the_stated_ones(run: Run, truth: dict[str, Any]) -> None:
    found = {f["path"] for f in run.files.values() if f["role"] == "intermediate"}
    for template, pattern in truth["primary"].items():
        paths = fnmatch.filter(found, template)
        assert paths, template
        for path in paths:
            assert run.primary(path) == pattern, path


def test_roles_and_bytes(run: Run, truth: dict[str, Any]) -> None:
    roles = {f["path"]: f["role"] for f in run.files.values()}
    for path in truth["outputs"]:
        assert roles[path] == "output", path
    for path, size in truth["sizes"].items():
        (file,) = [f for f in run.files.values() if f["path"] == path]
        assert file["size_bytes"] == size
        for consumer in file["consumers"]:
            expected = size // 8 if path == "records.bin" else size
            assert consumer["unique_bytes"] == expected, (path, consumer)


def test_nothing_was_lost(run: Run) -> None:
    assert run.analysis["run"]["lost_events"] == 0
