"""A decision is kept for the next run of the same, and made again where anything changed."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.cli import tracehint
from tests.support.patience import until
from tests.support.predicting import need_engine
from tracehint.adapters.paths import Paths
from tracehint.adapters.place.allocation import Allocation
from tracehint.adapters.place.hosts import Host
from tracehint.adapters.project.state import DECISION, KnownRun, forget, read_state
from tracehint.app import run_loop
from tracehint.app.run_loop import Learned, learn_hints, prepare_next
from tracehint.beside import run_in_background
from tracehint.hintgen.hints.model import HintFile

pytestmark = pytest.mark.slow

COMMAND = ("sh", "run.sh")
FLOW = "for i in 1 2 3; do head -c 300000 /dev/zero >a$i; done\ncat a1 a2 a3 >all\n"
HOSTS = tuple(Host(name=name, slots=2) for name in "ab")
NODES = Allocation(HOSTS, 0, 100.0, 0.3)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory with one recorded run."""
    need_engine()
    (tmp_path / "run.sh").write_text(FLOW)
    monkeypatch.chdir(tmp_path)
    assert tracehint("run", "--cluster", "moosefs", "--", *COMMAND, cwd=tmp_path).returncode == 0
    return tmp_path


def test_it_is_kept_for_the_same_and_made_again_for_others(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = []
    monkeypatch.setattr("tracehint.app.planning.placing_pays", lambda _: True)
    monkeypatch.setattr(run_loop, "TRIAL_RUN_S", 3600.0)  # a trial, however slow this machine is
    decide, nodes = run_loop._decide, [NODES]
    monkeypatch.setattr(run_loop, "_decide", lambda *args: (made.append(1), decide(*args))[1])
    monkeypatch.setattr("tracehint.adapters.place.allocation.usable", lambda *_: nodes[0])

    def again(hosts: tuple[Host, ...] = HOSTS, cluster: str = "moosefs") -> bool:
        """Whether it is decided again."""
        before = len(made)
        found = learn_hints(read_state(Path()), COMMAND, cluster, hosts)
        assert found is not None
        return len(made) > before

    first = learn_hints(read_state(Path()), COMMAND, "moosefs", HOSTS)
    assert first is not None and first.hints is not None and first.hints.plan is not None
    assert not again()
    second = learn_hints(read_state(Path()), COMMAND, "moosefs", HOSTS)
    assert second is not None
    assert (second.hints, second.notes, second.placing) == (first.hints, first.notes, first.placing)
    nodes[0] = replace(NODES, link_mbit=120.0, start_s=0.45)
    assert not again()
    nodes[0] = replace(NODES, link_mbit=200.0)
    assert again() and not again()
    assert again(cluster="nfs") and again()
    assert again(hosts=HOSTS[:1]) and again()
    kept = folder / ".tracehint" / DECISION
    for text in ("", "[]", "{}", kept.read_text().replace('"rules": [', '"rules": [{}, ')):
        kept.write_text(text)
        assert again() and json.loads(kept.read_text())
    assert forget(folder) and not kept.exists()


def test_a_long_run_decides_at_its_end(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tracehint.adapters.place.allocation.usable", lambda *_: NODES)
    kept = folder / ".tracehint" / DECISION
    prepare_next(Path(), COMMAND, "moosefs", HOSTS, ())
    assert not kept.exists(), "the run was short"
    monkeypatch.setattr(run_loop, "DECIDE_SHARE", 1e6)
    prepare_next(Path(), COMMAND, "moosefs", (), ())
    assert not kept.exists(), "there are no nodes"
    prepare_next(Path(), COMMAND, "moosefs", HOSTS, ())
    assert kept.exists()


@pytest.mark.parametrize(("hosts", "batch"), [(HOSTS, ()), ((), HOSTS)], ids=["nodes", "batch"])
def test_hints_that_save_nothing_are_not_worth_a_recording(
    folder: Path, monkeypatch: pytest.MonkeyPatch, hosts: tuple[Host, ...], batch: tuple[Host, ...]
) -> None:
    """Until the command takes another time."""
    monkeypatch.setattr(run_loop, "_has_jobs", lambda _: True)
    monkeypatch.setattr("tracehint.adapters.place.allocation.usable", lambda *_: NODES)
    monkeypatch.setattr(run_loop, "TRIAL_RUN_S", 0.0)
    monkeypatch.setattr(run_loop, "_estimate_decision_s", lambda _: 1000.0)
    (run,) = read_state(folder).runs
    slow = replace(run, around=1000.0)

    def found(*after: KnownRun) -> tuple[bool, bool]:
        state = replace(read_state(Path()), runs=(slow, *after))
        made = learn_hints(state, COMMAND, "moosefs", hosts, batch)
        assert made is not None
        return made.hints is None, made.recorded

    alone = replace(run, number=2, recorded=False)
    assert found() == found(alone) == (True, False)
    assert found(replace(alone, seconds=run.seconds + 60)) == (True, True)
    slow = replace(slow, around=0.0)  # nothing has to be saved
    assert found() == (False, True)


def test_the_next_run_is_decided_on_beside_one_by_the_graph(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tracehint.adapters.place.allocation.usable", lambda *_: NODES)
    monkeypatch.setattr(run_loop, "TRIAL_RUN_S", 0.0)
    graph = Learned(HintFile((), {}, ()), Paths(files=()), (), first=True)
    monkeypatch.setattr(run_loop, "_learn_from_graph", lambda *_: graph)
    (run,) = read_state(folder).runs
    known, decision = replace(run, store="moosefs"), folder / ".tracehint" / DECISION

    def beside(*after: KnownRun, at_once: bool = False) -> bool:
        state = replace(read_state(Path()), runs=(known, *after))
        made = learn_hints(state, COMMAND, "moosefs", HOSTS, at_once=at_once)
        assert made is not None
        return made.beside

    again = [replace(known, number=number, recorded=False) for number in (2, 3)]
    assert beside() and beside(again[0])
    with run_in_background(lambda: beside(at_once=True)):
        until(decision.exists, "it is decided")
    assert not beside()
    decision.unlink()
    assert not beside(*again), "two runs were too short for it"


def test_nodes_are_measured_before_the_first_run_and_not_beside_the_next(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the run itself uses the link that would be measured."""
    asked = []
    monkeypatch.setattr(
        "tracehint.adapters.place.allocation.usable", lambda *given: (asked.append(given), NODES)[1]
    )
    monkeypatch.setattr("tracehint.app.first_run.graph_key", lambda *_: "key")
    found = (HintFile((), {}, ()), ("/data",))
    monkeypatch.setattr("tracehint.app.first_run.graph_hints", lambda *_: found)
    state = replace(read_state(Path()), runs=())
    for _ in range(2):  # made, then kept
        first = learn_hints(state, COMMAND, "moosefs", HOSTS)
        assert first is not None and first.measured == (NODES.link_mbit, NODES.start_s)
    assert asked == [(HOSTS, run_loop.FIRST_TRIAL_S)]
    learn_hints(read_state(Path()), COMMAND, "moosefs", HOSTS, measured=(90.0, 0.25))
    assert len(asked) == 1
    kept = json.loads((folder / ".tracehint" / DECISION).read_text())
    assert kept["measured"] == [90.0, 0.25]


def test_what_is_done_beside_ends_with_the_command(tmp_path: Path) -> None:
    def work() -> None:
        (tmp_path / "pid").write_text(f"{os.getpid()}\n")
        os.execvp("sleep", ["sleep", "1000"])

    with run_in_background(work):
        until(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text(), "it began")
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)
