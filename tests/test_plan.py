"""`tracehint plan`: its contract, its choices and rejections, and hostile graphs."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import tracehint
from tests.support.cli import inside
from tests.support.flows import Flowing
from tests.support.hints import json_schema
from tests.support.hostile import HOSTILE_NAMES
from tests.support.planning import MB, instance, pairs, planned, star, write
from tests.support.predicting import Task, need_engine, plain, workload
from tests.support.wfinstances import data_folder
from tracehint.app.planning import LARGE
from tracehint.hintgen.hints.hintfile import load
from tracehint.hintgen.hints.pathtext import to_text
from tracehint.hintgen.learn.rules import learn
from tracehint.hintgen.match.match import Matcher
from tracehint.hintgen.plan import drafts, planner
from tracehint.hintgen.plan import partition as metis
from tracehint.hintgen.plan.graph import graph_of
from tracehint.hintgen.plan.partition import WAYS, parts_of

pytestmark = pytest.mark.slow

SCHEMA = json_schema("plan")


@pytest.fixture(autouse=True)
def _engine() -> None:
    need_engine()


def rows(data: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the strategies by name."""
    return {row["name"]: row for row in data["strategies"]}


def check(data: dict[str, Any]) -> None:
    """Check the invariants of every plan."""
    jsonschema.validate(data, SCHEMA)
    by_name = rows(data)
    chosen = by_name[data["chosen"]]
    assert chosen["refused"] is None
    for name in ("default", "local-first"):
        if not by_name[name]["refused"]:
            assert chosen["seconds"] <= by_name[name]["seconds"]
    assert all(0 <= task["part"] < data["parts"] for task in data["tasks"])
    assert all(file["hints"] for file in data["files"])


def test_chains_stay_on_one_node(tmp_path: Path) -> None:
    data = planned(write(tmp_path, pairs(40)))
    check(data)
    assert data["chosen"] != "default"
    assert data["seconds"]["planned"] < 0.8 * data["seconds"]["default"]
    partition = rows(data)["partition"]
    assert partition["network_bytes"] < 0.1 * rows(data)["default"]["network_bytes"]


def test_the_hint_file_holds_rules_and_the_plan(tmp_path: Path) -> None:
    path = write(tmp_path, pairs(40))
    data = planned(path, "-o", "h.json")
    hints = load(tmp_path / "h.json")
    assert hints.plan is not None and hints.rules
    assert hints.plan.strategy == data["chosen"]
    assert hints.plan.seconds.default == pytest.approx(data["seconds"]["default"])
    assert [f.path for f in hints.plan.files] == [f["path"] for f in data["files"]]
    again = inside("plan", path, "-o", "h.json", cwd=tmp_path)
    assert again.returncode == 2
    assert "exists" in again.stderr


def test_nothing_worth_doing(tmp_path: Path) -> None:
    path = write(tmp_path, instance([("one", "one", [], [], 5.0)], {}))
    data = planned(path)
    check(data)
    assert (data["chosen"], data["parts"], data["tasks"], data["files"]) == ("default", 0, [], [])
    done = inside("plan", path, cwd=tmp_path)
    assert done.stdout.startswith("No hint improves this workflow")
    assert "no --cluster" in done.stdout


def test_a_workflow_that_only_writes_is_planned(tmp_path: Path) -> None:
    made = [(f"w{i}", "write", [], [f"o{i}"], 1.0) for i in range(4)]
    check(planned(write(tmp_path, instance(made, {f"o{i}": MB for i in range(4)}))))


def test_the_parts_of_a_star_are_balanced() -> None:
    sizes = {"ref": MB, "in": MB, "out": MB}
    sizes |= {f"{k}{i}": MB for i in range(1000) for k in "ph"}
    tasks = [Task("cut", [("read", "in"), *(("write", f"p{i}") for i in range(1000))], "cut")]
    tasks += [
        Task(f"a{i}", [("read", f"p{i}"), ("read", "ref"), ("write", f"h{i}")], "align")
        for i in range(1000)
    ]
    tasks.append(
        Task("join", [*(("read", f"h{i}") for i in range(1000)), ("write", "out")], "join")
    )
    graph = graph_of(workload(tasks, sizes))
    for way in WAYS:
        part = parts_of(graph, plain(nodes=5, cores=4), way)
        assert max(Counter(part[1:-1].tolist()).values()) <= way.imbalance * 200 + 1


