"""Bad and large input of `predict`: an error that names the thing, or an answer in bounds."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support.cli import inside
from tests.support.planning import MB, instance, write
from tests.support.predicting import Task, need_engine, plain, run, workload
from tracehint.analyzer.predict.model import Workload

REPOSITORY = Path(__file__).parents[1]
GB = 1 << 30
# prints seconds and the most memory in bytes of a prediction of so many tasks of one stage
LARGE = """
import resource, sys, time
from scripts.bench.bench_predict import layered
from tests.support.work import peak
from tracehint.analyzer.predict.cluster_file import parse_cluster
from tracehint.analyzer.predict.placement import default
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
    assert seconds < 600 and memory < 3 * GB  # of the processor; alone 10 s, 1.6 GB


def one_file(readers: int) -> Workload:
    """So many tasks that read one file and nothing else."""
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
    if cache == "true":  # of 100 nodes all but the one that holds it fetch it once
        assert found.network_bytes == pytest.approx(99 * 10 * MB)


def predicted(folder: Path, data: dict[str, Any]) -> tuple[int, dict[str, Any], str]:
    """Exit code, object and error of `predict` for a WfFormat instance."""
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
