"""Storage classes of MooseFS at creation: on a real store, and without traces in the program."""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import shaped
from tests.support.bed import ok
from tests.support.cli import TRACEHINT, tracehint
from tests.support.creation import Tagged
from tests.support.hints import hint_file, rule, save
from tests.support.moosefs import Cluster, cluster, missing
from tracehint.adapters.creation.journal import read_journals
from tracehint.adapters.stores.registry import open_store

pytestmark = pytest.mark.slow

HINTS = hint_file(rule("{name}.txt", Replication="3"), rule("{name}.dat", Replication="9"))


@pytest.fixture
def tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An imitation of mfssetsclass that logs its arguments and succeeds."""
    folder = tmp_path / "bin"
    folder.mkdir()
    path = folder / "mfssetsclass"
    target = '$(readlink "$2")'
    path.write_text(f'#!/bin/sh\necho "$1 {target}" >>{tmp_path}/said\n')
    path.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    return path


@pytest.mark.usefixtures("tool")
def test_the_program_sees_no_child(library: Path, tmp_path: Path) -> None:
    tagged = Tagged(library, tmp_path, HINTS, store=open_store("moosefs"))
    script = (
        "import os, signal\n"
        "got = []\n"
        "signal.signal(signal.SIGCHLD, lambda *a: got.append(a))\n"
        "before = sorted(os.listdir('/proc/self/fd'))\n"
        "open('a.txt', 'w').write('1')\n"
        "try: os.waitpid(-1, os.WNOHANG); got.append('a child')\n"
        "except ChildProcessError: pass\n"
        "assert sorted(os.listdir('/proc/self/fd')) == before\n"
        "assert not got, got\n"
    )
    tagged.run(sys.executable, "-c", script)
    assert (tmp_path / "said").read_text() == f"3 {tagged.root}/a.txt\n"
    assert read_journals(tagged.table).counts["set"] == 1


def test_a_tool_that_never_answers_is_not_asked_for_ever(
    library: Path, tmp_path: Path, tool: Path
) -> None:
    tagged = Tagged(library, tmp_path, HINTS, store=open_store("moosefs"))
    tool.write_text(f"#!/bin/sh\necho asked >>{tmp_path}/said\nsleep 300\n")
    tagged.run("sh", "-c", 'for i in 1 2 3 4 5 6; do sh -c "echo 1 >a$i.txt"; done')
    assert (tmp_path / "said").read_text() == "asked\n" * 3
    journal = read_journals(tagged.table)
    assert (journal.counts["silent"], journal.counts["refused"]) == (3, 6)
    assert {record.error for record in journal.records} == {110}


@pytest.mark.usefixtures("tool")
def test_a_file_in_the_place_of_a_closed_stream(library: Path, tmp_path: Path) -> None:
    tagged = Tagged(library, tmp_path, HINTS, store=open_store("moosefs"))
    tagged.run("sh", "-c", "exec 1>&-; echo 1 >b.txt; exec 0<&- 2>&-; echo 1 >c.txt")
    said = sorted((tmp_path / "said").read_text().splitlines())
    assert said == [f"3 {tagged.root}/b.txt", f"3 {tagged.root}/c.txt"]


def test_a_tool_that_hangs_or_fails_is_counted(library: Path, tmp_path: Path, tool: Path) -> None:
    tagged = Tagged(library, tmp_path, HINTS, store=open_store("moosefs"))
    tool.write_text("#!/bin/sh\nexit 3\n")
    tagged.run("sh", "-c", "echo 1 >a.txt")
    tool.unlink()
    tagged.run("sh", "-c", "echo 1 >b.txt")
    tool.write_text("#!/bin/sh\nsleep 300\n")
    tool.chmod(0o755)
    started = time.monotonic()
    tagged.run("sh", "-c", "echo 1 >c.txt")
    assert time.monotonic() - started < 250
    assert [record.error for record in read_journals(tagged.table).records] == [5, 5, 110]


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A running MooseFS."""
    reason = missing()
    if reason:
        pytest.skip(reason)
    with cluster(tmp_path_factory.mktemp("mfs")) as started:
        yield started


WORKFLOW = """
for i in 1 2 3 4 5 6; do head -c 200000 /dev/zero >part_$i.txt; done
for i in 1 2 3 4 5 6; do sh -c "tr '\\0' x <part_$i.txt >next_$i.dat"; done
"""
READ = 6 * 200_000


