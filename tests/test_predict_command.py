"""`tracehint predict` as users call it: its contract, sweeps, formats, and rejected input."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tracehint
from tests.support.bundles import RunBuilder
from tests.support.cli import inside
from tests.support.hints import json_schema
from tests.support.predicting import need_engine
from tracehint.errors import InputError
from tracehint.hintgen.text.units import size

pytestmark = pytest.mark.slow

CLUSTER = """
base = "moosefs"
name = "mine"
[nodes]
count = 4
cores = 2
link_mbit = [180, 200, 210]
idle_watts = 100
compute_watts = 50
price_per_hour = 3.6
"""
SIZE = 20_000_000


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A writer, two concurrent readers, and one task that reads their outputs."""
    need_engine()
    build = RunBuilder()
    driver = build.process(["sh", "wf.sh"])
    source = build.file("/data/in", existed=True, size=SIZE)
    maker = build.process(["make_it"], parent=driver, start=1, end=4)
    build.read(maker, source, 0, SIZE, at=1)
    shared = build.file("/data/shared", existed=False, size=SIZE)
    build.write(maker, shared, 0, SIZE, at=3)
    parts = []
    for i in range(2):
        user = build.process(["use", str(i)], parent=driver, start=5, end=7)
        build.read(user, shared, 0, SIZE, at=5)
        parts.append(build.file(f"/data/part{i}", existed=False, size=SIZE))
        build.write(user, parts[-1], 0, SIZE, at=6)
    last = build.process(["merge"], parent=driver, start=8, end=9)
    for part in parts:
        build.read(last, part, 0, SIZE, at=8)
    (tmp_path / "mine.toml").write_text(CLUSTER)
    return Path(build.bundle(tmp_path).path.rename(tmp_path / "run.trace"))


def predicted(run: Path, *words: str) -> dict[str, Any]:
    done = inside("predict", run, "--format", "json", *words, cwd=run.parent)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    schema = json_schema("prediction")
    jsonschema.validate(found, schema)
    return found


def test_the_contract(run: Path) -> None:
    found = predicted(run, "--cluster", "mine.toml", "--tasks")
    (row,) = found["configurations"]
    assert (row["cluster"], row["placement"], row["nodes"]) == ("mine", "default", 4)
    assert row["seconds_low"] < row["seconds"] < row["seconds_high"]
    assert [s["type"] for s in row["stages"]] == ["make_it", "use", "merge"]
    assert [t["name"] for t in row["tasks"]] == ["make_it", "use 0", "use 1", "merge"]
    assert all(t["start"] <= t["end"] <= row["seconds"] for t in row["tasks"])
    assert found["best"] == {"seconds": row["name"], "cost": row["name"]}
    assert row["cost"] == pytest.approx(row["seconds"] / 1000 * 4)
    # idle power all the time, and at least 8 busy seconds on one of two cores
    assert row["energy_joules"] >= 4 * 100 * row["seconds"] + 50 * 8 / 2
    path = row["critical_path"]
    assert sum(path["seconds"].values()) == pytest.approx(row["seconds"])
    assert path["seconds"]["compute"] == pytest.approx(6)


def test_what_is_not_known_is_null(run: Path) -> None:
    found = predicted(run, "--cluster", "moosefs")
    (row,) = found["configurations"]
    assert row["energy_joules"] is None and row["cost"] is None and found["best"]["cost"] is None
    assert "tasks" not in row


def test_a_sweep_is_every_combination(run: Path) -> None:
    words = ["--cluster", "mine.toml", "--cluster", "nfs", "--nodes", "2,4", "--chunk", "1,64"]
    found = predicted(run, *words, "--placement", "default", "--placement", "local")
    rows = found["configurations"]
    assert len(rows) == 16 and len({row["name"] for row in rows}) == 16
    assert found["best"]["seconds"] == min(rows, key=lambda r: r["seconds"])["name"]
    priced = [row for row in rows if row["cost"] is not None]
    assert {row["cluster"] for row in priced} == {"mine"}
    front = [next(r for r in rows if r["name"] == name) for name in found["front"]]
    assert [r["seconds"] for r in front] == sorted(r["seconds"] for r in front)
    assert [r["cost"] for r in front] == sorted((r["cost"] for r in front), reverse=True)


