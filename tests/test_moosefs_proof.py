"""Proof on a real store: hints learned from one run make the next one move fewer bytes.

A pipeline workflow is recorded on a plain disk with small files. Its hints go into the Makeflow tag
table, and the workflow runs twice on MooseFS over five shaped nodes with files ten times as large:
without hints on nodes chosen at random, and with hints, each task where `locate` says its input is.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.moosefs import missing
from tests.support.shaped import Node, bytes_moved, shaped_cluster

pytestmark = [pytest.mark.slow, pytest.mark.store]

TOOL = [sys.executable, "-m", "tracehint"]
CHAINS = 5
MB = 1_000_000
STAGES = (
    ("a_{i}.dat", "", "yes chain_{i} | head -c {size} > a_{i}.dat"),
    ("b_{i}.dat", "a_{i}.dat", "tr a-y b-z < a_{i}.dat > b_{i}.dat"),
    ("c_{i}.dat", "b_{i}.dat", "dd if=b_{i}.dat of=c_{i}.dat bs=1M conv=swab status=none"),
    ("sum_{i}.txt", "c_{i}.dat", "sha256sum < c_{i}.dat > sum_{i}.txt"),
)


def workflow(size: int) -> str:
    """The Makeflow file: CHAINS independent pipelines."""
    rules = [
        f"{made}: {read}\n\t{command}\n".format(i=i, size=size)
        for made, read, command in STAGES
        for i in range(CHAINS)
    ]
    return "\n".join(rules)


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Node]]:
    """The cluster."""
    reason = missing() or ("no tc" if shutil.which("tc") is None else "")
    if reason:
        pytest.skip(reason)
    with shaped_cluster(tmp_path_factory.mktemp("shaped")) as started:
        yield started


@pytest.fixture(scope="module")
def hints(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Learned from a run with files of 4 MB on a plain disk, by the project's own collector."""
    if shutil.which("makeflow") is None:
        pytest.skip("makeflow is not installed")
    folder = tmp_path_factory.mktemp("learn")
    (folder / "w.mf").write_text(workflow(4 * MB))
    for command in (
        ["record", "-o", "run.trace", "--", "makeflow", "-T", "local", "w.mf"],
        ["hints", "run.trace", "--nodes", "5", "-o", "hints.json"],
    ):
        done = subprocess.run([*TOOL, *command], cwd=folder, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    return folder / "hints.json"


@dataclass
class Result:
    """One run of the workflow on the store."""

    bytes: int
    seconds: float
    sums: list[str]
    writer: dict[str, str]  # file -> label of the node that wrote it


def run_on(nodes: list[Node], name: str, tags: Path | None, seed: int) -> Result:
    """Run stage by stage, all chains of a stage at the same time."""
    rng = random.Random(seed)
    folder = nodes[0].mount / name
    folder.mkdir()
    if tags is not None:
        shutil.copytree(tags, folder / "w.tracehint")
        (folder / "w.tracehint" / "tag").chmod(0o755)
    start, before = time.monotonic(), bytes_moved(nodes)
    writer: dict[str, str] = {}
    for stage, (made, read, command) in enumerate(STAGES):
        where = located(nodes, folder, [read.format(i=i) for i in range(CHAINS)]) if (
            tags is not None and read) else {}  # fmt: skip
        running = []
        for i in range(CHAINS):
            node = where.get(read.format(i=i)) or rng.choice(nodes)
            words = ["/bin/sh", "-c", command.format(i=i, size=40 * MB)]
            if tags is not None:
                words = ["./w.tracehint/tag", str(stage * CHAINS + i), *words]
            writer[made.format(i=i)] = node.label
            running.append(subprocess.Popen(node.command(*words), cwd=node.mount / name))
        assert [process.wait(timeout=120) for process in running] == [0] * CHAINS
    seconds, moved = time.monotonic() - start, bytes_moved(nodes) - before
    sums = [hashlib.sha256((folder / f"c_{i}.dat").read_bytes()).hexdigest()
            for i in range(CHAINS)]  # fmt: skip
    sums += [(folder / f"sum_{i}.txt").read_text() for i in range(CHAINS)]
    return Result(moved, seconds, sums, writer)


def located(nodes: list[Node], folder: Path, names: list[str]) -> dict[str, Node]:
    """The node of each file, by `tracehint locate`."""
    command = [*TOOL, "locate", *names, "--store", "moosefs", "--format", "json"]
    done = nodes[0].run(*command, cwd=folder)
    by_address = {node.address: node for node in nodes}
    return {row["path"]: by_address[row["nodes"][0]] for row in json.loads(done.stdout)["files"]}


def test_a_hinted_pipeline_stays_on_its_nodes(
    nodes: list[Node], hints: Path, tmp_path: Path
) -> None:
    (tmp_path / "w.mf").write_text(workflow(40 * MB))
    (tmp_path / "map.toml").write_text('local = "node_{host}"\n')
    command = ["emit", hints, "--workflow-engine", "makeflow", "w.mf", "-o", "t.mf",
               "--store", "moosefs", "--map", "map.toml"]  # fmt: skip
    subprocess.run([*TOOL, *map(str, command)], cwd=tmp_path, check=True)

    plain = run_on(nodes, "plain", None, seed=1)
    hinted = run_on(nodes, "hinted", tmp_path / "t.mf.tracehint", seed=1)

    report = {
        "pipeline, 40 MB files, 5 nodes": {
            "default": {"MB": round(plain.bytes / MB, 1), "s": round(plain.seconds, 2)},
            "hinted": {"MB": round(hinted.bytes / MB, 1), "s": round(hinted.seconds, 2)},
        }
    }
    print(json.dumps(report))
    if os.environ.get("TRACEHINT_BENCH_OUT"):
        Path(os.environ["TRACEHINT_BENCH_OUT"]).write_text(json.dumps(report) + "\n")
    assert hinted.sums == plain.sums, "outputs are identical"
    where = located(nodes, nodes[0].mount / "hinted", sorted(hinted.writer))
    large = [name for name in hinted.writer if name.endswith(".dat")]
    assert {n: where[n].label for n in large} == {n: hinted.writer[n] for n in large}
    assert hinted.bytes <= plain.bytes / 5
