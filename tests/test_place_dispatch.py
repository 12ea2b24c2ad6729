"""Tasks of a running engine start where the dispatcher decides, and otherwise run as without it.

The "nodes" are start commands of a host: the same machine, marked by an environment variable.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import get_args

import pytest

from tests.support.patience import PATIENCE_S, until
from tests.support.planning import pairs, write
from tests.support.predicting import need_engine
from tracehint.adapters.place import allocation, dispatch
from tracehint.adapters.place.allocation import Allocation
from tracehint.adapters.place.dispatch import Dispatcher, Key, PlacedTask, dispatching
from tracehint.adapters.place.hosts import Host
from tracehint.app.planning import decide, load_analysis, placing_pays
from tracehint.collectors.preload.library import LIBRARY
from tracehint.hintgen.hints.hintfile import dump, load
from tracehint.hintgen.hints.model import Steal
from tracehint.hintgen.learn.rules import learn

MARKED = ("env", "ON_NODE={host}", "{argv}")


def nodes(*names: str, start: Sequence[str] = MARKED, slots: int = 2) -> Allocation:
    """Return an allocation whose first node is this machine."""
    hosts = tuple(Host(name=name, slots=slots, start=tuple(start)) for name in names)
    return Allocation(hosts, 0, 1000.0, 0.1)


def shell(cwd: Path, text: str) -> Key:
    """Return the key of the process that make, Makeflow and others start for a command."""
    return os.fsencode(cwd), (b"/bin/sh", b"-c", text.encode())


ENGINE = "import os, signal, sys; os.execv(sys.argv[1], sys.argv[1:])"


def run(
    place: Dispatcher, key: Key, *, stdin: int, engine: str = ENGINE
) -> subprocess.CompletedProcess[str]:
    """Run the task with the library preloaded, from a process that starts it as an engine does."""
    env = {**os.environ, "LD_PRELOAD": str(LIBRARY), **place.environment}
    words = [os.fsdecode(word) for word in key[1]]
    return subprocess.run(
        [sys.executable, "-c", engine, *words], cwd=os.fsdecode(key[0]), env=env, stdin=stdin,
        capture_output=True, text=True, timeout=PATIENCE_S,
    )  # fmt: skip  # a table


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """Working directory of the tasks, visible to all nodes; marks must not remain in it."""
    yield tmp_path
    left = list(tmp_path.glob("place-*"))
    assert not left, left


def test_the_part_decides_and_the_task_is_its_own(folder: Path) -> None:
    text = "echo $ON_NODE; env | grep -v -e ^_= -e ^ON_NODE | sort >&2; pwd; ulimit -n; exit 7"
    keys = [shell(folder, f": {part}; {text}") for part in range(3)]
    tasks = {key: PlacedTask(part=part) for part, key in enumerate(keys)}
    os.environ["SLURM_STEP_ID"] = "77"  # of the surrounding step: the task inherits it
    try:
        with dispatching(nodes("a", "b"), tasks, folder, steal=True) as place:
            found = [run(place, key, stdin=subprocess.DEVNULL) for key in keys]
            plain = run(Dispatcher((), {}, folder), keys[0], stdin=subprocess.DEVNULL)
        assert [done.returncode for done in found] == [7, 7, 7]
        assert [done.stdout.splitlines()[0] for done in found] == ["", "b", ""]
        for done in found:
            assert done.stdout.splitlines()[1:] == plain.stdout.splitlines()[1:]
            assert done.stderr == plain.stderr
        assert place.started == [2, 1]
    finally:
        del os.environ["SLURM_STEP_ID"]


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["make", "makeflow", "xargs", "parallel", "sh"])
def test_engines(engine: str, folder: Path) -> None:
    """Each task runs once, on its part's node, with the environment that the engine sets."""
    if shutil.which(engine) is None:
        pytest.skip(f"not installed: {engine}")
    numbers = range(6)
    task = folder / "task.sh"
    task.write_text('#!/bin/sh\necho "$1 $ON_NODE" > out.$1\nsleep 0.2\n')
    task.chmod(0o755)
    files = {
        "make": ("Makefile", "all: " + " ".join(f"out.{n}" for n in numbers) + "\n"
                 + "".join(f"out.{n}:\n\t./task.sh {n} && :\n" for n in numbers)),
        "makeflow": ("flow.mf", "".join(f"out.{n}:\n\t./task.sh {n}\n" for n in numbers)),
        "xargs": ("list", "\n".join(map(str, numbers))),
        "parallel": ("list", "\n".join(map(str, numbers))),
        "sh": ("flow.sh", "".join(f"./task.sh {n} &\n" for n in numbers) + "wait\n"),
    }  # fmt: skip  # a table
    name, text = files[engine]
    (folder / name).write_text(text)
    command = {
        "make": "make -j6", "makeflow": "makeflow -T local -j 6 flow.mf",
        "xargs": "xargs -a list -P6 -n1 ./task.sh", "sh": "sh flow.sh",
        "parallel": "parallel --will-cite -a list -j6 ./task.sh {}",
    }[engine]  # fmt: skip  # a table
    keys: dict[Key, PlacedTask] = {}
    for n in numbers:
        own = (b"./task.sh", str(n).encode())
        program = os.environ.get("SHELL", "/bin/sh").encode()
        argvs = {
            "make": [(b"/bin/sh", b"-c", b"./task.sh %d && :" % n)],
            "makeflow": [(b"sh", b"-c", b"./task.sh %d" % n)],
            "parallel": [(p, b"-c", b"./task.sh %d" % n) for p in (program, b"/bin/bash")] + [own],
        }.get(engine, [own])
        keys |= {(os.fsencode(folder), argv): PlacedTask(part=n) for argv in argvs}
    with dispatching(nodes("a", "b", "c"), keys, folder, steal=True) as place:
        env = {**os.environ, "LD_PRELOAD": str(LIBRARY), **place.environment}
        subprocess.run(
            command.split(),
            cwd=folder,
            env=env,
            check=True,
            timeout=PATIENCE_S,
            stdin=subprocess.DEVNULL,
        )
    said = [(folder / f"out.{n}").read_text().split() for n in numbers]
    assert said == [[str(n), *([] if n % 3 == 0 else ["abc"[n % 3]])] for n in numbers]
    assert place.started == [2, 2, 2]