def test_a_star_does_not_lose(tmp_path: Path) -> None:
    data = planned(write(tmp_path, star(150)))
    check(data)


def test_the_same_seed_gives_the_same_plan(tmp_path: Path) -> None:
    path = write(tmp_path, star(60))
    assert planned(path, "--seed", "3") == planned(path, "--seed", "3")


def test_a_cycle_is_refused(tmp_path: Path) -> None:
    tasks = [("a", "a", ["y"], ["x"], 0.0), ("b", "b", ["x"], ["y"], 0.0)]
    data = instance(tasks, {"x": MB, "y": MB})
    for task in data["workflow"]["specification"]["tasks"]:
        task["parents"] = []
    for task in data["workflow"]["execution"]["tasks"]:
        del task["runtimeInSeconds"]
    done = inside("plan", write(tmp_path, data), cwd=tmp_path)
    assert done.returncode == 2
    assert "wait for each other" in done.stderr


@pytest.mark.parametrize("nodes", [1, 1000])
def test_one_node_and_a_thousand(tmp_path: Path, nodes: int) -> None:
    data = planned(write(tmp_path, pairs(20)), "--nodes", str(nodes))
    check(data)
    assert data["nodes"] == nodes


def test_without_metis_the_rest_is_planned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.metadata.files", lambda name: [])
    monkeypatch.setattr(metis.shutil, "which", lambda name: None)
    data = planned(write(tmp_path, pairs(10)))
    check(data)
    left = {row["name"]: row["reason"] for row in data["left_out"]}
    assert "cmeel-metis" in left["partition"]
    assert data["chosen"] == "local-first"


def test_a_plan_for_more_tasks_than_were_recorded(tmp_path: Path) -> None:
    """Times and sizes come from a run of 4 chains; the graph has 60."""
    write(tmp_path, pairs(4), name="small.json")
    bare = pairs(60)
    for file in bare["workflow"]["specification"]["files"]:
        file["sizeInBytes"] = 0
    del bare["workflow"]["specification"]["files"]
    del bare["workflow"]["execution"]
    path = write(tmp_path, bare)
    data = planned(path, "--learned", "small.json")
    check(data)
    assert data["seconds"]["planned"] < data["seconds"]["default"]
    whole = planned(write(tmp_path, pairs(60), name="whole.json"))
    assert data["seconds"]["default"] == pytest.approx(whole["seconds"]["default"], rel=0.15)


def test_from_python(tmp_path: Path) -> None:
    path = write(tmp_path, pairs(10))
    assert inside("import", path, "-o", "run.trace", cwd=tmp_path).returncode == 0
    data = tracehint.load(tmp_path / "run.trace").plan(tmp_path / "rig.toml", nodes=3)
    check(data)
    assert data["nodes"] == 3


