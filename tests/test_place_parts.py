"""A task of a plan: its part's node, how long it waits there, where it goes, who is notified."""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.cli import tracehint
from tests.support.hostile import HOSTILE_NAMES
from tracehint.adapters.place.choose import Roll, open_slots
from tracehint.adapters.place.hosts import Host
from tracehint.adapters.place.parts import (
    POLL_S,
    Placed,
    Queue,
    choose_part,
    encode,
    order_of,
    patience,
    read_task,
)
from tracehint.errors import InputError, UsageError

HOSTS = tuple(Host(name=f"n{k}", slots=1) for k in range(4))


class Cluster:
    """Nodes with one slot each, and a clock that advances only in sleeps.

    `ends`: node -> time when its slot is free again. `wanted`: nodes that others wait for.
    """

    def __init__(self, ends: dict[str, float], away: set[str] = frozenset()) -> None:  # type: ignore[assignment]
        self.time, self.ends, self.away = 0.0, ends, away
        self.looked: list[str] = []

    def free(self, host: Host) -> bool:
        self.looked.append(host.name)
        return self.time >= self.ends.get(host.name, 0.0)

    def sleep(self, seconds: float) -> None:
        self.time += seconds

    def queue(self) -> Queue:
        return Queue(
            take=self.free,
            free=self.free,
            answers=lambda host: host.name not in self.away,
            clock=lambda: self.time,
            sleep=self.sleep,
        )


def test_a_part_has_one_node_and_all_nodes_have_parts() -> None:
    cluster = Cluster({})
    for part in range(8):
        choice = choose_part(HOSTS, part, cluster.queue())
        assert choice.host is HOSTS[part % 4]
        assert not choice.fallback
    assert cluster.time == 0.0


def test_a_full_node_is_waited_for_as_long_as_the_inputs_are_worth() -> None:
    size = 250_000_000  # 2 s over 1,000 Mbit/s
    assert patience(size, HOSTS[0]) == 2.0
    soon = Cluster({"n0": 1.5})
    choice = choose_part(HOSTS, 0, soon.queue(), input_bytes=size)
    assert (choice.host, choice.fallback) == (HOSTS[0], False)
    late = Cluster({"n0": 50.0})
    choice = choose_part(HOSTS, 0, late.queue(), input_bytes=size)
    assert choice.host is not None
    assert choice.host.name != "n0"
    assert "n0 is busy" in choice.reason
    assert 2.0 <= late.time <= 2.0 + 3 * POLL_S, "at most twice what either choice costs"


def test_a_node_that_others_wait_for_is_not_stolen() -> None:
    cluster = Cluster({})
    turns = iter(range(10_000))

    def free(host: Host) -> bool:  # another task takes the slot before each second check
        return host.name == "n1" and next(turns) % 2 == 0

    queue = Queue(
        take=lambda host: host.name == "n0" and cluster.time > 5,
        free=free,
        answers=lambda _: True,
        clock=lambda: cluster.time,
        sleep=cluster.sleep,
    )
    choice = choose_part((HOSTS[0], HOSTS[1]), 0, queue)
    assert choice.host is HOSTS[0]


def test_hard_never_leaves_and_nobody_waits_for_ever() -> None:
    cluster = Cluster({"n0": 1e9})
    choice = choose_part(HOSTS, 0, cluster.queue(), steal=False, longest_s=30.0)
    assert (choice.host, choice.fallback) == (HOSTS[0], True)
    assert 30.0 <= cluster.time < 31.0
    assert "no free slot" in choice.reason


def test_a_part_whose_node_is_away_stays_together_and_the_rest_stays_put() -> None:
    for part in range(4):
        cluster = Cluster({}, away={"n1"})
        choice = choose_part(HOSTS, part, cluster.queue())
        again = choose_part(HOSTS, part, cluster.queue())
        assert choice.host is again.host
        assert (choice.host is HOSTS[part]) == (part != 1)
        assert ("n1 is away" in choice.reason) == (part == 1)
    moved = {
        order_of(part, [Host(name=f"h{k}") for k in range(8)])[1].name for part in range(0, 160, 8)
    }
    assert len(moved) > 3, "parts of a node that is gone go to several others"
    nobody = Cluster({}, away={host.name for host in HOSTS})
    assert choose_part(HOSTS, 1, nobody.queue()).host is None


