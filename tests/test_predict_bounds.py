"""Bad and large inputs of `predict`: an error that names the input, or a bounded result."""

from __future__ import annotations

import json
import math
import resource
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.cli import inside
from tests.support.planning import MB, instance, write
from tests.support.predicting import Task, need_engine, plain, run, workload
from tracehint.adapters.probe.derive import MODEL_ERROR, MODEL_SOURCE, Known, cluster_text
from tracehint.analyzer.predict.cluster import TABLES, Flag, Number, Range, Word
from tracehint.analyzer.predict.cluster_file import parse_cluster, read_cluster, ready_made
from tracehint.analyzer.predict.model import Workload, default
from tracehint.analyzer.predict.prediction import (
    GUESS_ERROR,
    Configuration,
    draw_cluster,
    interval,
    predict,
)
from tracehint.analyzer.predict.simulator import build
from tracehint.app.prediction import _interval_text
from tracehint.errors import InputError
from tracehint.hintgen.plan.objective import min_difference

REPOSITORY = Path(__file__).parents[1]
GB = 1 << 30
# prints tasks, seconds and peak memory in bytes of a prediction of one stage of this many tasks
LARGE = """
import resource, sys, time
from scripts.bench.bench_predict import layered
from tests.support.work import peak
from tracehint.analyzer.predict.cluster_file import parse_cluster
from tracehint.analyzer.predict.model import default
from tracehint.analyzer.predict.prediction import Configuration, predict
tasks = int(sys.argv[1])
cluster = parse_cluster('base = "moosefs"\\n[nodes]\\ncount = 100', "c.toml")
begun = time.process_time()
found = predict(layered(tasks, tasks), [Configuration("", cluster, "", default)], runs=1)[0]
engine = resource.getrusage(resource.RUSAGE_CHILDREN)
spent = time.process_time() - begun + engine.ru_utime + engine.ru_stime
print(found.outcome.types[0, 2], spent, peak() + 1024 * engine.ru_maxrss)
"""


@pytest.fixture(autouse=True)
def _engine() -> None:
    need_engine()


@pytest.mark.slow
def test_a_million_tasks_of_one_stage() -> None:
    done = subprocess.run(
        [sys.executable, "-c", LARGE, "1000000"],
        cwd=REPOSITORY, capture_output=True, text=True, check=False,
    )  # fmt: skip  # a table
    assert done.returncode == 0, done.stderr
    tasks, seconds, memory = map(float, done.stdout.split())
    assert tasks == 1_000_000
    assert seconds < 600 and memory < 3 * GB  # processor seconds; without other load 10 s, 1.6 GB


def one_file(readers: int) -> Workload:
    """Return a workload of tasks that only read one file."""
    work = workload([Task("t", [("read", "x")])], {"x": 10 * MB})
    ones = np.ones(readers, np.int64)
    work.task_id, work.names = np.arange(readers), ["t"] * readers
    work.busy = np.repeat(work.busy, readers)
    work.type, work.cores = np.zeros(readers, np.int32), ones.astype(np.int32)
    work.op_begin = np.arange(readers + 1)
    work.op_kind = np.repeat(work.op_kind, readers)
    work.op_file = np.repeat(work.op_file, readers)
    work.op_start, work.op_length, work.op_bytes = 0 * ones, 10 * MB * ones, 10 * MB * ones
    work.op_seconds = np.zeros(readers)
    work.dep_begin = np.zeros(readers + 1, np.int64)
    return work


@pytest.mark.slow
@pytest.mark.parametrize("cache", ["true", "false"])
def test_a_file_of_a_hundred_thousand_readers(cache: str) -> None:
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    begun = time.process_time()
    found = run(one_file(100_000), plain(100, 8, store=f"client_cache = {cache}"))
    after = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    assert found.types[0, 2] == 100_000
    assert after - before + time.process_time() - begun < 600
    if cache == "true":  # each of 100 nodes fetches it once, except the one that stores it
        assert found.network_bytes == pytest.approx(99 * 10 * MB)