def test_local_moves_less_than_default(run: Path) -> None:
    found = predicted(
        run, "--cluster", "mine.toml", "--placement", "default", "--placement", "local"
    )
    default, local = found["configurations"]
    assert local["network_bytes"] < default["network_bytes"]
    assert local["seconds"] < default["seconds"]


def test_split_nodes_and_copies(run: Path) -> None:
    found = predicted(run, "--cluster", "mine.toml", "--split-nodes", "1,2", "--copies", "1,2")
    assert [row["nodes"] for row in found["configurations"]] == [3, 2, 3, 2]
    _, one, _, two = found["configurations"]
    assert two["network_bytes"] > one["network_bytes"]


def test_hints_are_a_placement(run: Path) -> None:
    done = inside("hints", run, "-o", "h.json", "--nodes", "4", cwd=run.parent)
    assert done.returncode == 0, done.stderr
    found = predicted(run, "--cluster", "mine.toml", "--placement", "hints:h.json")
    (row,) = found["configurations"]
    assert row["placement"] == "hints:h.json"
    assert any("files get a hint" in note for note in row["notes"])


def test_the_same_call_gives_the_same_answer(run: Path) -> None:
    words = ["--cluster", "mine.toml", "--tasks"]
    assert predicted(run, *words) == predicted(run, *words)
    assert predicted(run, *words) != predicted(run, *words, "--seed", "2")


def test_text_says_why_and_what_it_assumes(run: Path) -> None:
    done = inside("predict", run, "--cluster", "mine.toml", cwd=run.parent)
    assert done.returncode == 0, done.stderr
    for words in (
        "Why: the longest chain has 3 tasks",
        "count as computing",
        "Left out of the model",
    ):
        assert words in done.stdout
    moved = predicted(run, "--cluster", "mine.toml")["configurations"][0]["network_bytes"]
    assert f" {size(moved)} " in done.stdout, "the unit of `profile`"
    sweep = inside("predict", run, "--cluster", "mine.toml", "--nodes", "2,8", cwd=run.parent)
    assert "Best by time: mine" in sweep.stdout and "Best by cost: mine" in sweep.stdout


def test_parquet_has_a_row_per_configuration(run: Path) -> None:
    words = ["--cluster", "mine.toml", "--nodes", "2,4,8", "--format", "parquet", "-o", "s.parquet"]
    assert inside("predict", run, *words, cwd=run.parent).returncode == 0
    table = pq.read_table(run.parent / "s.parquet")
    assert table.column("nodes").to_pylist() == [2, 4, 8]
    again = inside("predict", run, *words, cwd=run.parent)
    assert again.returncode == 2 and "exists" in again.stderr


def test_validate_compares_by_type(run: Path) -> None:
    found = predicted(run, "--cluster", "mine.toml", "--validate", "run.trace")["validation"]
    assert [row["type"] for row in found["types"]] == ["make_it", "use", "merge"]
    assert [row["measured_seconds"] for row in found["types"]] == pytest.approx([3, 2, 1])
    assert found["measured_seconds"] == pytest.approx(8) and found["only"] == []


def test_from_python(run: Path) -> None:
    loaded = tracehint.load(run)
    found = loaded.predict(run.parent / "mine.toml", "local", nodes=8, tasks=True)
    (row,) = found["configurations"]
    assert row["nodes"] == 8 and len(row["tasks"]) == 4
    with pytest.raises(InputError, match=r"nothing\.toml"):
        loaded.predict("nothing.toml")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--nodes", "0"], "--nodes: '0'"), (["--nodes", "2,x"], "'x'"),
        (["--nodes", "99999999"], "'99999999'"), (["--chunk", "nan"], "'nan'"),
        (["--split-nodes", "4"], "leaves none for tasks"),
        (["--placement", "best"], "Choose default, local or hints:FILE"),
        (["--placement", "hints:none.json"], "none.json"),
        (["--format", "parquet"], "needs a file"),
        (["--validate", "none.trace"], "none.trace"), (["--learned", "none.trace"], "none.trace"),
        (["--nodes", ",".join(["3"] * 1002)], "at most 1000"),
    ],
)  # fmt: skip  # a table
def test_what_it_refuses(run: Path, words: list[str], said: str) -> None:
    done = inside("predict", run, "--cluster", "mine.toml", *words, cwd=run.parent)
    assert done.returncode == 2 and said.lower() in done.stderr.lower(), done.stderr
    assert "Traceback" not in done.stderr