def test_who_does_not_answer_is_asked_and_said_once(tmp_path: Path) -> None:
    asked: list[str] = []
    now = [tmp_path.stat().st_mtime]
    there = [False]

    def ask(host: Host) -> bool:
        asked.append(host.name)
        return there[0]

    def roll() -> Roll:
        return Roll(tmp_path, ask, now=lambda: now[0])

    host = Host(name="n1", check=("x",))
    said = []
    for _ in range(5):
        each = roll()
        assert not each.answers(host)
        said += each.messages
    assert (len(asked), said) == (1, ["n1 does not answer: its tasks run on other nodes"])
    now[0] += 61
    each = roll()
    assert not each.answers(host)
    assert (len(asked), each.messages) == (2, [])
    there[0] = True
    now[0] += 200
    each = roll()
    assert each.answers(host)
    assert each.messages == ["n1 answers again"]
    assert roll().answers(host)
    assert len(asked) == 3
    assert Roll(None, ask).answers(host), "without a folder each task asks"
    assert len(asked) == 4
    assert roll().answers(Host(name="n9")), "a node without a check is there"


def test_a_marker_that_is_a_link_is_no_way_out(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("keep")
    os.utime(victim, (1, 1))
    folder = tmp_path / "slots"
    folder.mkdir()
    (folder / "n1.away").symlink_to(victim)
    Roll(folder, lambda _: False, now=lambda: 1e12).answers(Host(name="n1", check=("x",)))
    assert (victim.read_text(), victim.stat().st_mtime) == ("keep", 1)


def test_looking_keeps_no_slot(tmp_path: Path) -> None:
    slots, others = open_slots(tmp_path / "s"), open_slots(tmp_path / "s")
    assert slots.free(HOSTS[0])
    assert others.take(HOSTS[0])
    assert not slots.free(HOSTS[0])
    assert others.free(HOSTS[0]), "its own"
    assert not slots.take(HOSTS[0])


# The table ------------------------------------------------------------------------------------


def test_the_table_gives_back_what_went_in(tmp_path: Path) -> None:
    tasks = [Placed(k if k % 3 else None, (name,)) for k, name in enumerate(HOSTILE_NAMES)]
    tasks = [t for t in tasks if t.inputs[0]]
    path = tmp_path / "parts"
    path.write_bytes(encode(tasks))
    assert [read_task(path, k) for k in range(len(tasks))] == tasks
    with pytest.raises(UsageError, match="no task"):
        read_task(path, len(tasks))


DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda _: b"",
    "no table": lambda _: b"{}" * 40,
    "cut": lambda raw: raw[:40],
    "index": lambda raw: raw.replace(b"0000", b"abcd"),
    "beyond": lambda raw: raw.replace(b"00000000053", b"99999999999"),
    "record": lambda raw: raw.replace(b'{"part"', b'["part"'),
    "negative": lambda raw: raw.replace(b": 1,", b": -1,"),
    "float": lambda raw: raw.replace(b": 1,", b": 1.5,"),
    "inputs": lambda raw: raw.replace(b'["a"]', b'"a"'),
    "words": lambda raw: raw.replace(b'["a"]', b"[7]"),
    "deep": lambda raw: raw.replace(b'["a"]', b"[" * 5),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_table_is_said(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "parts"
    path.write_bytes(DAMAGE[damage](encode([Placed(1, (b"a",))])))
    with pytest.raises(InputError, match="table of parts"):
        read_task(path, 0)
    with pytest.raises(InputError):
        read_task(tmp_path / "none", 0)


# The command ----------------------------------------------------------------------------------

NODES = 'start = ["env", "NODE={host}", "{argv}"]\n'
WHERE = ("sh", "-c", "echo $NODE")
Place = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def place(tmp_path: Path) -> Place:
    """Run `tracehint place` with three nodes of one slot and a table of two tasks."""
    rows = "".join(f'[[host]]\nname = "n{k}"\nslots = 1\n' for k in range(3))
    (tmp_path / "hosts.toml").write_text(NODES + rows)
    (tmp_path / "parts").write_bytes(encode([Placed(1, (b"a",)), Placed(None, ())]))
    (tmp_path / "a").write_bytes(bytes(1000))

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        return tracehint("place", "--hosts", "hosts.toml", *words, cwd=tmp_path)

    return run


@pytest.fixture
def busy(tmp_path: Path) -> Iterator[None]:
    """All nodes except n2 are full."""
    folder = tmp_path / "hosts.toml.slots"
    folder.mkdir()
    with (folder / "n0.0").open("w") as zero, (folder / "n1.0").open("w") as one:
        fcntl.flock(zero, fcntl.LOCK_EX)
        fcntl.flock(one, fcntl.LOCK_EX)
        yield


@pytest.mark.slow
def test_tasks_of_a_table_run_on_their_nodes(place: Place) -> None:
    done = place("--parts", "parts", "--task", "0", "--", *WHERE)
    assert (done.returncode, done.stdout) == (0, "n1\n"), done.stderr
    assert "part 1 is stored there" in done.stderr
    assert place("--parts", "parts", "--task", "1", "--", *WHERE).stdout[:1] == "n", "anywhere"
    assert place("--part", "5").stdout == "n2\n"
    data = json.loads(place("--part", "5", "--format", "json").stdout)
    assert (data["host"], data["fallback"]) == ("n2", False)


@pytest.mark.slow
def test_a_task_without_a_part_goes_where_its_inputs_lie(place: Place, tmp_path: Path) -> None:
    table = 'name = "fake"\nlocation = "user.where"\n[hints."DP=local"]\nattribute = "user.dp"\n'
    (tmp_path / "store.toml").write_text(table)
    (tmp_path / "parts").write_bytes(encode([Placed(None, (b"a",))]))
    try:
        os.setxattr(tmp_path / "a", "user.where", b"n2")
    except OSError:
        pytest.skip("no user attributes on the disk of the tests")
    done = place("--store", "./store.toml", "--parts", "parts", "--task", "0", "--", *WHERE)
    assert done.stdout == "n2\n", done.stderr


@pytest.mark.slow
@pytest.mark.usefixtures("busy")
def test_a_task_of_a_full_node_runs_where_it_is_idle(place: Place) -> None:
    done = place("--parts", "parts", "--task", "0", "--", *WHERE)
    assert done.stdout == "n2\n", done.stderr
    assert "n1 is busy, n2 idles" in done.stderr
    done = place(
        "--parts", "parts", "--task", "0", "--policy", "hard", "--wait", "0.5", "--", *WHERE
    )
    assert done.stdout == "n1\n"
    assert place("--part", "1").stdout == "n1\n", "only asked, nothing waits"


@pytest.mark.slow
def test_a_waiting_task_starts_when_the_slot_is_free(place: Place, tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"")
    os.truncate(tmp_path / "a", 10_000_000_000)  # 80 s over the network: longer than the wait
    folder = tmp_path / "hosts.toml.slots"
    folder.mkdir()
    with (folder / "n1.0").open("w") as one:
        fcntl.flock(one, fcntl.LOCK_EX)
        timer = threading.Timer(1.5, fcntl.flock, (one, fcntl.LOCK_UN))
        timer.start()
        done = place("--parts", "parts", "--task", "0", "--", *WHERE)
        timer.join()
    assert done.stdout == "n1\n", done.stderr


@pytest.mark.slow
def test_wrong_use_and_broken_tables_never_stop_a_task(place: Place, tmp_path: Path) -> None:
    assert place("--task", "0").returncode == 2, "neither store nor part"
    assert place("--parts", "parts").returncode == 2
    (tmp_path / "parts").write_bytes(b"nonsense")
    done = place("--parts", "parts", "--task", "0", "--", "sh", "-c", "echo ${NODE-here}; exit 3")
    assert (done.returncode, done.stdout) == (3, "here\n")
    assert "not a table of parts" in done.stderr