def predicted(folder: Path, data: dict[str, Any]) -> tuple[int, dict[str, Any], str]:
    """Return the exit code, JSON object and error of `predict` for a WfFormat instance."""
    path = write(folder, data)
    words = ("predict", path, "--cluster", "rig.toml", "--format", "json")
    done = inside(*words, cwd=folder)
    return done.returncode, json.loads(done.stdout) if done.stdout else {}, done.stderr


def test_tasks_that_wait_for_each_other(tmp_path: Path) -> None:
    tasks = [("a", "a", ["y"], ["x"], 1.0), ("b", "b", ["x"], ["y"], 1.0)]
    data = instance(tasks, {"x": MB, "y": MB})
    del data["workflow"]["execution"]
    code, _, error = predicted(tmp_path, data)
    assert code == 2 and "wait for each other" in error and "Traceback" not in error


def test_tasks_without_files(tmp_path: Path) -> None:
    data = instance([(f"t_{i}", "t", [], [], 2.0) for i in range(40)], {})
    code, found, error = predicted(tmp_path, data)
    assert code == 0, error
    (row,) = found["configurations"]
    assert row["seconds"] == pytest.approx(4, rel=0.05) and row["network_bytes"] == 0


@pytest.mark.parametrize("size", [0, -1, 1 << 62, 10**30, 1e308, None, "many", True])
def test_sizes_that_cannot_be(tmp_path: Path, size: object) -> None:
    data = instance([("a", "a", [], ["x"], 1.0), ("b", "b", ["x"], [], 1.0)], {"x": MB})
    data["workflow"]["specification"]["files"][0]["sizeInBytes"] = size
    code, found, error = predicted(tmp_path, data)
    assert "Traceback" not in error
    if code:
        assert code == 2 and "tracehint:" in error
    else:
        assert found["configurations"][0]["seconds"] >= 2


@pytest.mark.parametrize("seconds", [0, -5, 1e300, 10**40, None, "long", True])
def test_times_that_cannot_be(tmp_path: Path, seconds: object) -> None:
    data = instance([("a", "a", [], ["x"], 1.0), ("b", "b", ["x"], [], 1.0)], {"x": MB})
    data["workflow"]["execution"]["tasks"][0]["runtimeInSeconds"] = seconds
    code, found, error = predicted(tmp_path, data)
    assert "Traceback" not in error
    if code:
        assert code == 2 and "tracehint:" in error
    else:
        assert 1 <= found["configurations"][0]["seconds"] < 1e18


# -- Width of prediction intervals, and the use of the errors behind them


def half(guessed: float) -> float:
    """Return half of the interval of a run of one second, as a share of the time."""
    need_engine()
    work = replace(workload([Task("one", [("compute", 1.0)])], {}), guessed=guessed)
    found = predict(work, [Configuration("x", plain(), "default", default)])[0]
    return (found.high - found.low) / 2 / found.seconds


def test_what_calibrate_writes_is_what_was_measured() -> None:
    known = Known("model", "error", Range(MODEL_ERROR, MODEL_ERROR, MODEL_ERROR), MODEL_SOURCE)
    found = parse_cluster(cluster_text("mine", "moosefs", [known], []), "mine.toml")
    assert found.model["error"] == MODEL_ERROR < read_cluster("moosefs").model["error"]


@pytest.mark.parametrize("guessed", [0.0, 0.5, 1.0])
def test_what_is_guessed_widens_the_interval(guessed: float) -> None:
    assert half(guessed) == pytest.approx(GUESS_ERROR * guessed)


def test_a_choice_asks_for_a_difference_that_was_measured() -> None:
    assert min_difference(MODEL_ERROR) == pytest.approx(0.12, abs=0.005)
    assert min_difference(0.4) == 0.2
    assert math.isclose(min_difference(0.0), 0.0)


@pytest.mark.parametrize(
    ("measured", "said"), [(12.0, "error = 0.20"), (10.0, "error = 0.01"), (50.0, "error = 1.00")]
)
def test_a_comparison_says_what_to_keep(measured: float, said: str) -> None:
    found: dict[str, Any] = {
        "measured_seconds": measured, "predicted_seconds": 10.0, "inside": measured < 14
    }  # fmt: skip  # a table
    text = _interval_text(found)
    assert text.endswith(said) and ("inside" if measured < 14 else "outside") in text