@pytest.mark.full  # covered by the two runs at the end of this file: the second has no remote reads
@pytest.mark.store
def test_where_the_bytes_were_read_is_known_of_runs_on_a_real_store(tmp_path: Path) -> None:
    """Node A reads six files, located first on any node and then where they were made."""
    if shaped.missing():
        pytest.skip(shaped.missing())
    program = TRACEHINT
    for name in ("bed", "none"):
        (tmp_path / name).mkdir()
    hints, none = save(tmp_path, rule("part_{n}.txt", DP="local")), save(tmp_path / "none")
    (tmp_path / "site.toml").write_text('local = "node_{host}"\n')
    (tmp_path / "w.sh").write_text(WORKFLOW)
    options = ["--store", "moosefs", "--map", tmp_path / "site.toml", "--collector", "strace"]
    with shaped.shaped_cluster(tmp_path / "bed") as bed:
        node, folder = bed.nodes[0], bed.nodes[0].mount
        for name, more in (("first", none), ("second", hints)):
            words = [*program, "run", *options, "--hints", more, "-o", tmp_path / name, "--"]
            done = node.run(*words, "sh", tmp_path / "w.sh", cwd=folder)
            assert done.returncode == 0, done.stderr
            assert "was not queried" not in done.stderr
            ok(node.run("sh", "-c", "rm *.txt *.dat", cwd=folder))
    words = ("compare", tmp_path / "first", tmp_path / "second", "--format", "json")
    data = json.loads(tracehint(*words).stdout)
    local, remote = data["local_bytes"], data["remote_bytes"]
    assert local["before"] + remote["before"] == READ
    assert remote["before"] > 0
    assert (local["after"], remote["after"]) == (READ, 0)


@pytest.mark.store
def test_a_real_store(library: Path, tmp_path: Path, store: Cluster) -> None:
    tagged = Tagged(library, tmp_path, HINTS, store=open_store("moosefs"), root=store.mount)
    env = [f"{name}={tagged.environment()[name]}" for name in ("LD_PRELOAD", "TRACEHINT_HINTS")]
    script = "echo 1 >a.txt; echo 1 >other; echo 1 >b.dat"
    done = store.run("env", *env, "sh", "-c", script, cwd=store.mount)
    assert done.returncode == 0, done.stderr
    classes = {
        name: store.run("mfsgetsclass", name, cwd=store.mount).stdout.split(":")[1].strip()
        for name in ("a.txt", "b.dat", "other")
    }
    assert (classes["a.txt"], classes["b.dat"]) == ("3", "9")
    assert classes["other"] not in ("3", "9")
    assert read_journals(tagged.table).counts["set"] == 2


@pytest.mark.store
def test_a_run_on_a_real_store(tmp_path: Path, store: Cluster) -> None:
    """It is mounted without a page cache: its files cannot be shared through memory."""
    (store.mount / "run").mkdir()
    save(tmp_path, *HINTS.rules)
    words = [*TRACEHINT, "run", "--store", "moosefs"]
    words += ["--hints", tmp_path / "hints.json", "--no-record", "--", "sh", "-c"]
    script = "echo 1 >a.txt; echo 1 >other; echo 1 >b.dat; cat a.txt"
    done = store.run(*words, script, cwd=store.mount / "run")
    assert (done.returncode, done.stdout) == (0, "1\n"), done.stderr
    assert "hints set on 2 of 2 matching files" in done.stderr
    asked = store.run("mfsgetsclass", "a.txt", "b.dat", cwd=store.mount / "run")
    assert asked.stdout.split() == ["a.txt:", "3", "b.dat:", "9"]


MAKEFLOW = (
    "".join(
        f"p{i}.dat:\n\thead -c 3000000 /dev/zero > p{i}.dat\n"
        f"q{i}.dat: p{i}.dat\n\tcat p{i}.dat > q{i}.dat\n"
        for i in range(6)
    )
    + "t.dat: "
    + " ".join(f"q{i}.dat" for i in range(6))
    + "\n\tcat q*.dat > t.dat\n"
)
PROJECT = 'store = "moosefs"\nmap = "site.toml"\ncluster = "moosefs"\nengine = "makeflow"\n'
GROUPS = 'local = "node_{host}"\ngroups = ["node_A", "node_B", "node_C", "node_D", "node_E"]\n'


@pytest.mark.store
def test_two_runs_and_nothing_else_typed(tmp_path: Path) -> None:
    """A workflow on the store: the second run is planned from the first and reads locally."""
    if shaped.missing() or shutil.which("makeflow") is None:
        pytest.skip(shaped.missing() or "not installed: makeflow")
    program = TRACEHINT
    with shaped.shaped_cluster(tmp_path) as bed:
        node, folder = bed.nodes[0], bed.nodes[0].mount / "wf"
        folder.mkdir()
        for name, text in (("w.mf", MAKEFLOW), ("tracehint.toml", PROJECT), ("site.toml", GROUPS)):
            (folder / name).write_text(text)
        for number in (1, 2):
            done = node.run(*program, "run", "--", "makeflow", "-T", "local", "w.mf", cwd=folder)
            assert done.returncode == 0, done.stderr
            assert ("planned for moosefs" in done.stderr) == (number == 2), done.stderr
            ok(node.run("sh", "-c", "rm *.dat w.mf.*", cwd=folder))
        runs = folder / ".tracehint" / "runs"
        words = ("compare", runs / "0001.trace", runs / "0002.trace", "--format", "json")
        data = json.loads(ok(node.run(*program, *words, cwd=folder)))
    assert data["hints"]["in_force"] == data["hints"]["wanted"] >= 12
    assert data["remote_bytes"]["before"] > 0 == data["remote_bytes"]["after"]
    assert data["local_bytes"]["after"] == 12 * 3_000_000