@pytest.mark.parametrize(
    "start",
    [("no-such-program", "{argv}"), ("false", "{argv}"), ("sh", "-c", "exit 0", "{argv}"),
     ("sh", "-c", "kill -9 $$", "{argv}"), ("env", "nothing", "{argv}")],
)  # fmt: skip  # a table
def test_a_task_that_does_not_begin_there_runs_here(start: tuple[str, ...], folder: Path) -> None:
    key = shell(folder, "echo once >> log; exit 3")
    with dispatching(nodes("a", "b", start=start), {key: PlacedTask(1)}, folder, steal=True) as p:
        assert run(p, key, stdin=subprocess.DEVNULL).returncode == 3
    assert (folder / "log").read_text() == "once\n"


def test_the_task_of_an_engine_that_ignores_ends_is_waited_for(folder: Path) -> None:
    key = shell(folder, "exit 3")
    ignores = ENGINE.replace("os.execv", "signal.signal(signal.SIGCHLD, signal.SIG_IGN); os.execv")
    with dispatching(nodes("a", "b"), {key: PlacedTask(1)}, folder, steal=True) as place:
        assert run(place, key, stdin=subprocess.DEVNULL, engine=ignores).returncode == 3


def test_a_node_on_which_tasks_do_not_begin_gets_no_more(folder: Path) -> None:
    """Node b is unavailable: after two of its planned tasks ran here, the others go to c."""
    away = ("sh", "-c", 'test {host} != b && exec env ON_NODE={host} "$@"', "sh", "{argv}")
    keys = [shell(folder, f": {n}; echo $ON_NODE") for n in range(5)]
    tasks = {key: PlacedTask(1, {}, (n,)) for n, key in enumerate(keys)}
    with dispatching(nodes("a", "b", "c", start=away), tasks, folder, steal=False) as place:
        said = [run(place, key, stdin=subprocess.DEVNULL).stdout.strip() for key in keys]
    assert said[:2] == ["", ""] and place.missed == [0, dispatch.MAX_MISSES, 0]
    assert place.located[0] == place.located[1] == 0 and 1 not in place.located.values()
    assert place.started[1] == dispatch.MAX_MISSES


def test_a_missing_directory_there_is_no_task(folder: Path) -> None:
    """The node does not have the directory of the marks: the task has not begun, and runs here."""
    key = shell(folder, "echo once >> log")
    with dispatching(nodes("a", "b"), {key: PlacedTask(1)}, folder, steal=True) as place:
        place.shared.rmdir()
        assert run(place, key, stdin=subprocess.DEVNULL).returncode == 0
    assert (folder / "log").read_text() == "once\n"


def test_what_cannot_be_carried_runs_here(folder: Path) -> None:
    """A pipe, or the rest of a file that a loop reads."""
    key = shell(folder, "read x; echo $ON_NODE:$x")
    (folder / "lines").write_text("one\ntwo\n")
    with dispatching(nodes("a", "b"), {key: PlacedTask(1)}, folder, steal=True) as place:
        read, write = os.pipe()
        os.write(write, b"piped\nrest\n")
        assert run(place, key, stdin=read).stdout == ":piped\n"
        with (folder / "lines").open() as stream:
            assert run(place, key, stdin=stream.fileno()).stdout == "b:one\n"
            os.lseek(stream.fileno(), 4, os.SEEK_SET)
            assert run(place, key, stdin=stream.fileno()).stdout == ":two\n"