# -- Cluster files: every key has limits, and errors name the wrong key and a valid value


LEAST = "[nodes]\ncount = 2\ncores = 1\nlink_mbit = 1000\n"


BASE = 'base = "moosefs"\n'


@pytest.mark.parametrize("name", ready_made())
def test_ready_made_clusters_read(name: str) -> None:
    cluster = read_cluster(name)
    assert cluster.name == name and cluster.count == 5
    machine = build(cluster, 1)
    assert machine.servers and len(machine.hosts) >= 5


def test_a_base_gives_what_is_not_said() -> None:
    cluster = parse_cluster('base = "cephfs"\n[nodes]\ncount = 9\n[store]\ncopies = 2\n', "x.toml")
    assert cluster.count == 9 and cluster.store["copies"] == 2
    assert cluster.store.words["law"] == "random" and cluster.name == "x"


def test_a_range_has_a_middle() -> None:
    cluster = parse_cluster(BASE + "[store]\nopen_ms = [1, 3]\ncreate_ms = [1, 1.5, 4]\n", "x")
    opened, made = cluster.store.numbers["open_ms"], cluster.store.numbers["create_ms"]
    assert (opened.low, opened.value, opened.high) == pytest.approx((1e-3, 2e-3, 3e-3))
    assert made.value == pytest.approx(1.5e-3)
    assert [made.at(p) for p in (0, 0.5, 1)] == pytest.approx([1e-3, 1.5e-3, 4e-3])


def test_classes_of_nodes_keep_their_share() -> None:
    text = LEAST + "\n".join(["[[nodes]]\ncount = 4\ncores = 8\nlink_mbit = 100"])
    cluster = parse_cluster(text.replace("[nodes]\n", "[[nodes]]\n"), "x")
    assert cluster.count == 6
    assert [int(part["count"]) for part in cluster.with_nodes(12).nodes] == [4, 8]
    assert len(build(cluster, 1).hosts) == 6


WRONG = [
    ("", "nodes.cores: is missing"), ("x = 1", "x: is not known"), ("[nodes", "is not TOML"),
    ("nodes = 3", "nodes: is not a table"), ("nodes = []", "nodes: has 0 tables"),
    ("[nodes]\ncount = 0\ncores = 1\nlink_mbit = 1", "nodes.count: is 0"),
    ("[nodes]\ncount = -1\ncores = 1\nlink_mbit = 1", "nodes.count: is -1"),
    ("[nodes]\ncount = 1.5\ncores = 1\nlink_mbit = 1", "nodes.count: is 1.5"),
    ("[nodes]\ncount = [1, 2]\ncores = 1\nlink_mbit = 1", "nodes.count: is [1, 2]"),
    ("[nodes]\ncount = 1\ncores = 1\nlink_mbit = 0", "nodes.link_mbit: is 0"),
    ("[nodes]\ncount = 1\ncores = 1\nlink_mbit = inf", "nodes.link_mbit: is inf"),
    ("[nodes]\ncount = 1\ncores = 1\nlink_mbit = 1e300", "nodes.link_mbit: is 1e+300"),
    ('[nodes]\ncount = 1\ncores = 1\nlink_mbit = "1"', "nodes.link_mbit: is '1'"),
    (LEAST + "[store]\nchunk_mb = true", "store.chunk_mb: is True"),
    (LEAST + "[store]\nwarm = 1", "store.warm: is 1"),
    (LEAST + '[store]\nlaw = "any"', "store.law: is 'any'"),
    (LEAST + "[store]\ncopies = 65", "store.copies: is 65"),
    (LEAST + "[store]\nopen_ms = [3, 1]", "store.open_ms: is [3, 1]"),
    (LEAST + "[store]\nopen_ms = [1, 2, 3, 4]", "store.open_ms: is [1, 2, 3, 4]"),
    (LEAST + "cors = 2", "Did you mean cores?"),
    (LEAST + 'site = "a"', "site: 'a' is not one of [[sites]]"),
    (LEAST + '[store]\nservers = "apart"', "servers: is missing"),
    ('base = "gpfs"', "base: is 'gpfs'"), ("base = 3", "base: is 3"),
    ('name = "../x"\n' + LEAST, "name: '../x'"),
    ('[[sites]]\nname = "a"\n' + LEAST, "sites.up_mbit: is missing"),
    (LEAST + 'host = "a"', "host: 'a' is not one of [[hosts]]"),
    (LEAST + '[[hosts]]\nname = "a"', "hosts.processors: is missing"),
    (LEAST + "[[hosts]]\nprocessors = 1", "hosts.name: is missing"),
    (LEAST + '[[hosts]]\nname = "a"\nprocessors = 0', "hosts.processors: is 0"),
    (LEAST + '[[hosts]]\nname = "a"\nprocessors = 1\n[[hosts]]\nname = "a"\nprocessors = 1',
        "hosts.name: occurs twice"),
    ("a = " + "[" * 5000, "is not TOML"),
    ("[[nodes]]\ncount = 9000\ncores = 1\nlink_mbit = 1\n" * 2, "18000 nodes are too many"),
]  # fmt: skip  # a table


