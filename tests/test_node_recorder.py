"""`record --node`: all tasks of a user on a node join one recorder, which writes one bundle."""

from __future__ import annotations

import os
import shlex
import signal
import socket
import struct
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.cli import TRACEHINT, tracehint
from tests.support.ebpf import require_ebpf
from tests.support.patience import PATIENCE_S, until
from tracehint.collectors.ebpf.node import JOIN, hold_lock, node_place
from tracehint.collectors.ebpf.segments import MAX_BUNDLES, join_segments, segments
from tracehint.schemas.store import Bundle, read_bundle

pytestmark = [pytest.mark.slow, pytest.mark.ebpf]
NODE = [*TRACEHINT, "record", "--node"]


@pytest.fixture(autouse=True)
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Directories for this test's recorders and bundles; the recorder is stopped afterwards."""
    require_ebpf()
    with tempfile.TemporaryDirectory(prefix="th") as folder:  # socket paths must be short
        monkeypatch.setenv("TRACEHINT_NODE_DIR", folder)
        monkeypatch.setenv("TRACEHINT_BUNDLE_DIR", str(tmp_path / "bundles"))
        monkeypatch.chdir(tmp_path)
        yield Path(folder)
        stop()


def run(*arguments: str, **more: object) -> subprocess.CompletedProcess[str]:
    """Run `tracehint record --node ...`."""
    return subprocess.run(
        [*NODE, *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
        **more,  # type: ignore[call-overload]
    )


def stop() -> None:
    """Stop the recorder, which then writes its bundle."""
    assert tracehint("record", "--node", "--stop", "--quiet").returncode == 0


def started() -> list[str]:
    """Start the recorder and return the command prefix that joins it."""
    done = run("--start")
    assert (done.returncode, done.stderr) == (0, "")
    return shlex.split(done.stdout)


def bundles() -> list[Path]:
    """Return the entries of the bundle directory."""
    return sorted(Path("bundles").iterdir())


def commands(bundle: Bundle) -> Counter[bytes]:
    """Count processes without a recorded parent, by their last argument."""
    rows = bundle.tables["processes"].to_pylist()
    return Counter(r["argv"][-1] for r in rows if r["parent"] is None and r["prev"] is None)


def noted(word: bytes) -> bool:
    """Whether a bundle on the disk already contains a task with this last argument."""
    return any(word in commands(read_bundle(path)) for path in bundles())


def written(bundle: Bundle) -> dict[bytes, int]:
    """Return the bytes written by file name."""
    rows = bundle.tables["opens"].to_pylist()
    files = (r for r in rows if r["write_bytes"] and r["path"].startswith(b"/"))
    return {r["path"].rpartition(b"/")[2]: r["write_bytes"] for r in files}


def many(join: list[str], n: int, jobs: int) -> None:
    """Run n tasks, `jobs` at a time, each writing a file of a different length."""
    Path("out").mkdir()
    script = 'printf "%${1}d" 1 >out/$1; exit $(($1 % 7))'
    done = subprocess.run(
        ["xargs", "-P", str(jobs), "-I{}", "sh", "-c",
         '"$@"; code=$?; test $code = $((${0} % 7)) || echo "$0: $code"',
         "{}", *join, "sh", "-c", script, "sh", "{}"],
        input="".join(f"{i}\n" for i in range(1, n + 1)),
        capture_output=True, text=True, check=False,
    )  # fmt: skip  # a table
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def check_many(n: int) -> None:
    """Check for one bundle of few files that contains each task once, with its bytes written."""
    assert {p.suffix for p in Path(os.environ["TRACEHINT_NODE_DIR"]).iterdir()} <= {
        ".lock",
        ".busy",
    }
    (path,) = bundles()
    assert len([p for p in path.rglob("*") if p.is_file()]) < 15
    bundle = read_bundle(path)
    assert bundle.manifest.complete
    assert bundle.tables["losses"].to_pylist() == []
    assert commands(bundle) == {b"%d" % i: 1 for i in range(1, n + 1)}
    assert written(bundle) == {b"%d" % i: i for i in range(1, n + 1)}
    codes = Counter(r["exit_code"] for r in bundle.tables["processes"].to_pylist())
    assert codes == Counter(i % 7 for i in range(1, n + 1))


def test_300_tasks_leave_one_bundle() -> None:
    join = started()
    many(join, 300, 4)
    stop()
    check_many(300)


@pytest.mark.full
def test_10000_tasks_leave_one_bundle() -> None:
    join = started()
    many(join, 10_000, 4)
    stop()
    check_many(10_000)


def test_the_first_task_starts_it_the_others_join_and_it_ends_by_itself() -> None:
    script = 'cat; echo "said $0"; echo err >&2; echo data >file$0; exit $0'
    for code in (3, 0, 77):
        done = run("--idle", "20", "--", "sh", "-c", script, str(code), input="in\n")
        assert (done.returncode, done.stdout, done.stderr) == (code, f"in\nsaid {code}\n", "err\n")
    (path,) = bundles()
    until(lambda: read_bundle(path).manifest.complete, "it ends by itself", every_s=0.5)
    bundle = read_bundle(path)
    assert commands(bundle) == {b"3": 1, b"0": 1, b"77": 1}
    assert written(bundle) == {b"file3": 5, b"file0": 5, b"file77": 5}
    assert len(bundle.tables["losses"]) == 0
    names = {b"".join(r["argv"][:1]) for r in bundle.tables["processes"].to_pylist()}
    assert names == {b"sh", b"cat", b""}  # none of tracehint's own; a fork has no arguments


def test_a_task_is_the_process_that_was_started() -> None:
    """Signals reach the task, and its only children are its own."""
    join = started()
    script = "import os, sys\ntry: os.wait()\nexcept ChildProcessError: print(os.getpid())"
    process = subprocess.Popen(
        [*NODE, "--", sys.executable, "-c", script], stdout=subprocess.PIPE, text=True
    )
    assert process.communicate(timeout=PATIENCE_S)[0] == f"{process.pid}\n"
    assert subprocess.run([*join, "sh", "-c", "kill -USR1 $$"], check=False).returncode == -10


def test_the_first_task_has_no_child_but_its_own() -> None:
    """The recorder that it starts is not its child and does not hold its pipes."""
    script = "import os\ntry: os.wait()\nexcept ChildProcessError: print('none')"
    done = run("--", sys.executable, "-c", script)  # returns because the output is closed
    assert (done.returncode, done.stdout, done.stderr) == (0, "none\n", "")


def test_a_dead_recorder_stops_no_task_and_the_missed_ones_are_named() -> None:
    join = started()
    slow = subprocess.Popen(
        [*join, "sh", "-c", "echo x >early; read x; exit 5", "running"], stdin=subprocess.PIPE
    )
    until(lambda: noted(b"running"), "the loader writes out what it knows each second")
    for pid in recorders():
        os.kill(pid, signal.SIGKILL)
    missed = subprocess.run([*join, "sh", "-c", "exit 6", "missed"], check=False)
    slow.communicate(b"\n")
    assert (slow.returncode, missed.returncode) == (5, 6)
    again = run("--", "sh", "-c", "echo x >late", "late")  # starts another recorder
    assert again.returncode == 0
    stop()
    first, second = sorted(map(read_bundle, bundles()), key=lambda b: b.manifest.started_ns)
    kinds = [
        {r["kind"]: r["count"] for r in b.tables["losses"].to_pylist()} for b in (first, second)
    ]
    assert kinds == [{"killed_recorder": 1}, {"unfollowed_tasks": 1}]
    assert "sh" in second.manifest.notes[-1]
    assert (b"running" in commands(first), commands(second)) == (True, {b"late": 1})
    assert run("--stop").stderr == "tracehint: no recorder was running on this node\n"


def recorders() -> list[int]:
    """Return the process ids of the listening recorder and its loader."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as client:
        client.connect(str(node_place().socket))
        who = client.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)
    pid = struct.unpack("3i", who)[0]
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    return [pid, *map(int, children.split())]


def test_recorders_that_die_with_their_jobs_leave_few_bundles(node: Path) -> None:
    """As under a batch system that kills the processes that a job leaves behind."""
    n = MAX_BUNDLES + 3
    for i in range(n):
        assert run("--", "sh", "-c", f"echo x >file{i}", str(i)).returncode == 0
        until(lambda word=b"%d" % i: noted(word), "it writes out what a task has done")
        for pid in recorders():
            os.kill(pid, signal.SIGKILL)
    run("--", "true")
    stop()
    assert len(bundles()) <= MAX_BUNDLES
    found = [read_bundle(p) for p in bundles()]
    lost = Counter(r["kind"] for b in found for r in b.tables["losses"].to_pylist())
    assert lost["killed_recorder"] == n
    ran = sum((commands(b) for b in found), Counter[bytes]())
    assert ran == {b"%d" % i: 1 for i in range(n)} | {b"true": 1}
    assert set().union(*(written(b) for b in found)) == {b"file%d" % i for i in range(n)}
    assert not {p.name for p in node.iterdir() if "joining" in p.name}


def test_joining_that_was_interrupted_loses_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "seg"
    for i in range(5):
        assert run("--", "sh", "-c", f"echo x >file{i}", str(i)).returncode == 0
        stop()
    Path("bundles").rename(folder)
    host = node_place().host
    work = folder / f"node.{host}.joining"
    work.mkdir()
    (work / "joined").mkdir()  # killed while the originals were moved
    for path in segments(folder, host)[:3]:
        path.rename(work / path.name)
    assert join_segments(folder, host, most=5) == 0
    assert len(segments(folder, host)) == 5
    assert join_segments(folder, host, most=4) == 5
    (path,) = folder.iterdir()
    assert commands(read_bundle(path)) == {b"%d" % i: 1 for i in range(5)}
    work.mkdir()  # killed after the joined bundle was in place
    path.rename(work / "node.old.trace")
    join_segments(folder, host)
    assert list(folder.iterdir()) == []


def test_missed_tasks_without_another_recorder_are_counted_by_merge(tmp_path: Path) -> None:
    join = started()
    assert subprocess.run([*join, "true"], check=False).returncode == 0
    stop()
    assert subprocess.run([*join, "sh", "-c", "exit 9"], check=False).returncode == 9
    done = tracehint("merge", *[p for p in bundles() if p.is_dir()], "-o", "run", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    (row,) = read_bundle(tmp_path / "run").tables["losses"].to_pylist()
    assert (row["kind"], row["count"]) == ("unfollowed_tasks", 1)


def test_foreground_and_waiting_tasks() -> None:
    waiting = subprocess.Popen([*NODE, "--wait", "30", "--", "sh", "-c", "echo x >a", "waits"])
    recorder = subprocess.Popen(NODE)
    assert waiting.wait(PATIENCE_S) == 0
    assert "running already" in run().stderr
    recorder.send_signal(signal.SIGTERM)
    assert recorder.wait(PATIENCE_S) == 0
    (path,) = bundles()
    assert commands(read_bundle(path)) == {b"waits": 1}
    assert run("--wait", "0.1", "--", "sh", "-c", "exit 4").returncode == 4
    assert any(p.suffix == ".missed" for p in bundles())


@pytest.mark.parametrize("how", ["open to others", "symbolic link", "a file"])
def test_a_place_that_is_not_ours_alone_is_refused(tmp_path: Path, node: Path, how: str) -> None:
    place = tmp_path / "place"
    if how == "open to others":
        place.mkdir(mode=0o755)
    elif how == "symbolic link":
        place.symlink_to(node)
    else:
        place.touch()
    env = {**os.environ, "TRACEHINT_NODE_DIR": str(place)}
    done = run("--", "sh", "-c", "exit 8", env=env)
    assert (done.returncode, "only this user can access" in done.stderr or how == "a file") == (
        8,
        True,
    )
    assert "not recorded" in done.stderr
    assert run("--start", env=env).returncode != 0


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to give up capabilities")
def test_without_privileges_the_task_runs_and_is_counted() -> None:
    bare = ["setpriv", "--bounding-set=-all", "--inh-caps=-all"]
    done = subprocess.run(
        [*bare, *NODE, "--", "sh", "-c", "exit 3"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 3
    assert "not recorded: this node's recorder did not start" in done.stderr
    assert [p.name for p in bundles()] == [node_place().missed.name]
    assert (
        "did not start"
        in subprocess.run(
            [*bare, *NODE, "--start"], capture_output=True, text=True, check=False
        ).stderr
    )


def test_only_the_own_user_is_followed_and_believed(node: Path) -> None:
    if os.geteuid():
        pytest.skip("needs root for a second user")
    other = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]
    join = started()
    node.chmod(0o711)  # let the other user reach the socket
    for path in node.iterdir():
        path.chmod(0o666)
    done = subprocess.run([*other, *join, "sh", "-c", "exit 3"], check=False, capture_output=True)
    assert done.returncode == 3
    node.chmod(0o700)
    stop()
    (path,) = [p for p in bundles() if p.is_dir()]
    assert commands(read_bundle(path)) == {}
    # conversely, a socket of another user is not trusted
    server = "import socket, sys, time; s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET); "
    server += "s.bind(sys.argv[1]); s.listen(); print(flush=True); c, _ = s.accept(); "
    server += "c.settimeout(300); print(c.recv(9))"
    fake = Path(tempfile.mkdtemp(prefix="th"))
    try:
        fake.chmod(0o777)
        (fake / "s.lock").touch()
        process = subprocess.Popen(
            [*other, sys.executable, "-c", server, fake / "s"], stdout=subprocess.PIPE, text=True
        )
        assert process.stdout is not None
        process.stdout.readline()
        os.chown(fake / "s", 0, 0)  # otherwise it would not even be contacted
        done = subprocess.run([JOIN, fake / "s", fake / "m", "--", "true"], check=False)
        assert done.returncode == 0
        assert process.communicate(timeout=PATIENCE_S)[0] == "b''\n"  # it received no request
        assert len((fake / "m").read_text().splitlines()) == 1
    finally:
        for path in fake.iterdir():
            path.unlink()
        fake.rmdir()


def test_a_task_that_comes_while_the_bundle_is_written_starts_another(node: Path) -> None:
    """The ending recorder refuses the task immediately and releases its lock."""
    assert run("--idle", "0.3", "--", "sh", "-c", "echo x >one", "one").returncode == 0
    until(lambda: not _listens(), "the first one ends", every_s=0.005)
    assert run("--idle", "0.3", "--", "sh", "-c", "echo x >two", "two").returncode == 0
    until(lambda: not _listens(), "the second one ends")
    place = node_place()
    with hold_lock(Path(f"{place.socket}.busy")):
        pass  # both have written their bundles
    ran = sum((commands(read_bundle(p)) for p in bundles()), Counter[bytes]())
    assert ran == {b"one": 1, b"two": 1}
    # the recorder cleans up last, and only if it gets the lock: do not hold it here
    until(lambda: not (node / place.socket.name).exists(), "the socket goes")
    with hold_lock(place.lock, wait=False):
        pass


def _listens() -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as client:
        return client.connect_ex(str(node_place().socket)) == 0


def test_a_recorder_leaves_no_file_where_it_was_met(node: Path) -> None:
    join = started()
    assert subprocess.run([*join, "true"], check=False).returncode == 0
    assert {p.suffix for p in node.iterdir()} == {"", ".lock", ".busy", ".log"}
    stop()
    assert list(node.iterdir()) == []


def test_a_silent_client_holds_nobody_up_for_long() -> None:
    join = started()
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as silent:
        silent.connect(str(node_place().socket))
        assert subprocess.run([*join, "true"], check=False, timeout=PATIENCE_S).returncode == 0
    stop()
    (path,) = bundles()
    assert sum(commands(read_bundle(path)).values()) == 1


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--start", "--stop"], "cannot be combined"),
        (["--start", "--", "true"], "cannot be combined"),
        (["--wait", "3"], "give a command"),
        (["--pid", "1"], "cannot be combined"),
        (["-o", "x", "--", "true"], "cannot be combined"),
        (["--collector", "strace", "--", "true"], "cannot be combined"),
    ],
)
def test_wrong_usage_is_125(arguments: list[str], words: str) -> None:
    done = run(*arguments)
    assert done.returncode == 125
    assert words.lower() in done.stderr.lower()


def test_options_of_node_need_it() -> None:
    done = tracehint("record", "--stop", cwd=Path())
    assert (done.returncode, "needs --node" in done.stderr) == (125, True)


@pytest.mark.parametrize(("command", "code"), [(["no-such-program"], 127), (["/etc/passwd"], 126)])
def test_commands_that_cannot_run(command: list[str], code: int) -> None:
    join = started()
    assert run("--", *command).returncode == code
    assert subprocess.run([*join, *command], check=False, capture_output=True).returncode == code