def test_signals_reach_the_task_and_a_killed_starter_ends_its_step(folder: Path) -> None:
    key = shell(folder, "trap 'echo got; exit 5' TERM; echo $$ > pid; while :; do sleep 0.1; done")
    waits = ("timeout", "--foreground", "999", "{argv}")  # forwards signals, as srun does
    env_words = [os.fsdecode(word) for word in key[1]]
    with dispatching(
        nodes("a", "b", start=waits), {key: PlacedTask(1)}, folder, steal=True
    ) as place:
        env = {**os.environ, "LD_PRELOAD": str(LIBRARY), **place.environment}

        def begun() -> subprocess.Popen[bytes]:
            (folder / "pid").unlink(missing_ok=True)
            process = subprocess.Popen(
                [sys.executable, "-c", ENGINE, *env_words], cwd=folder, env=env,
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            )  # fmt: skip  # a table
            until(lambda: (folder / "pid").exists() and (folder / "pid").read_text(), "it begins")
            return process

        process = begun()
        process.send_signal(signal.SIGTERM)
        assert process.communicate(timeout=PATIENCE_S)[0] == b"got\n"
        assert process.returncode == 5
        process = begun()
        pid = int((folder / "pid").read_text())
        process.kill()
        process.wait()
        until(lambda: not Path(f"/proc/{pid}").exists(), "the task on the node ends")


def test_without_who_answers_a_task_runs_here(folder: Path) -> None:
    key = shell(folder, "echo $ON_NODE:here")
    with dispatching(nodes("a", "b"), {key: PlacedTask(1)}, folder, steal=True) as place:
        kept = folder / "kept"
        shutil.copytree(Path(place.environment[dispatch.SWITCH]).parent, kept,
                        ignore=shutil.ignore_patterns("socket"))  # fmt: skip  # a table
    environment = {dispatch.SWITCH: str(kept / "table")}
    after = Dispatcher((), {}, folder, environment=environment)
    assert run(after, key, stdin=subprocess.DEVNULL).stdout == ":here\n"


def waiting(place: Dispatcher, task: PlacedTask, since: float) -> dispatch._Request:
    request = dispatch._Request(os.getpid(), since, task, None)
    place.waiting.append(request)
    return request


def test_which_node() -> None:
    """The part's node, else the one with most inputs. If that is full, a task waits as long as
    moving its inputs would take, then uses any slot; no task waits forever."""
    hosts = [Host(name=name, slots=1, link_mbit=8.0) for name in "abc"]  # 1 MB/s
    place = Dispatcher(hosts, {}, Path(), here=0)
    first = waiting(place, PlacedTask(1, {}, (7,)), 0)
    assert place.grant(0.0) == [first] and first.node == 1 and place.located == {7: 1}
    reader = waiting(place, PlacedTask(None, {7: 2_000_000}), 0)
    assert place.grant(1.9) == []
    assert place.grant(2.1) == [reader] and reader.node == 0  # no input there: this node
    bound = waiting(place, PlacedTask(0), 3)
    place.steal = False
    assert place.grant(3 + dispatch.BOUND_WAIT_S - 0.1) == []
    assert place.grant(3 + dispatch.BOUND_WAIT_S) == [bound] and bound.node == 2
    place.steal = True
    late = waiting(place, PlacedTask(2), 4)
    assert place.grant(4 + dispatch.MAX_WAIT_S) == []
    assert place.grant(4.1 + dispatch.MAX_WAIT_S) == [late] and late.node == 2
    assert place.most == 4
    for pidfd in place.running:
        os.close(pidfd)


@pytest.mark.parametrize(
    ("text", "slots"),
    [("2(x5)", [2] * 5), ("2(x2),4", [2, 2, 4]), ("1", [1]), ("", []), ("2(x", []), ("two", [])],
)
def test_slots_as_slurm_says_them(text: str, slots: list[int]) -> None:
    assert allocation.slots_of(text) == slots


@pytest.mark.slow
def test_a_trial_measures_the_link_or_says_no() -> None:
    hosts = (Host(name="x", slots=1), Host(name="y", slots=1))
    begin = time.monotonic()
    found = allocation.usable(hosts)
    assert found is not None and found.link_mbit > 100
    assert 0 < found.start_s < time.monotonic() - begin
    assert allocation.measured_before(hosts, found.link_mbit, found.start_s) == found
    for words in (("false", "{argv}"), ("no-such-program", "{argv}"), ("sleep", "1000", "{argv}")):
        hosts = (Host(name="x", slots=1, start=words), Host(name="y", slots=1))
        assert allocation.usable(hosts, 0.5) is None


@pytest.mark.slow
@pytest.mark.parametrize(("seconds", "placed"), [(4.0, True), (0.001, False)])
def test_tasks_are_placed_where_that_is_quicker_by_more_than_is_uncertain(
    seconds: float, placed: bool, tmp_path: Path
) -> None:
    """Long tasks run on all nodes; short ones stay on the engine's node, which has their files.
    Either plan can be written and read back."""
    need_engine()
    path = write(tmp_path, pairs(12, seconds=seconds))
    analysis = load_analysis(path)
    found = decide(analysis, learn([analysis]), "moosefs", None, allocation=nodes(*"abcde"))
    assert found is not None and placing_pays(found.planning) == placed
    kept = found if placed else found.unbound()
    dump(kept.hints, tmp_path / "hints.json")
    plan = load(tmp_path / "hints.json").plan
    assert plan is not None and plan.steal in get_args(Steal)
    assert placed or (plan.strategy == "local-writes" and not plan.tasks)
