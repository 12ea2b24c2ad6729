"""The benchmark of whole runs: task placement, written data, resumed results, the page."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from scripts.bench.gain.columns import COLUMNS, Case
from scripts.bench.gain.dispatch import Dispatcher
from scripts.bench.gain.effect import Effect, held
from scripts.bench.gain.errors import find_quantile, measure_coverage, of_ratios, time_errors
from scripts.bench.gain.page import summary, tables
from scripts.bench.gain.predicted import Cell
from scripts.bench.gain.replay import Replay, outputs
from scripts.bench.gain.results import Run, load
from scripts.bench.gain.rows import ROWS
from scripts.bench.gain.stores import STORES, Store

from tests.support import ceph
from tests.support.bed import Node
from tests.support.ceph import ceph_cluster
from tests.support.predicting import MB, Task, plain, workload
from tracehint.analyzer.predict.model import Placement, Workload, law

LOAD = {"own": 0.1, "others": 0.0, "steal": 0.0, "average": 0.5}


@dataclass
class Folders:
    """A test bed whose store is a directory: five nodes that share the same files."""

    folder: Path
    nodes: list[Node] = field(default_factory=list)
    chunk: ClassVar[int] = 64 << 20
    synced: ClassVar[bool] = False

    def __post_init__(self) -> None:
        self.nodes = [Node(label, "", "", self.mount) for label in "ABCDE"]

    @property
    def mount(self) -> Path:
        return self.folder

    def give(self, folder: Path, place: str) -> None:
        pass

    def where(self, paths: Sequence[Path]) -> dict[Path, Counter[str]]:
        return {path: Counter("B") for path in paths}


def chains(size: int = 300_000) -> Workload:
    """Two chains, each with its own input, and one task that reads the ends of both."""
    tasks = [
        Task(f"{step}{i}", [("read", f"{before}{i}"), ("compute", 0.01), ("write", f"{after}{i}")],
            step)
        for step, before, after in (("first", "in", "a"), ("second", "a", "b"))
        for i in range(2)
    ]  # fmt: skip  # a table
    tasks.append(Task("last", [("read", "b0"), ("read", "b1"), ("write", "out")], "last"))
    names = ["in0", "in1", "a0", "a1", "b0", "b1", "out"]
    return workload(tasks, dict.fromkeys(names, size))


def replayed(folder: Path, work: Workload, placement: Placement, seed: int = 1) -> Replay:
    bed: Any = Folders(folder)
    effect = Effect(bed, placement.name, work, placement)
    replay = Replay(effect, 2, seed)
    effect.prepare()
    replay.stage()
    return replay


def test_a_task_goes_to_the_node_that_it_prefers_then_anywhere_and_is_stolen_at_last() -> None:
    dispatch = Dispatcher([1, 1], random.Random(0))
    for task, node in ((0, 1), (1, 1), (2, None)):
        dispatch.ready(task, node)
    assert dispatch.started() == [(0, 1), (2, 0)]
    dispatch.ended(0)
    assert dispatch.started() == [(1, 0)], "an idle node takes what waits for another"
    stays = Dispatcher([1, 1], random.Random(0), steal=False)
    stays.ready(0, 1, bound=True)
    stays.ready(1, 1, bound=True)
    assert stays.started() == [(0, 1)]
    stays.ready(2, 1)
    assert stays.started() == [(2, 0)], "what is not bound is taken all the same"
    stays.ended(1)
    assert stays.started() == [(1, 1)]


def test_what_is_written_depends_on_what_was_read_and_not_on_where(tmp_path: Path) -> None:
    work = chains()
    found = []
    for name in ("default", "local"):
        kinds = np.full(work.files, law("local"), np.int32)
        placement = (
            Placement("default")
            if name == "default"
            else Placement("local", law=kinds, scheduler="most-input-bytes")
        )
        replay = replayed(tmp_path, work, placement)
        seconds, tasks = replay.run()
        assert len(tasks) == work.tasks
        assert seconds >= 0.02, "computing is slept"
        assert all(t.end >= t.start for t in tasks)
        found.append(outputs(replay))
    assert found[0] == found[1]
    nodes = {task.task: task.node for task in tasks}
    assert 0 <= replay.effect.crossing(nodes) <= 6 * 300_000, "written files are on their node"
    assert replay.effect.crossing(dict.fromkeys(nodes, 1)) >= 0
    assert set(replay.effect.places()) <= {-1, 0, 1, 2, 3, 4}
    other = chains()
    other.size[0] -= 1
    other.op_length[0] -= 1
    replay = replayed(tmp_path, other, Placement("other"))
    replay.run()
    assert outputs(replay) != found[0]


def test_a_file_that_the_store_changed_is_found(tmp_path: Path) -> None:
    replay = replayed(tmp_path, chains(), Placement("default"))
    replay.run()
    out = replay.effect.path(6, tmp_path)
    out.write_bytes(bytes(out.stat().st_size))
    with pytest.raises(ValueError, match="not what was written"):
        outputs(replay)


def test_files_lie_where_the_placement_says(tmp_path: Path) -> None:
    work = chains()
    kinds = np.array([-1, law("node"), law("local"), law("group"), law("group"), -1, -1], np.int32)
    copies = np.array([3, 0, 0, 0, 0, 0, 20], np.int32)
    target = np.array([-1, 4, -1, 7, 7, -1, -1], np.int32)
    replay = replayed(tmp_path, work, Placement("p", kinds, copies, target, groups=8))
    chosen = [replay.effect.choose(f, 2) for f in range(work.files)]
    assert chosen == ["3", "node_E", "node_C", "node_C", "node_C", "1", "9"]
    assert replay.effect.choose(2, 0) == "node_C", "the first choice stays"
    (tmp_path / "b").mkdir()
    both = Placement("b", kinds, np.full(7, 2, np.int32), target, groups=8)
    effect = replayed(tmp_path / "b", work, both).effect
    chosen = [effect.choose(f, 2) for f in (1, 2, 6)]
    assert chosen == ["node_E_2", "node_C_2", "2"]
    assert held(replay.effect, [1, 2, 5], [10, 20, 30]) == Counter({4: 10, 2: 20, 1: 30})


def run_of(column: str, number: int, seconds: float, **more: Any) -> Run:
    return Run(column, number, seconds, 10 * MB, more.pop("outputs", 5), 0, {**LOAD, **more})


def test_results_go_on_where_they_were_and_forget_other_rows(tmp_path: Path) -> None:
    results = load(tmp_path, "r", {"by": 8})
    results.add(run_of("default", 0, 1.0))
    again = load(tmp_path, "r", {"by": 8})
    assert again.missing("default", 2) == [1]
    assert again.missing("local", 2) == [0, 1]
    assert load(tmp_path, "r", {"by": 4}).runs == []
    assert load(tmp_path, "r", {"by": 8}, fresh=True).runs == []


def test_the_page_tells_load_differing_outputs_and_wrong_predictions() -> None:
    cells = [
        Cell("default", [run_of("default", 0, 10.0, others=0.9)], 11.0, 9.5, 12.0, 10.2 * MB),
        Cell("local", [run_of("local", 0, 5.0, outputs=6)], 12.0, 10.0, 14.0, 5 * MB, "third"),
    ]
    text = tables({"row": cells})
    assert "| row | 10.0 \\* | 5.0 |" in text
    assert "DIFFER: 2" in text
    assert "| 0.50 (local) | third |" in text, "which search made its plan"
    told = summary([cells])
    assert "| error of the time: median, worst | 75.0%, 140% |" in told
    assert "| runs inside the 90 % interval | 50% |" in told
    assert "0 of 1" in told
    assert "Nothing" in summary([])


def test_intervals_are_checked_with_the_errors_of_other_rows_alone() -> None:
    def row(*seconds: float) -> list[Cell]:
        runs = [run_of("default", i, s) for i, s in enumerate(seconds)]
        return [Cell("default", runs, 10.0, 9.0, 11.0, 10 * MB)]

    far, near = row(20.0, 20.0), row(*[10.5] * 20)
    assert measure_coverage([near, near]) == 1.0
    assert measure_coverage([far, near]) == pytest.approx(20 / 22), "who has no like is not covered"
    assert find_quantile(time_errors([near]), 0.8) == pytest.approx(0.05)
    pair = [*row(10.0), Cell("local", [run_of("local", 0, 5.0)], 4.0, 3.0, 5.0, 5 * MB)]
    times, sizes = of_ratios([pair])
    assert times == pytest.approx([0.2]) and sizes == pytest.approx([5 / 11], abs=0.001)


@pytest.mark.store
@pytest.mark.slow
@pytest.mark.parametrize(
    "store",
    [STORES["moosefs"], pytest.param(STORES["cephfs"], marks=pytest.mark.full)],
    ids=lambda store: store.name,
)
def test_on_a_real_store_local_files_save_bytes_and_outputs_are_the_same(
    store: Store, tmp_path: Path
) -> None:
    if why := store.missing():
        pytest.skip(why)
    work = chains(4 * MB)
    found = {}
    with store.start(tmp_path, link=200) as bed:
        for name in ("default", "local"):
            case = Case(ROWS["bwa"], None, work, plain(5), Path())  # type: ignore[arg-type]
            effect = Effect(bed, name, work, COLUMNS[name].place(case))
            replay = Replay(effect, 2, 1)
            effect.prepare()
            replay.stage()
            before = bed.received()
            replay.run()
            found[name] = (bed.received() - before, outputs(replay))
            assert effect.astray() == 0
            effect.remove()
    assert found["default"][1] == found["local"][1]
    assert found["local"][0] < found["default"][0]
    assert found["local"][0] < 16 * MB, "inputs and at most one end of a chain cross the links"


@pytest.mark.store
@pytest.mark.slow
@pytest.mark.full
def test_a_folder_of_a_real_cephfs_is_given_to_pools(tmp_path: Path) -> None:
    if why := ceph.missing():
        pytest.skip(why)
    with ceph_cluster(tmp_path) as bed:
        for place, copies in (("1", 1), ("2", 2), ("4", 4), ("9", 5), ("node_C", 1)):
            folder = bed.mount / place
            folder.mkdir()
            bed.give(folder, place)
            files = [folder / str(i) for i in range(8)]
            for file in files:
                file.write_bytes(b"x")
            where = bed.where(files)
            assert {len(nodes) for nodes in where.values()} == {copies}
        assert set(where[files[0]]) == {"C"}
        with pytest.raises(ValueError, match="one copy"):
            bed.give(bed.mount / "1", "node_A_2")
