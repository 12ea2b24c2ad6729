"""tracehint-sim under sanitizers: real workloads, then damaged files, which it must reject."""

from __future__ import annotations

import random
import subprocess
from pathlib import Path

import numpy as np
import pytest

from tests.support.patience import PATIENCE_S
from tests.support.predicting import (
    MB,
    SANITIZERS,
    Task,
    build_engine,
    need_engine,
    plain,
    workload,
)
from tracehint.analyzer.predict.cluster import Cluster
from tracehint.analyzer.predict.cluster_file import read_cluster, ready_made
from tracehint.analyzer.predict.model import STRATEGIES, Placement, Workload
from tracehint.analyzer.predict.simulator import build, find_program, scenario_bytes, workload_bytes

ENVIRONMENT = {"ASAN_OPTIONS": "detect_leaks=1:allocator_may_return_null=1"}


@pytest.fixture(scope="module")
def checked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The engine built with address and undefined behaviour sanitizers."""
    return build_engine(tmp_path_factory.mktemp("sim"), *SANITIZERS)


def some_workload() -> Workload:
    """Build layers of tasks with shared, large, small and empty files, and ranges of them."""
    tasks, sizes = [], {"in": 700 * MB, "empty": 0, "small": 1000}
    for i in range(40):
        steps: list[tuple[str, object]] = [("read", "empty"), ("read", "small")]
        steps += [("read", ("in", i * 10 * MB, 10 * MB)), ("compute", 0.1 * i)]
        if i >= 10:
            steps += [("read", f"out{i - 10}"), ("read", f"out{i - 7}")] if i < 37 else []
        sizes[f"out{i}"] = 30 * MB * (i % 4)
        tasks.append(Task(f"t{i}", [*steps, ("write", f"out{i}")], type=f"k{i % 3}"))
    tasks.append(Task("last", [("read", f"out{i}") for i in range(40)]))
    return workload(tasks, sizes)


def placements(work: Workload, hosts: int) -> list[Placement]:
    """Return placements with every law and target, copies and chunks of all sizes, and a plan."""
    n = np.arange(work.files)
    law = (n % 8 - 1).astype(np.int32)
    mixed = Placement(
        "mixed", law, (n % 5).astype(np.int32), (n % min(3, hosts)).astype(np.int32),
        (n % 4 * 3 * MB).astype(np.int64), (np.arange(work.tasks) % hosts - 1).astype(np.int32),
        groups=3, scheduler="plan",
    )  # fmt: skip  # a table
    return [Placement("default"), mixed]


def sharing(nodes: int) -> Cluster:
    """Return a cluster of nodes on one machine, with a store that uses its processors."""
    costs = "client_cpu_ms_mb = 3\nserver_cpu_ms_mb = 2\nlink_cpu_ms_mb = 1\nfile_cpu_ms = 1"
    machine = '[[hosts]]\nname = "m"\nprocessors = 2'
    store = f"{costs}\nopen_ms = 0.1\nchunk_mb = 1\nwindow = 8\nstream_mb_s = 5"
    return plain(nodes, 2, node='host = "m"', store=store, rest=machine)


def run(
    program: Path, folder: Path, work: bytes, runs: bytes
) -> subprocess.CompletedProcess[bytes]:
    (folder / "work").write_bytes(work)
    (folder / "runs").write_bytes(runs)
    return subprocess.run(
        [program, folder / "work", folder / "runs"],
        capture_output=True,
        env=ENVIRONMENT,
        timeout=PATIENCE_S,
        check=False,
    )


@pytest.mark.slow
def test_all_clusters_and_placements_under_sanitizers(checked: Path, tmp_path: Path) -> None:
    work = some_workload()
    runs = b""
    count = 0
    clusters = [read_cluster(name) for name in ready_made()]
    clusters += [plain(40, 2, store="chunk_mb = 1\nwindow = 4"), plain(1, 1), plain(600, 1)]
    clusters += [sharing(40), sharing(5)]
    for cluster in clusters:
        machine = build(cluster, 3)
        options = placements(work, cluster.count)
        options += [strategy(work, cluster) for strategy in STRATEGIES.values()]
        for placement in options:
            runs += scenario_bytes(build(cluster, 3, placement.scheduler), placement, True)
            count += 1
        assert machine.hosts
    done = run(checked, tmp_path, workload_bytes(work), runs)
    assert done.returncode == 0, done.stderr.decode()[-2000:]
    again = run(checked, tmp_path, workload_bytes(work), runs)
    assert again.stdout == done.stdout and len(done.stdout) > count * work.tasks * 8


def damaged(data: bytes, chance: random.Random) -> bytes:
    """Change, remove or duplicate bytes, or replace a number by an extreme one."""
    raw = bytearray(data)
    for _ in range(chance.randint(1, 4)):
        at = chance.randrange(len(raw))
        kind = chance.randrange(5)
        if kind == 0:
            raw[at] ^= 1 << chance.randrange(8)
        elif kind == 1:
            del raw[at : at + chance.randint(1, 64)]
        elif kind == 2:
            raw[at:at] = raw[at : at + chance.randint(1, 64)]
        else:
            at -= at % 8
            number = chance.choice([0, 1, -1, 2**31, 2**40, 2**62, -(2**63), 7])
            real = chance.choice([0.0, -1.0, 1e300, float("nan"), float("inf"), 1e-300, 3.0])
            word = np.int64(number).tobytes() if kind == 3 else np.float64(real).tobytes()
            raw[at : at + 8] = word
        raw = raw or bytearray(b"x")
    return bytes(raw)


def fuzz(checked: Path, folder: Path, rounds: int, seed: int) -> set[int]:
    """Return the exit codes for damaged inputs; assert that no sanitizer reported an error."""
    tasks = [
        Task("a", [("read", "x"), ("compute", 1), ("write", "y")]),
        Task("b", [("read", "y"), ("read", ("x", 3, 9))]),
    ]
    work = workload(tasks, {"x": 5 * MB, "y": MB})
    cluster = sharing(5)
    place = placements(work, cluster.count)[1]
    good = workload_bytes(work), scenario_bytes(build(cluster, 1, "plan"), place, True)
    chance = random.Random(seed)
    codes = set()
    for _ in range(rounds):
        one, two = good
        if chance.random() < 0.5:
            one = damaged(one, chance)
        else:
            two = damaged(two, chance)
        done = run(checked, folder, one, two)
        assert done.returncode in (0, 2, 3), (done.returncode, done.stderr.decode()[-2000:])
        assert done.returncode == 0 or done.stderr.startswith(b"tracehint-sim: ")
        codes.add(done.returncode)
    return codes


@pytest.mark.slow
def test_damaged_files_are_refused(checked: Path, tmp_path: Path) -> None:
    assert 2 in fuzz(checked, tmp_path, 40, 11)


@pytest.mark.full
def test_many_damaged_files_are_refused(checked: Path, tmp_path: Path) -> None:
    assert {0, 2} <= fuzz(checked, tmp_path, 20_000, 12)


def test_what_is_no_input_is_named(tmp_path: Path) -> None:
    need_engine()
    program = find_program()
    for words, said in (([], b"usage:"), ([tmp_path / "none", tmp_path], b"cannot be opened"),
                        ([tmp_path, tmp_path], b"not a regular file")):  # fmt: skip  # a table
        done = subprocess.run([program, *words], capture_output=True, check=False)
        assert done.returncode == 2 and said in done.stderr