def test_without_the_engine_the_remedy_is_named(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tracehint.analyzer.predict import simulator

    monkeypatch.setattr(simulator, "PROGRAM", "tracehint-sim-that-is-not-there")
    done = inside("predict", run, "--cluster", "mine.toml", cwd=run.parent)
    assert done.returncode == 2 and "make tracer" in done.stderr


MAKEFLOW = """shared: in
\t./make_it
part0: shared
\t./use 0
part1: shared
\t./use 1
part2: shared
\t./use 2
out: part0 part1 part2
\t./merge
"""


def test_an_engine_of_another_version_is_told(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tracehint.analyzer.predict import simulator
    from tracehint.errors import MissingDependencyError

    monkeypatch.setattr(simulator, "FORMAT", simulator.FORMAT + 1)
    with pytest.raises(MissingDependencyError, match="does not match this version"):
        tracehint.load(run).predict("moosefs")


def test_a_graph_that_has_not_run_learns_from_one_that_has(run: Path) -> None:
    (run.parent / "w.makeflow").write_text(MAKEFLOW)
    done = inside("import", "w.makeflow", "-o", "next.trace", cwd=run.parent)
    assert done.returncode == 0, done.stderr
    bare = predicted(run.parent / "next.trace", "--cluster", "mine.toml")
    assert any("without times" in text for text in bare["assumptions"])
    found = predicted(run.parent / "next.trace", "--cluster", "mine.toml", "--learned", "run.trace")
    (row,) = found["configurations"]
    assert [stage["tasks"] for stage in row["stages"]] == [1, 3, 1]
    spent = [stage["spent"]["compute"] for stage in row["stages"]]
    assert spent == pytest.approx([3, 3 * 2, 1])
    # every file but the last has the size of the recorded ones; on one of four nodes it is local
    assert row["network_bytes"] > 3 * SIZE
    assert any("learned from 1 run: the times of 5 tasks" in text for text in found["assumptions"])
    assert "without a size" in " ".join(found["assumptions"])  # no run recorded `out`


def test_a_log_beside_the_workflow_does_not_displace_learned_times(run: Path) -> None:
    """An engine's log counts waiting for files and slots as computing; a recording does not."""
    from tracehint.analyzer.predict.learning import learn_times
    from tracehint.analyzer.predict.workload import from_analysis
    from tracehint.app.planning import load_analysis

    (run.parent / "w.makeflow").write_text(MAKEFLOW)
    events = "".join(f"{10**15 + s * 10**6} {n} {state} {77 + n} 0 1 0 0 0 0\n"
                     for n in range(5) for s, state in ((0, 1), (500, 2)))  # fmt: skip  # a table
    (run.parent / "w.makeflow.makeflowlog").write_text(f"# STARTED {10**15}\n{events}")
    stale, seen = load_analysis(run.parent / "w.makeflow"), load_analysis(run)
    assert stale.tasks.column("end_s").to_pylist() == [500.0] * 5
    assert any("those of an engine's log" in note for note in from_analysis(stale).notes)
    at, count = seen.tasks.column_names.index("io_wait_s"), seen.tasks.num_rows
    for waits in ([0.0] * count, [None] * count):  # recorders that measure waiting or cannot
        column = pa.array(waits, pa.float64())
        known = replace(seen, tasks=seen.tasks.set_column(at, "io_wait_s", column))
        found, notes = learn_times(stale, [known])
        assert max(found.tasks.column("end_s").to_pylist()) < 10
        assert "not of the engine's log" in notes[0]
        assert not any("engine's log" in note for note in from_analysis(found).notes)


def test_the_report_draws_a_sweep(run: Path) -> None:
    out = run.parent / "what-if.html"
    done = inside("report", run, "--cluster", "moosefs", "-o", out, cwd=run.parent)
    assert done.returncode == 0, done.stderr
    data = re.search(r'<script type="application/json" id="data">(.*?)</script>', out.read_text())
    assert data is not None
    what = json.loads(data[1])["whatif"]
    assert sorted({p["nodes"] for p in what["points"]}) == [2, 5, 10, 20]
    assert {p["placement"] for p in what["points"]} == {"default", "local"}
    assert what["timeline"]["bars"] and what["recorded_s"] > 0
    wrong = inside("report", run, "--cluster", "none", "-o", "x.html", cwd=run.parent)
    assert wrong.returncode == 2 and "none" in wrong.stderr
    assert not (run.parent / "x.html").exists()
