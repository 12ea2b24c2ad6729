"""Modules for Dask and TaskVine programs: real Dask workers, a stand-in for TaskVine's Manager."""

from __future__ import annotations

import importlib.util
import json
import re
import subprocess
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.support.engines import engine
from tests.support.hints import rule, save
from tests.support.hostile import HOSTILE_NAMES
from tests.support.patience import PATIENCE_S
from tests.support.plans import planned, save_plan
from tracehint.cli import main
from tracehint.hintgen.hints.model import FilePart

TASKS = {"a.txt": 0, "b.txt": 1, "c.txt": 1}
PROGRAM = """
import dask, sys
from dask.distributed import Client, LocalCluster, SpecCluster, Nanny, Scheduler, get_worker
import tracehint_parts as t

def here(name):
    return get_worker().name

if __name__ == "__main__":
    workers = {n: {"cls": Nanny, "options": {"nthreads": 1}} for n in ("node1", "node2")}
    scheduler = {"cls": Scheduler, "options": {"dashboard": False, "port": 0}}
    with SpecCluster(workers=workers, scheduler=scheduler) as cluster, Client(cluster) as client:
        client.wait_for_workers(2)
        for turn in range(3):
            for task in ("a.txt", "b.txt", "c.txt"):
                run = t.submit(client, here, (turn, task), tracehint_task=task, hard=True)
                print("RAN", task, run.result())
        with t.at(client, "b.txt", hard=True):
            later = dask.delayed(here)("later")
        print("RAN", "later", later.compute(scheduler=client, optimize_graph=False))
        print("RAN", "free", t.submit(client, here, "free", tracehint_task="other").result())
        t._DATA["nodes"]["0"] = "gone"
        print("RAN", "gone", t.submit(client, here, "gone", tracehint_task="a.txt").result())
        t._DATA["nodes"] = {"0": None, "1": None}
        runs = [t.submit(client, here, ("turn", n), tracehint_task=n, hard=True) for n in TASKS]
        print("TURN", *(run.result() for run in runs))
""".replace("TASKS", '("a.txt", "b.txt")')


def _emit(folder: Path, name: str, hints: Path, *more: str) -> Path:
    out = folder / "tracehint_parts.py"
    command = ["emit", str(hints), "--workflow-engine", name, "-o", str(out), *more]
    assert main(command) == 0
    return out


@pytest.mark.slow
@pytest.mark.engine
def test_dask_starts_each_task_on_the_worker_of_its_part(tmp_path: Path) -> None:
    python = engine("python")
    hints = save_plan(tmp_path, planned(TASKS))
    _emit(tmp_path, "dask", hints, "--hosts", str(tmp_path / "hosts.toml"))
    (tmp_path / "program.py").write_text(PROGRAM)
    done = subprocess.run(
        [python, "program.py"], cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE_S
    )
    assert done.returncode == 0, done.stderr
    ran = re.findall(r"^RAN (\S+) (\S+)$", done.stdout, re.MULTILINE)
    assert ran[:9] == [("a.txt", "node1"), ("b.txt", "node2"), ("c.txt", "node2")] * 3
    assert ran[9] == ("later", "node2")
    assert [name for name, _ in ran[10:]] == ["free", "gone"], "a node that is away stops nobody"
    first, second = re.findall(r"^TURN (\S+) (\S+)$", done.stdout, re.MULTILINE)[0]
    assert {first, second} == {"node1", "node2"}, "without a host file workers take turns"


class _Manager:
    """The methods of ndcctools.taskvine's Manager that the module calls, with the signatures of its
    source (2025)."""

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []

    def declare_temp(self) -> None:
        self.calls.append(("temp",))

    def declare_file(
        self, path: str, cache: bool | str = False, peer_transfer: bool = True
    ) -> None:
        self.calls.append(("file", path, cache, peer_transfer))

    def tune(self, name: str, value: int) -> None:
        self.calls.append((name, value))


class _Task:
    def __init__(self) -> None:
        self.features: list[str] = []

    def add_feature(self, name: str) -> None:
        self.features.append(name)


def _module(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_taskvine_declares_files_as_their_hints_say(tmp_path: Path) -> None:
    rules = [rule("db.bin", producer=None, Replication="3"), rule("mid.bin", DP="local")]
    hints = save_plan(tmp_path, planned(TASKS, [FilePart("b.txt", 1, {"DP": "local"})], rules))
    module = _module(_emit(tmp_path, "taskvine", hints, "--hosts", str(tmp_path / "hosts.toml")))
    manager, task = _Manager(), _Task()
    module.tune(manager)
    for path in ("db.bin", "mid.bin", "b.txt", "other.txt"):
        module.declare(manager, path)
    module.declare(manager, "mid.bin", keep=True)
    assert manager.calls == [
        ("temp-replica-count", 3), ("file", "db.bin", "workflow", True), ("temp",), ("temp",),
        ("file", "other.txt", False, True), ("file", "mid.bin", False, True),
    ]  # fmt: skip  # a table
    module.place(task, "c.txt")
    module.place(task, "unknown")
    assert task.features == ["tracehint-part-1"]
    assert module.features() == {"node1": ["tracehint-part-0"], "node2": ["tracehint-part-1"]}


def test_taskvine_needs_no_plan(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _emit(tmp_path, "taskvine", save(tmp_path, rule("mid.bin", DP="local")))
    assert "1 file with a declaration. Not run here" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["dask", "taskvine"])
def test_names_stand_in_the_data_alone(tmp_path: Path, name: str) -> None:
    odd = {n.decode("utf-8", "backslashreplace"): 1 for n in HOSTILE_NAMES}
    texts = []
    for number, tasks in enumerate(({"a": 0}, {"a": 0, **odd})):
        folder = tmp_path / str(number)
        folder.mkdir()
        texts.append(_emit(folder, name, save_plan(folder, planned(tasks))).read_bytes())
    assert texts[0] == texts[1]
    data = json.loads((tmp_path / "1" / "tracehint_parts.json").read_text())
    assert data["tasks"].keys() == {"a", *odd}
