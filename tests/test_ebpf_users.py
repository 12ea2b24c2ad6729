"""Which users' processes may be followed: real users and capabilities, on a copy of the loader."""

from __future__ import annotations

import os
import shutil
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.ebpf import require_ebpf
from tests.support.patience import PATIENCE_S
from tracehint.collectors.ebpf.collector import LOADER, environment_file
from tracehint.schemas.recovery import SPOOL_DIR
from tracehint.schemas.store import Bundle, read_bundle

pytestmark = [
    pytest.mark.slow,
    pytest.mark.ebpf,
    pytest.mark.skipif(os.geteuid() != 0, reason="needs root to become other users"),
]

OWN, OTHER = 65534, 65533
CAPABILITIES = 1 << (38 - 32) | 1 << (39 - 32)  # CAP_PERFMON, CAP_BPF
# Both processes append to a file named after their user; the child has the other user.
FAMILY = """
import os, sys, time
own, other, folder = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
child = os.fork() if other >= 0 else 1
user = own if child else other
os.setresgid(user, user, user); os.setresuid(user, user, user)
end = time.monotonic() + 900
while time.monotonic() < end and not os.path.exists(folder + "/stop"):
    with open(f"{folder}/wrote{user}", "a") as f: f.write("x")
    time.sleep(0.01)
if other >= 0 and child: os.wait()
"""


@pytest.fixture
def place() -> Iterator[Path]:
    """A directory that all users may use, with a loader that has the two capabilities."""
    require_ebpf()
    folder = Path(tempfile.mkdtemp())
    try:
        folder.chmod(0o777)
        shutil.copy(LOADER, folder / "rec")
        value = struct.pack("<5I", 0x02000001, 0, 0, CAPABILITIES, 0)
        os.setxattr(folder / "rec", "security.capability", value)
        yield folder
    finally:
        shutil.rmtree(folder)


@contextmanager
def family(folder: Path, own: int, other: int = -1) -> Iterator[int]:
    """Run a process of one user and optionally its child of another; yield the first one's pid."""
    process = subprocess.Popen([sys.executable, "-c", FAMILY, str(own), str(other), str(folder)])
    try:
        for user in (own, other):
            while user >= 0 and not (folder / f"wrote{user}").exists():
                assert process.poll() is None
                time.sleep(0.01)
        yield process.pid
    finally:
        (folder / "stop").touch()
        assert process.wait(PATIENCE_S) == 0


def follow(folder: Path, pid: int, user: int) -> tuple[int, str, Bundle | None]:
    """Follow a process for 1.5 seconds as a user; return exit code, messages and bundle."""
    root = folder / "b.trace"
    spool = root / SPOOL_DIR
    spool.mkdir(parents=True)
    for path in (root, spool):
        os.chown(path, user, user)
    done = subprocess.run(
        [folder / "rec", "-o", spool, "--pid", str(pid), "--duration", "1500"],
        user=user, group=user, extra_groups=[], cwd="/", capture_output=True, text=True,
        check=False, timeout=PATIENCE_S,
    )  # fmt: skip  # a table
    if done.returncode:
        assert not (spool / "start.json").exists()
        return done.returncode, done.stderr, None
    (root / "manifest.json").write_text('{"format": "tracehint.bundle/1"}')
    return done.returncode, done.stderr, read_bundle(root)


def wrote(bundle: Bundle) -> set[bytes]:
    """Return the names of the files that were written."""
    rows = bundle.tables["opens"].to_pylist()
    return {r["path"].rpartition(b"/")[2] for r in rows if r["write_bytes"]}


def test_own_process(place: Path) -> None:
    with family(place, OWN) as pid:
        code, said, bundle = follow(place, pid, OWN)
    assert (code, said) == (0, "")
    assert bundle is not None
    assert wrote(bundle) == {b"wrote%d" % OWN}
    assert {r["uid"] for r in bundle.tables["processes"].to_pylist()} == {OWN}


@pytest.mark.parametrize("whose", [OTHER, 0])
def test_process_of_another_user_is_refused(place: Path, whose: int) -> None:
    with family(place, whose) as pid:
        code, said, bundle = follow(place, pid, OWN)
    assert (code, bundle) == (125, None)
    assert "not permitted" in said


def test_another_users_child_is_left_out(place: Path) -> None:
    with family(place, OWN, OTHER) as pid:
        code, said, bundle = follow(place, pid, OWN)
    assert (code, said) == (0, "")
    assert bundle is not None
    assert wrote(bundle) == {b"wrote%d" % OWN}


def test_root_follows_all(place: Path) -> None:
    with family(place, OWN, OTHER) as pid:
        code, said, bundle = follow(place, pid, 0)
    assert (code, said) == (0, "")
    assert bundle is not None
    assert wrote(bundle) == {b"wrote%d" % OWN, b"wrote%d" % OTHER}
    assert {r["uid"] for r in bundle.tables["processes"].to_pylist()} == {OWN, OTHER}


def test_a_loader_for_one_group(place: Path) -> None:
    """Executable by its group only, as the documentation recommends."""
    os.chown(place / "rec", 0, 4711)
    os.setxattr(
        place / "rec", "security.capability", struct.pack("<5I", 0x02000001, 0, 0, CAPABILITIES, 0)
    )
    (place / "rec").chmod(0o750)
    for groups, code in (([4711], 0), ([], None)):
        try:
            done = subprocess.run(
                [place / "rec", "--check"],
                user=OWN,
                group=OWN,
                extra_groups=groups,
                cwd="/",
                capture_output=True,
                check=False,
                timeout=PATIENCE_S,
            )
        except PermissionError:
            assert code is None
        else:
            assert done.returncode == code


def test_the_command_has_its_whole_environment(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For a program with capabilities, the C library removes some variables."""
    monkeypatch.setattr("tracehint.collectors.ebpf.collector.LOADER", place / "rec")
    (place / "spool").mkdir()
    (place / "spool").chmod(0o777)
    names = {**os.environ, "LD_LIBRARY_PATH": "/nowhere", "TMPDIR": str(place), "EMPTY": ""}
    with environment_file(names) as more:
        words = (place / "rec", "-o", place / "spool", *more, "--", "env", "-0")
        done = subprocess.run(
            words, user=OWN, group=OWN, extra_groups=[], env=names, pass_fds=[int(more[1])],
            capture_output=True, check=True, cwd=place,
        )  # fmt: skip  # a table
    rows = done.stdout.decode().split("\0")[:-1]
    assert dict(row.split("=", 1) for row in rows) == names
