"""Proof on a real store: hints learned from one run make the next one move fewer bytes.

A workflow is recorded on a plain disk, unhinted. Its hints go into the Makeflow tag table, and it
runs twice on MooseFS over five shaped nodes: without hints on nodes chosen at random, and with
hints, each task where its input is. The same rows as in `make bench-hints`, one run each.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from scripts.bench.hints.__main__ import run_once
from scripts.bench.hints.row import NODES
from scripts.bench.hints.rows import ROWS
from scripts.bench.hints.settings import Prepared, prepare

from tests.support.cluster_run import Result
from tests.support.shaped import MooseBed, missing, shaped_cluster

pytestmark = [pytest.mark.slow, pytest.mark.store]


@pytest.fixture(scope="module")
def bed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MooseBed]:
    """The cluster."""
    reason = missing()
    if reason:
        pytest.skip(reason)
    with shaped_cluster(tmp_path_factory.mktemp("shaped")) as started:
        yield started


@dataclass
class Both:
    """A row without hints and with ours."""

    row: Prepared
    plain: Result
    hinted: Result


def both(bed: MooseBed, name: str, tmp_path: Path) -> Both:
    """Record, learn, run twice; outputs must be the same."""
    if shutil.which("makeflow") is None:
        pytest.skip("makeflow is not installed")
    prepared = prepare(ROWS[name], tmp_path, "moosefs", {"ours"})
    plain = run_once(bed, "moosefs", prepared, "default", 1)
    hinted = run_once(bed, "moosefs", prepared, "ours", 1, keep=True)
    report = {
        f"{name}, {setting}": {"MB": round(run.bytes / 1e6, 1), "s": round(run.seconds, 2)}
        for setting, run in (("default", plain), ("hinted", hinted))
    }
    print(json.dumps(report))
    if os.environ.get("TRACEHINT_BENCH_OUT"):
        with Path(os.environ["TRACEHINT_BENCH_OUT"]).open("a") as out:
            out.write(json.dumps(report) + "\n")
    assert plain.sums, "the workflow has outputs"
    assert hinted.sums == plain.sums, "outputs are identical"
    return Both(prepared, plain, hinted)


@pytest.mark.full  # test_run_moosefs.py: two runs of pipelines, nothing remote in the second
def test_a_hinted_pipeline_stays_on_its_nodes(bed: MooseBed, tmp_path: Path) -> None:
    run = both(bed, "pipeline", tmp_path)
    names = [name for name in run.hinted.writer if name.endswith(".dat")]
    assert len(names) == 3 * NODES
    folder = bed.mount / "pipeline-ours-1"
    for path, found in bed.where([folder / name for name in names]).items():
        assert set(found) == {run.hinted.writer[path.name]}, path.name
    assert run.hinted.bytes <= run.plain.bytes / 5


def test_a_broadcast_file_has_copies(bed: MooseBed, tmp_path: Path) -> None:
    run = both(bed, "broadcast", tmp_path)
    folder = bed.mount / "broadcast-ours-1"
    (found,) = bed.where([folder / "table.dat"]).values()
    assert len(found) >= 2
    goal = subprocess.run(
        bed.command("mfsgetsclass", folder / "table.dat"), text=True, capture_output=True
    )
    assert goal.stdout.strip().endswith(f": {len(found)}")
    # At most what each of the four other nodes needs once, and a little for the protocol.
    assert run.hinted.bytes <= 1.1 * NODES * run.row.row.size


@pytest.mark.full  # test_moosefs.py: a group lies in one place; above: what is hinted moves less
def test_a_reduce_group_lies_where_it_is_read(bed: MooseBed, tmp_path: Path) -> None:
    run = both(bed, "reduce", tmp_path)
    folder = bed.mount / "reduce-ours-1"
    parts = bed.where([folder / f"part_{i}.dat" for i in range(NODES)])
    places = {label for found in parts.values() for label in found}
    assert len(places) == 1
    assert places == {run.hinted.writer["total.txt"]}
    # Each part once, but for that of the reader's node, and a little for the protocol. The plain
    # run is no measure: one time in five the store's rotation puts each part on its writer's node.
    assert run.hinted.bytes <= 1.1 * (NODES - 1) * run.row.row.size
