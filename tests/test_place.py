"""`tracehint place`: a task starts on a node that holds its inputs, and is never delayed.

The store is a table whose location attribute the tests set; nodes are started by `env NODE=name`,
so the command can print where it ran.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tests.support.cli import TRACEHINT, tracehint
from tests.support.hostile import HOSTILE_NAMES
from tracehint.adapters.place.choose import InputPlaces, choose, look, open_slots, share
from tracehint.adapters.place.hosts import Host, by_name, find, read_hosts, start_words
from tracehint.adapters.stores import moosefs
from tracehint.adapters.stores.base import Location
from tracehint.adapters.stores.places import Places
from tracehint.errors import InputError

pytestmark = pytest.mark.slow

TOOL = TRACEHINT
STORE = 'name = "fake"\nlocation = "user.where"\n[hints."DP=local"]\nattribute = "user.dp"\n'
HOSTS = """\
start = ["env", "NODE={host}", "{argv}"]
[[host]]
name = "n1"
also = ["10.0.0.1"]
slots = 1
[[host]]
name = "n2.cluster"
slots = 2
[[host]]
name = "n3"
"""
WHERE = ("sh", "-c", 'echo "${NODE-here}" "$@"', "x")

Place = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def place(tmp_path: Path) -> Place:
    """Run `tracehint place` in a directory with a host file, a store table and three inputs."""
    (tmp_path / "hosts.toml").write_text(HOSTS)
    (tmp_path / "store.toml").write_text(STORE)
    for name, kilobytes, where in (("a", 300, "10.0.0.1"), ("b", 200, "n2"), ("c", 150, "n2, n9")):
        path = tmp_path / name
        path.write_bytes(bytes(kilobytes * 1000))
        try:
            os.setxattr(path, "user.where", where.encode())
        except OSError:
            pytest.skip("no user attributes on the disk of the tests")

    def run(*words: str, hosts: str = "hosts.toml") -> subprocess.CompletedProcess[str]:
        options = ("--hosts", hosts, "--store", "./store.toml")
        return tracehint("place", *options, *words, cwd=tmp_path)

    return run


@pytest.mark.parametrize(
    ("inputs", "node", "said"),
    [
        (["a"], "n1", "293 KiB of 293 KiB"),
        (["a", "b"], "n1", "293 KiB of 488 KiB"),
        (["a", "b", "c"], "n2.cluster", "342 KiB of 635 KiB"),
        (["b", "b"], "n2.cluster", "195 KiB of 195 KiB"),
    ],
)
def test_a_task_runs_where_most_bytes_of_its_inputs_lie(
    place: Place, inputs: list[str], node: str, said: str
) -> None:
    done = place(*inputs, "--", *WHERE, "--", "one two")
    assert (done.returncode, done.stdout) == (0, f"{node} -- one two\n"), done.stderr
    assert said in done.stderr
    assert place(*inputs).stdout == f"{node}\n"


def test_the_answer_as_json(place: Place) -> None:
    data = json.loads(place("a", "b", "missing", ".", "--format", "json").stdout)
    assert (data["host"], data["policy"], data["fallback"]) == ("n1", "soft", False)
    assert (data["total_bytes"], data["bytes"]) == (500_000, {"n1": 300_000})
    problems = {row["path"]: row["problem"] for row in data["inputs"]}
    assert problems == {"a": "", "missing": "No such file or directory", ".": "not a regular file"}
    assert data["not_asked"] == 1, "b cannot change the choice"
    assert data["start"] == ["env", "NODE=n1", "COMMAND"]


def test_exit_code_and_output_are_those_of_the_command(place: Place) -> None:
    done = place("a", "--quiet", "--", "sh", "-c", "echo out; exit 7")
    assert (done.returncode, done.stdout, done.stderr) == (7, "out\n", "")
    assert place("a", "--", "sh", "-c", "kill -TERM $$").returncode == -15
    done = place("a", "--", "./no-such-program")
    assert done.returncode == 127


def test_soft_goes_on_to_the_next_node_and_hard_stays(place: Place, tmp_path: Path) -> None:
    folder = tmp_path / "hosts.toml.slots"
    folder.mkdir()
    with (folder / "n1.0").open("w") as busy:
        fcntl.flock(busy, fcntl.LOCK_EX)
        soft = place("a", "b", "--", *WHERE)
        hard = place("a", "b", "--policy", "hard", "--", *WHERE)
    assert soft.stdout == "n2.cluster\n"
    assert "all 1 slots of n1 are taken" in soft.stderr
    assert hard.stdout == "n1\n"
    assert place("a", "--", *WHERE).stdout == "n1\n", "the slot is free again"


def test_a_slot_is_held_as_long_as_the_command_runs(place: Place, tmp_path: Path) -> None:
    files = ("--hosts", "hosts.toml", "--store", "./store.toml", "a")
    command = [*TOOL, "place", *files, "--", "sh", "-c", "echo on; read x; echo off"]
    with subprocess.Popen(
        command, cwd=tmp_path, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as first:  # fmt: skip  # a table
        assert first.stdout is not None
        assert first.stdout.readline() == "on\n"
        assert place("a").stdout != "n1\n"
        first.communicate("\n")
    assert place("a").stdout == "n1\n"


def test_no_free_slot_anywhere_holds_nobody_up(place: Place, tmp_path: Path) -> None:
    (tmp_path / "one.toml").write_text(
        'start = ["env", "NODE={host}", "{argv}"]\n[[host]]\nname = "n1"\nslots = 1\n'
    )
    folder = tmp_path / "one.toml.slots"
    folder.mkdir()
    with (folder / "n1.0").open("w") as busy:
        fcntl.flock(busy, fcntl.LOCK_EX)
        done = place("a", "--", *WHERE, hosts="one.toml")
    assert done.stdout == "n1\n"
    assert "no free slot" in done.stderr


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "no [[host]]"),
        ("[[host]]\nname = '-oProxyCommand=x'\n", "not a node name"),
        ("[[host]]\nname = 'a b'\n", "not a node name"),
        ("[[host]]\nname = 'a'\n[[host]]\nname = 'b'\nalso = ['a']\n", "given twice"),
        ("[[host]]\nname = 'a'\nslots = -1\n", "slots"),
        ("[[host]]\nname = 'a'\nslots = true\n", "slots"),
        ("start = 'rsh'\n[[host]]\nname = 'a'\n", "start"),
        ("start = ['ssh', '{host}']\n[[host]]\nname = 'a'\n", "neither"),
        ("start = ['sh', '-c', '{argv} x']\n[[host]]\nname = 'a'\n", "start cannot contain"),
        ("start = ['{user}', '{argv}']\n[[host]]\nname = 'a'\n", "start cannot contain"),
        ("check = ['{argv}']\n[[host]]\nname = 'a'\n", "check cannot contain"),
        ("more = 1\n[[host]]\nname = 'a'\n", "unknown key"),
        ("not toml", "not TOML"),
    ],
)
def test_a_bad_host_file_is_said_and_the_task_runs_here(
    place: Place, tmp_path: Path, text: str, said: str
) -> None:
    (tmp_path / "bad.toml").write_text(text)
    done = place("a", "--", *WHERE, hosts="bad.toml")
    assert (done.returncode, done.stdout) == (0, "here\n")
    assert said in done.stderr
    done = place("a", hosts="bad.toml")
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr
    with pytest.raises(InputError):
        read_hosts(tmp_path / "bad.toml")


def test_a_program_that_is_not_there_and_nodes_that_do_not_answer(
    place: Place, tmp_path: Path
) -> None:
    (tmp_path / "far.toml").write_text('start = ["/no/ssh", "{argv}"]\n[[host]]\nname = "n1"\n')
    done = place("a", "--", *WHERE, hosts="far.toml")
    assert done.stdout == "here\n"
    assert "runs here: /no/ssh" in done.stderr
    (tmp_path / "dead.toml").write_text(
        'start = ["env", "NODE={host}", "{argv}"]\n'
        'check = ["test", "{host}", "!=", "10.0.0.1"]\n'
        '[[host]]\nname = "10.0.0.1"\n[[host]]\nname = "n3"\n'
    )
    done = place("a", "--", *WHERE, hosts="dead.toml")
    assert done.stdout == "n3\n"
    assert "10.0.0.1 does not answer" in done.stderr


def test_what_the_store_says_never_names_a_node_that_is_not_in_the_file(
    place: Place, tmp_path: Path
) -> None:
    os.setxattr(tmp_path / "a", "user.where", b"evil,-oProxyCommand=id,\x1b[31m")
    done = place("a", "--", *WHERE)
    assert done.stdout.strip() in ("n1", "n2.cluster", "n3")
    assert "no node is known for any input" in done.stderr
    assert "\x1b" not in done.stderr


def test_wrong_use_is_said(place: Place) -> None:
    assert place("a", "--").returncode == 2
    assert place("a", "--task", "3").returncode == 2


@pytest.mark.usefixtures("place")
def test_a_file_of_another_store_is_no_reason_to_stop(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("x")
    done = tracehint("place", "--hosts", "hosts.toml", "--store", "cephfs", "a", cwd=tmp_path)
    assert done.returncode == 0
    assert "no node is known for any input" in done.stderr


@pytest.mark.parametrize("name", [n for n in HOSTILE_NAMES if b"\0" not in n], ids=repr)
def test_a_remote_shell_gets_the_words_as_they_are(tmp_path: Path, name: bytes) -> None:
    folder = tmp_path / os.fsdecode(name.replace(b"/", b"_"))
    folder = folder if name not in (b".", b"..") else tmp_path / "plain"
    folder.mkdir(exist_ok=True)
    host = Host(name="n1", start=("sh", "-c", "{command}"))
    argv = ["sh", "-c", 'pwd; printf %s "$1"', "x", os.fsdecode(name)]
    done = subprocess.run(start_words(host, argv, str(folder)), capture_output=True, cwd="/")
    assert done.stdout == os.fsencode(folder) + b"\n" + name


def test_starters(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "h.toml").write_text(
        '[[host]]\nname = "n1"\n[[host]]\nname = "n2"\nstart = "srun"\n[[host]]\nname = "me"\n'
    )
    monkeypatch.setattr("socket.gethostname", lambda: "me.site")
    one, two, here = read_hosts(tmp_path / "h.toml")
    assert start_words(one, ["ls", "a b"], "/d") == [
        "ssh",
        "-o",
        "BatchMode=yes",
        "--",
        "n1",
        "cd -- /d && exec ls 'a b'",
    ]
    assert start_words(two, ["ls", "a b"], "/d") == [
        "srun",
        "--nodelist=n2",
        "--nodes=1",
        "--ntasks=1",
        "--chdir=/d",
        "--",
        "ls",
        "a b",
    ]
    assert start_words(here, ["ls"], "/d") == ["ls"], "no way to go"


def test_names_of_a_node() -> None:
    host = Host(name="n1.site", also=("10.0.0.1",))
    table = by_name([host])
    for said in ("n1", "n1.site", "n1.site:9422", "10.0.0.1", "10.0.0.1:9422", "n1:1"):
        assert find(table, said) is host, said
    for said in ("n2", "10.0.0.2", "10", ""):
        assert find(table, said) is None, said


def test_copies_count_by_chunk() -> None:
    def at(nodes: Sequence[str], **detail: object) -> Location:
        return Location(nodes=tuple(nodes), detail=detail)

    assert share(at("ab"), "a") == 1.0
    assert share(at("ab", copies={"a": 3, "b": 1}), "a") == 0.75
    assert share(at("ab", copies={"a": 2, "b": 2}, chunks=2), "a") == 1.0
    assert share(at("ab", copies={"a": 1, "b": 0}, chunks=4), "b") == 0.0


def test_tasks_without_a_known_place_spread_over_the_nodes() -> None:
    hosts = [Host(name=f"n{k}") for k in range(4)]
    took = set()
    for k in range(60):
        known = InputPlaces(total_bytes=1, unknown={f"in_{k}": "the store does not report it"})
        choice = choose(hosts, known, "soft", lambda _: True, lambda _: True)
        assert choice.host is not None
        took.add(choice.host.name)
    assert len(took) == 4


def test_nodes_that_do_not_answer_hold_a_task_up_three_times_at_most() -> None:
    asked: list[str] = []

    def answers(host: Host) -> bool:
        asked.append(host.name)
        return False

    hosts = [Host(name=f"n{k}") for k in range(50)]
    choice = choose(hosts, InputPlaces(), "soft", lambda _: True, answers)
    assert (choice.host, len(asked)) == (None, 3)


def test_the_store_is_asked_no_more_than_needed(tmp_path: Path) -> None:
    asked = []

    class Store:
        def locate(self, fd: int) -> Location:
            asked.append(os.fstat(fd).st_size)
            return Location(nodes=("n1",), detail={})

    for k in range(100):
        (tmp_path / f"f{k}").write_bytes(bytes(1000 + k))
    names = [str(tmp_path / f"f{k}") for k in range(100)]
    known = look(Store(), [Host(name="n1"), Host(name="n2")], names)
    assert len(asked) + known.unasked == 100
    assert len(asked) == 49, "then the others are less than n1 has already"
    assert asked == sorted(asked, reverse=True)


def test_slots_of_another_user_or_without_a_place_are_not_counted(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    slots = open_slots(tmp_path / "file" / "x")
    assert slots.take(Host(name="n1", slots=1))
    assert "not counted" in slots.problem
    (tmp_path / "s").mkdir()
    (tmp_path / "s" / "n1.0").symlink_to(tmp_path / "file")
    slots = open_slots(tmp_path / "s")
    assert slots.take(Host(name="n1", slots=1)), "a link is not followed, and holds nobody up"
    assert slots.problem


@pytest.mark.engine
@pytest.mark.usefixtures("place")
def test_makeflow_starts_each_rule_where_its_inputs_lie(tmp_path: Path) -> None:
    if shutil.which("makeflow") is None:
        pytest.skip("makeflow is not installed")
    rules = [f"{n}.out: {n}\n\techo \"$NODE\" '{n}' > {n}.out\n" for n in "abc"]
    (tmp_path / "w.mf").write_text("\n".join(rules).replace("$NODE", "\\$NODE"))
    wrapper = (
        f"{sys.executable} -m tracehint place --hosts hosts.toml --store ./store.toml "
        "--workflow w.mf --task %%" + " --"
    )
    done = subprocess.run(
        ["makeflow", "-T", "local", "--wrapper", wrapper, "w.mf"], cwd=tmp_path,
        capture_output=True, text=True,
    )  # fmt: skip  # a table
    assert done.returncode == 0, done.stdout + done.stderr
    where = {n: (tmp_path / f"{n}.out").read_text().split()[0] for n in "abc"}
    assert where["a"] == "n1"
    assert where["b"] == where["c"] == "n2.cluster"


def test_moosefs_tells_the_part_of_a_file_on_each_server(monkeypatch: pytest.MonkeyPatch) -> None:
    chunk = "\tchunk {}: 000000000000000{}_00000001 / (id:1 ver:1)\n"
    copy = "\t\tcopy {}: 10.0.0.{}:9422 (status:VALID)\n"
    text = ":\n" + chunk.format(0, 1) + copy.format(1, 1) + copy.format(2, 2)
    text += chunk.format(1, 2) + copy.format(1, 2)
    monkeypatch.setattr(moosefs, "_run_on_descriptor", lambda command, fd: text)
    found = moosefs.MooseFs(Places()).locate(0)
    assert found is not None
    assert {node: share(found, node) for node in found.nodes} == {"10.0.0.1": 0.5, "10.0.0.2": 1.0}