@pytest.mark.parametrize("limit", ["NOT_WORSE", "MORE_BYTES"])
def test_rules_that_lose_by_name_are_not_written(
    limit: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every draft with hints by name is slower or moves more: the file has no rules, and a note
    states that."""
    monkeypatch.setattr(planner, limit, 0.0)
    data = planned(write(tmp_path, pairs(10)), "-o", "h.json")
    assert load(tmp_path / "h.json").rules == ()
    assert any("no rules by name" in note for note in data["assumptions"])


def test_rules_that_save_next_to_nothing_are_not_written(tmp_path: Path) -> None:
    """Hints can place only a thousandth of the bytes: any benefit would be chance."""
    tasks, sizes = [], {}
    for i in range(10):
        tasks.append((f"make_{i}", "make", [f"in_{i}.dat"], [f"made_{i}.dat"], 1.0))
        tasks.append((f"pack_{i}", "pack", [f"made_{i}.dat"], [f"packed_{i}.dat"], 1.0))
        sizes |= {f"in_{i}.dat": 100 * MB, f"made_{i}.dat": MB // 10, f"packed_{i}.dat": MB // 10}
    data = planned(write(tmp_path, instance(tasks, sizes)), "-o", "h.json")
    assert load(tmp_path / "h.json").rules == ()
    assert any("no rules by name" in note for note in data["assumptions"])


def test_a_run_of_too_many_files_says_so_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert f"{drafts.MAX_FILES:,}" in LARGE
    for module in (planner, drafts):
        monkeypatch.setattr(module, "MAX_FILES", 10)
    data = planned(write(tmp_path, pairs(10)), "-o", "h.json")
    file = load(tmp_path / "h.json")
    assert file.rules == () and file.plan is not None and file.plan.files
    assert [note for note in data["assumptions"] if "rules by name" in note] == [LARGE]


def test_rules_of_the_file_are_local_or_better(tmp_path: Path) -> None:
    planned(write(tmp_path, pairs(10)), "-o", "h.json")
    kept = load(tmp_path / "h.json")
    assert kept.rules and kept.parameters["rules"] in planner.SETS


def test_names_of_every_byte(tmp_path: Path) -> None:
    names = [to_text(name).replace("\\", "/")[:60] for name in HOSTILE_NAMES]
    names = [name for name in dict.fromkeys(names) if name.strip("/. ")]
    tasks = []
    for i, name in enumerate(names):
        tasks.append((f"make {name}", "make", [], [f"a{i} {name}"], 1.0))
        tasks.append((f"use {name}", "use", [f"a{i} {name}"], [f"b{i} {name}"], 1.0))
    sizes = {f: MB for task in tasks for f in (*task[2], *task[3])}
    data = planned(write(tmp_path, instance(tasks, sizes)), "-o", "h.json")
    check(data)
    assert load(tmp_path / "h.json").plan is not None


def test_local_rules_need_no_graph_and_leave_inputs_alone() -> None:
    run = Flowing()
    for i in range(6):
        run.read(run.task("make"), f"in_{i}.dat", MB)
        run.write(i, f"p_{i}.dat", MB)
    for i in range(6):
        use = run.task("use")
        run.read(use, f"p_{i}.dat", MB)
        run.read(use, f"p_{(i + 1) % 6}.dat", MB)
    hints = learn([run.analysis()])
    local = replace(hints, rules=planner.SETS["local"](hints.rules))
    names = [b"p_77.dat", b"in_77.dat"]
    found = Matcher(local).match(names, None, 5, frozenset(names))
    assert [match.values for match in found] == [{"DP": "local"}, {}]


@pytest.mark.parametrize("readers", [3_000, pytest.param(100_000, marks=pytest.mark.full)])
def test_a_file_with_very_many_readers(tmp_path: Path, readers: int) -> None:
    tasks: list[Any] = [("seed", "seed", [], ["seed.bin"], 1.0)]
    tasks += [(f"use_{i}", "use", ["seed.bin"], [], 0.1) for i in range(readers)]
    data = planned(write(tmp_path, instance(tasks, {"seed.bin": MB})))
    check(data)


def test_montage_halves_its_time_and_its_bytes(tmp_path: Path) -> None:
    """Replay of a real run: sizes divided by 8, times by 50, no page cache on the clients."""
    write(tmp_path, pairs(1))
    rig = tmp_path / "rig.toml"
    rig.write_text(rig.read_text() + "[store]\nclient_cache = false\n")
    source = data_folder() / "montage-chameleon-2mass-05d-001.json.gz"
    done = inside(
        "plan", source, "--cluster", rig, "--scale-bytes", "0.125", "--scale-seconds", "0.02",
        "--format", "json", cwd=tmp_path,
    )  # fmt: skip  # a table
    assert done.returncode == 0, done.stderr
    data = json.loads(done.stdout)
    check(data)
    default, best = rows(data)["default"], rows(data)[data["chosen"]]
    assert best["seconds"] <= 0.5 * default["seconds"]
    assert best["network_bytes"] <= 0.25 * default["network_bytes"]
