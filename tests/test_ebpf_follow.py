"""`record --pid` and `--cgroup`: processes that run already are followed from the attachment on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.cli import TRACEHINT, tracehint
from tests.support.ebpf import require_ebpf
from tests.support.patience import PATIENCE_S, until
from tracehint.collectors.base import Follow
from tracehint.collectors.ebpf import follow as following
from tracehint.errors import CollectorError
from tracehint.schemas.store import Bundle, read_bundle

pytestmark = pytest.mark.slow

LOOP = "exec 7>>held; while [ ! -e stop ]; do echo line >out; /bin/cat out >copy; echo x >&7; done"
THREADS = """
import os, threading, time
held = os.open("held", os.O_WRONLY | os.O_CREAT)
def work(n):
    while not os.path.exists("stop"):
        os.write(held, b"t")
        time.sleep(0.01)
    with open(f"end{n}", "wb", buffering=0) as f:
        f.write(b"end")
for n in range(3):
    threading.Thread(target=work, args=(n,)).start()
"""


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def start(*options: object) -> subprocess.Popen[str]:
    """Start the recorder and wait until it is attached, as its spool shows."""
    recorder = subprocess.Popen(
        [*TRACEHINT, "record", "--quiet", "-o", "b.trace", *map(str, options)],
        stderr=subprocess.PIPE,
        text=True,
    )
    begun = Path("b.trace/spool/start.json")
    until(lambda: begun.exists() or recorder.poll() is not None, "it records", every_s=0.01)
    return recorder


def again(name: str, times: int = 3) -> None:
    """Wait until the file has changed this many times."""
    for _ in range(times):
        before = Path(name).stat() if Path(name).exists() else None
        until(lambda was=before: Path(name).exists() and Path(name).stat() != was, name)


def finish(recorder: subprocess.Popen[str]) -> Bundle:
    _, errors = recorder.communicate(timeout=PATIENCE_S)
    assert (recorder.returncode, errors) == (0, "")
    bundle = read_bundle(Path("b.trace"))
    assert bundle.manifest.complete
    assert not bundle.problems
    return bundle


@contextmanager
def background(*command: str) -> Iterator[subprocess.Popen[bytes]]:
    """Start a process that ends when the file `stop` appears."""
    process = subprocess.Popen(command, start_new_session=True)
    try:
        time.sleep(0.1)
        yield process
    finally:
        Path("stop").touch()
        process.wait(timeout=PATIENCE_S)


@pytest.mark.ebpf
def test_a_running_tree_is_followed_until_it_ends(tmp_path: Path) -> None:
    require_ebpf()
    with background("sh", "-c", f"({LOOP}); exit 4") as process:
        recorder = start("--pid", process.pid)
        again("copy")
    bundle = finish(recorder)
    rows = bundle.tables["processes"].to_pylist()
    (root,) = [r for r in rows if r["pid"] == process.pid]
    assert (root["exit_code"], root["argv"][:2], root["cwd"]) == (
        4,
        [b"sh", b"-c"],
        bytes(tmp_path),
    )
    assert bundle.manifest.command[:2] == ["sh", "-c"]
    assert bundle.manifest.exit_status is None
    by_proc = {r["proc"]: r for r in rows}
    assert [r["proc"] for r in rows if r["parent"] is None] == [root["proc"]]
    (loop,) = [r for r in rows if r["parent"] == root["proc"]]  # already running: still a child
    cats = [r for r in rows if r["argv"][:1] == [b"/bin/cat"]]
    assert cats
    assert {by_proc[c["prev"]]["parent"] for c in cats if c["prev"]} <= {loop["proc"]}
    opens = bundle.tables["opens"].to_pylist()
    held = [o for o in opens if o["path"] == bytes(tmp_path / "held") and o["write_ops"]]
    assert {(o["via"], o["proc"]) for o in held} == {("inherited", loop["proc"])}
    assert 0 < sum(o["write_bytes"] for o in held) <= (tmp_path / "held").stat().st_size
    copies = [o for o in opens if o["path"] == bytes(tmp_path / "copy") and o["write_ops"]]
    assert {o["write_bytes"] for o in copies} == {5}
    assert len(bundle.tables["losses"]) == 0


@pytest.mark.ebpf
@pytest.mark.parametrize("how", ["duration", "signal"])
def test_following_ends_before_the_process(tmp_path: Path, how: str) -> None:
    require_ebpf()
    with background("sh", "-c", LOOP) as process:
        if how == "duration":
            recorder = start("--pid", process.pid, "--duration", "1")
        else:
            recorder = start("--pid", process.pid)
            again("copy")
            recorder.send_signal(signal.SIGTERM)
        bundle = finish(recorder)
        assert process.poll() is None  # following does not end the process
    assert any("still running" in note for note in bundle.manifest.notes)
    paths = {o["path"] for o in bundle.tables["opens"].to_pylist()}
    assert bytes(tmp_path / "copy") in paths


@pytest.mark.ebpf
def test_threads_that_ran_already(tmp_path: Path) -> None:
    require_ebpf()
    with background(sys.executable, "-c", THREADS) as process:
        again("held", 10)
        recorder = start("--pid", process.pid)
        before = (tmp_path / "held").stat().st_size
        again("held", 10)
    bundle = finish(recorder)
    (row,) = bundle.tables["processes"].to_pylist()
    assert (row["pid"], row["exit_code"]) == (process.pid, 0)
    opens = bundle.tables["opens"].to_pylist()
    ends = {o["path"][-4:]: o["write_bytes"] for o in opens if o["path"][-4:-1] == b"end"}
    assert ends == {b"end0": 3, b"end1": 3, b"end2": 3}
    written = sum(o["write_bytes"] for o in opens if o["path"].endswith(b"/held"))
    assert written >= (tmp_path / "held").stat().st_size - before - 3  # except a race at attachment


@pytest.mark.ebpf
def test_a_process_that_sleeps_to_its_end() -> None:
    """The only event after attaching is its end: it is recorded, and the recording ends."""
    require_ebpf()
    process = subprocess.Popen(["sleep", "1000"])
    recorder = start("--pid", process.pid)
    process.kill()
    process.wait()
    (row,) = finish(recorder).tables["processes"].to_pylist()
    assert (row["exit_signal"], row["argv"]) == (9, [b"sleep", b"1000"])


def _cgroup() -> Path:
    """Make a fresh cgroup v2 directory; skip where that is not possible."""
    for line in Path("/proc/self/mounts").read_text().splitlines():
        _, where, kind, *_ = line.split()
        path = Path(where) / f"tracehint-test-{os.getpid()}"
        if kind == "cgroup2" and os.access(where, os.W_OK):
            try:
                path.mkdir()
            except OSError:
                continue
            return path
    pytest.skip("needs root and a writable cgroup v2 mount: mount -t cgroup2 none DIR")


@pytest.mark.ebpf
def test_a_cgroup_is_followed(tmp_path: Path) -> None:
    require_ebpf()
    group = _cgroup()
    try:
        inner = group / "step"
        inner.mkdir()
        join = "echo $$ >$0/cgroup.procs; "
        with background("sh", "-c", join + LOOP, str(inner)) as early:
            recorder = start("--cgroup", group)
            time.sleep(0.2)
            late = subprocess.run(
                ["sh", "-c", join + "echo joined >late; exit 5", str(group)], check=False
            )
            subprocess.run(["sh", "-c", "echo other >outside"], check=True)
        bundle = finish(recorder)
    finally:
        (group / "step").rmdir()
        group.rmdir()
    assert late.returncode == 5
    rows = bundle.tables["processes"].to_pylist()
    assert early.pid in {r["pid"] for r in rows}
    assert 5 in {r["exit_code"] for r in rows}
    opens = {o["path"]: o for o in bundle.tables["opens"].to_pylist() if o["write_bytes"]}
    assert opens[bytes(tmp_path / "late")]["write_bytes"] == 7
    assert bytes(tmp_path / "copy") in opens
    assert bytes(tmp_path / "outside") not in opens
    assert bundle.manifest.command == []


def test_what_cannot_be_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for follow, words in (
        (Follow(pid=4194303), "no such process"),
        (Follow(pid=-1), "no such process"),
        (Follow(cgroup=str(tmp_path)), "not a cgroup v2 directory"),
        (Follow(cgroup=str(tmp_path / "none")), "no such directory"),
    ):
        with pytest.raises(CollectorError, match=words):
            following.check_follow(follow)
    monkeypatch.setattr(os, "geteuid", lambda: 65533)
    monkeypatch.setattr(os, "getuid", lambda: 65533)
    with pytest.raises(CollectorError, match="not permitted"):
        following.check_follow(Follow(pid=os.getpid()))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--pid", "1", "true"], "cannot be combined"),
        (["--pid", "1", "--cgroup", "/x"], "cannot be combined"),
        ([], "nothing to record"),
        (["--duration", "3", "true"], "until it ends"),
        (["--pid", "1", "--duration", "nan"], "not a time"),
        (["--pid", "1", "--collector", "strace"], "only record a command from its start"),
        (["--cgroup", ""], "name is empty"),
    ],
)
def test_wrong_usage_is_125(arguments: list[str], words: str) -> None:
    done = tracehint("record", *arguments)
    assert done.returncode == 125
    assert words in done.stderr
    assert not list(Path().iterdir())