@pytest.mark.parametrize(("text", "said"), WRONG)
def test_what_is_wrong_is_named(text: str, said: str) -> None:
    with pytest.raises(InputError) as error:
        parse_cluster(text, "x.toml")
    assert said in str(error.value) and "x.toml" in str(error.value) and error.value.remedy


def test_files_that_are_none(tmp_path: Path) -> None:
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    (tmp_path / "large").write_bytes(b"#" * (1 << 20) + b"##")
    for name, said in (("binary", "not UTF-8"), ("large", "larger than"), ("none", "moosefs")):
        with pytest.raises(InputError, match=said):
            read_cluster(tmp_path / name)


def test_every_key_is_tried_at_and_beyond_its_limits() -> None:
    for table, (fields, _) in TABLES.items():
        for key, field in fields.items():
            if not isinstance(field, Number) or table in ("sites", "links", "servers", "hosts"):
                continue
            for value, good in ((field.least, True), (field.most * 2 + 1, False)):
                own = LEAST.replace(f"{key} =", "#") if table == "nodes" else LEAST + f"[{table}]\n"
                text = f"{own}{key} = {value!r}\n"
                if good:
                    parse_cluster(text, "x")
                    continue
                with pytest.raises(InputError, match=f"{table}.{key}: is"):
                    parse_cluster(text, "x")


@pytest.mark.slow
@given(st.text(max_size=200))
def test_any_text_is_a_cluster_or_an_error(text: str) -> None:
    try:
        parse_cluster(LEAST + text, "x")
    except InputError as error:
        assert error.remedy


def test_the_default_of_every_key_is_allowed() -> None:
    for fields, _ in TABLES.values():
        for key, field in fields.items():
            if isinstance(field, Number) and field.default is not None:
                assert field.least <= field.default <= field.most, key
            if isinstance(field, Word) and field.choices:
                assert field.default in field.choices, key
            assert isinstance(field, Flag | Number | Word) and field.meaning


def test_draws_stay_within_the_ranges() -> None:
    cluster = parse_cluster(BASE + "[nodes]\nlink_mbit = [100, 200]\n", "x")
    rates = {draw_cluster(cluster, seed).nodes[0]["link_mbit"] / 125_000 for seed in range(1, 50)}
    assert min(rates) >= 100 and max(rates) <= 200 and len(rates) == 49
    assert draw_cluster(cluster, 0) is cluster and draw_cluster(cluster, 7) == draw_cluster(
        cluster, 7
    )


def test_an_interval_holds_its_runs() -> None:
    low, high = interval([9.0, 10.0, 11.0], 0.1)
    assert low < 9 and high > 11 and math.isclose(low + high, 20)
    assert interval([10.0], 0.1) == pytest.approx((9, 11))
