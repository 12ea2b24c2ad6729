"""`record --node` in shared directories: the command runs whatever files others put there."""

from __future__ import annotations

import fcntl
import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.built import built
from tests.support.cli import TRACEHINT
from tests.support.ebpf import require_ebpf
from tests.support.patience import PATIENCE_S
from tests.support.users import OTHER, needs_root
from tracehint.collectors.ebpf.missed import add_missed
from tracehint.collectors.ebpf.node import hold_lock, node_place
from tracehint.collectors.ebpf.segments import join_segments, segments
from tracehint.schemas.store import read_bundle, table_from_rows

pytestmark = pytest.mark.slow

SOURCE = Path(__file__).parents[1] / "collectors" / "ebpf" / "rec" / "join.c"
NODE = [*TRACEHINT, "record", "--node"]
SOON = 20  # seconds; without the checks the command never runs


@pytest.fixture(scope="module")
def join(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """tracehint-join built with short timeouts."""
    compiler = shutil.which("cc") or shutil.which("clang")
    if compiler is None:
        pytest.skip("no C compiler")
    flags = ["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-DPATIENCE_S=1", "-DLOCK_PATIENCE_S=1"]
    return built(tmp_path_factory.mktemp("join") / "tracehint-join", compiler, *flags, SOURCE)


@pytest.fixture
def place(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A directory with a short name, for sockets."""
    with tempfile.TemporaryDirectory(prefix="th") as folder:
        monkeypatch.setenv("TRACEHINT_NODE_DIR", folder)
        monkeypatch.setenv("TRACEHINT_BUNDLE_DIR", f"{folder}/b")
        yield Path(folder)


def joined(join: Path, place: Path, **more: object) -> subprocess.CompletedProcess[str]:
    """Run a task behind tracehint-join; it prints a line and exits with 7."""
    return subprocess.run(
        [join, place / "s", place / "m", "--", "sh", "-c", "echo ran; exit 7"],
        text=True, timeout=SOON, stdout=subprocess.PIPE, **more,  # type: ignore[call-overload]
    )  # fmt: skip  # a table


def plant(path: Path, what: str, victim: Path) -> None:
    """Create another user's object at a path that is about to be opened."""
    victim.write_text("precious")
    if what == "fifo":
        os.mkfifo(path, 0o666)
    elif what == "link":
        path.symlink_to(victim)
    elif what == "hard link":
        path.hardlink_to(victim)
    elif what == "directory":
        path.mkdir()
    elif what == "socket":
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(str(path))
    else:
        path.touch()
        path.chmod(0o666)
        os.chown(path, OTHER, OTHER)


PLANTED = ["fifo", "link", "hard link", "directory", "socket"]
PLANTED += ["file of another user"] if os.geteuid() == 0 else []


@pytest.mark.parametrize("what", PLANTED)
@pytest.mark.parametrize("name", ["m", "s.lock"])
def test_what_others_put_there_is_named_once_and_the_command_runs(
    join: Path, place: Path, name: str, what: str
) -> None:
    """Issue 12, S4: the task blocked forever on a FIFO."""
    plant(place / name, what, place / "victim")
    done = joined(join, place, stderr=subprocess.PIPE)
    assert (done.returncode, done.stdout) == (7, "ran\n")
    assert (place / "victim").read_text() == "precious"
    if name == "m":
        assert done.stderr.count("\n") == 1
        assert "could not be recorded" in done.stderr
    else:
        assert (place / "m").read_text().endswith(" sh\n")


def test_a_lock_that_is_never_given_back(join: Path, place: Path) -> None:
    with (place / "s.lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert joined(join, place).stdout == "ran\n"
        with pytest.raises(BlockingIOError), hold_lock(place / "s.lock", patience=0.1):
            pass
    assert (place / "m").read_text().endswith(" sh\n")


def test_a_recorder_that_never_answers(join: Path, place: Path) -> None:
    (place / "s.lock").touch()
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as server:
        server.bind(str(place / "s"))
        server.listen(1)
        assert joined(join, place).stdout == "ran\n"
    assert (place / "m").read_text().endswith(" sh\n")


def test_no_room_for_the_note_and_nobody_who_reads_the_warning(join: Path, place: Path) -> None:
    full = ["sh", "-c", 'ulimit -f 0; "$@"', "sh"]
    command = [*full, join, place / "s", place / "m", "--", "sh", "-c", "echo ran; exit 7"]
    done = subprocess.run(command, text=True, timeout=SOON, capture_output=True)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (7, "ran\n", 1)
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=write, text=True, timeout=SOON)
    os.close(write)
    assert (done.returncode, done.stdout) == (7, "ran\n")


@pytest.mark.parametrize("how", ["long name", "log is a directory", "log is a fifo", "lock"])
def test_a_place_that_cannot_be_used(
    place: Path, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The command runs once, and one line states why it is not recorded."""
    if how == "long name":
        monkeypatch.setenv("TRACEHINT_NODE_DIR", str(place / ("x" * 120)))
    elif how == "lock":
        node_place().lock.symlink_to(place / "victim")
    else:
        log = node_place().log
        log.mkdir() if "directory" in how else os.mkfifo(log)
    done = subprocess.run(
        [*NODE, "--", "sh", "-c", "echo ran; exit 7"],
        capture_output=True, text=True, timeout=PATIENCE_S, check=False,
    )  # fmt: skip  # a table
    assert (done.returncode, done.stdout) == (7, "ran\n")
    assert done.stderr.count("not recorded") == 1
    assert not (place / "victim").exists()


@pytest.mark.parametrize("what", PLANTED)
def test_what_others_put_in_the_place_of_missed_tasks_is_not_read(place: Path, what: str) -> None:
    plant(place / "m", what, place / "victim")
    tables = {"losses": table_from_rows("losses", [])}
    for keep in (False, True):
        notes: list[str] = []
        count = add_missed(tables, notes, "h", place / "m", keep=keep)
        readable = keep and what in ("hard link", "file of another user")
        assert readable or (count == 0 and len(notes) == 1), notes
    assert (place / "victim").read_text() == "precious"


@needs_root
def test_bundles_of_others_are_left_alone(place: Path) -> None:
    """Joining moves and removes only bundles owned by the user."""
    from tests.support.bundles import RunBuilder

    folder = place / "b"
    for number in range(4):
        run = RunBuilder(cwd="/data", data_roots=["/data"])
        run.process(["sh", str(number)])
        run.save(folder / f"node.h{f'-{number}' if number else ''}.trace")
    work = folder / "node.h.joining"
    work.mkdir()
    (work / "kept").touch()
    os.chown(work, OTHER, OTHER)
    os.chown(folder / "node.h.trace", OTHER, OTHER)
    assert len(segments(folder, "h")) == 3
    work_before = sorted(p.name for p in work.iterdir())
    assert join_segments(folder, "h", most=1) == 0
    assert sorted(p.name for p in work.iterdir()) == work_before
    shutil.rmtree(work)
    assert join_segments(folder, "h", most=1) == 3
    assert (folder / "node.h.trace").stat().st_uid == OTHER
    assert [path.name for path in segments(folder, "h")] == ["node.h-1.trace"]


@pytest.mark.ebpf
def test_a_recorder_ends_although_a_pipe_lies_in_its_way(place: Path) -> None:
    require_ebpf()
    missed = node_place().missed
    os.mkfifo(missed)
    done = subprocess.run(
        [*NODE, "--", "sh", "-c", "exit 7"], capture_output=True, text=True, timeout=PATIENCE_S
    )
    assert (done.returncode, done.stderr) == (7, "")
    stopped = subprocess.run([*NODE, "--stop"], capture_output=True, timeout=PATIENCE_S)
    assert stopped.returncode == 0
    (bundle,) = (p for p in (place / "b").iterdir() if p.is_dir())
    assert any("may be missing" in note for note in read_bundle(bundle).manifest.notes)
    assert missed.exists()
