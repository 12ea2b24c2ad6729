"""Real programs under strace: bytes, ranges and processes are compared with known values."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.cli import record, tracehint
from tests.support.hostile import HOSTILE_NAMES, make_files
from tracehint.collectors.strace import StraceCollector
from tracehint.schemas.store import Bundle, read_bundle

_CHECK = StraceCollector().check()
pytestmark = [pytest.mark.slow, pytest.mark.skipif(not _CHECK.usable, reason=_CHECK.reason)]

# Prime counts and sizes, so that a wrong number cannot match by chance.
SCRIPT = r"""
import array, mmap, os, socket, sys, threading
fd = os.open("py.bin", os.O_RDWR | os.O_CREAT)
for i in range(7):
    os.write(fd, b"x" * 1009)
for i in range(11):
    os.pread(fd, 13, i * 101)
os.pwrite(fd, b"y" * 17, 8009)
os.preadv(fd, [bytearray(19), bytearray(23)], 5)
os.lseek(fd, 3, 0)
out = os.open("copy.bin", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
os.copy_file_range(fd, out, 503, 100, 0)
os.sendfile(out, fd, 0, 509)
a, b = socket.socketpair()
socket.send_fds(a, [b"m"], [fd])
_, (passed,), _, _ = socket.recv_fds(b, 10, 4)
os.read(passed, 29)
thread = threading.Thread(target=lambda: os.pread(fd, 31, 7001))
thread.start(); thread.join()
with mmap.mmap(fd, 0) as m:
    m[0]
os.ftruncate(out, 41)
tmp = os.open("tmp", os.O_RDWR | os.O_CREAT | os.O_EXCL)
os.write(tmp, b"t" * 43)
os.rename("tmp", "final")
os.link("final", "second")
os.unlink("second")
os.unlink("final")
"""

WORKFLOW = r"""
head -c 100003 /dev/zero > in
dd if=in of=part bs=997 count=13 skip=3 conv=notrunc 2>/dev/null
cp in copy
cat in copy | wc -c > count
(exec 3< in; head -c 10 <&3; cat <&3) > sub
echo one >> log; echo two >> log
mkdir d && mv part d/part && mv d e && cat e/part > /dev/null
"$PYTHON" script.py
exit 7
"""


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> tuple[Bundle, Path]:
    folder = tmp_path_factory.mktemp("live")
    (folder / "script.py").write_text(SCRIPT)
    (folder / "wf.sh").write_text(WORKFLOW)
    done = record(
        "sh",
        "wf.sh",
        collector="strace",
        options="",
        cwd=folder,
        env={"PYTHON": sys.executable, "TRACEHINT_TASK": ""},
    )
    assert done.returncode == 7, done.stderr
    assert "5 to 20 times slower" in done.stderr
    assert "strace-light" in done.stderr
    return read_bundle(folder / "run.trace"), folder


def extents(recorded: tuple[Bundle, Path], name: str, **match: Any) -> list[dict[str, Any]]:
    bundle, folder = recorded
    path = os.fsencode(folder / name)
    names = bundle.tables["names"].to_pylist()
    ids = {r["file"] for r in names if path in (r["path"], r["new_path"])}
    found = [r for r in bundle.tables["extents"].to_pylist() if r["file"] in ids]
    return [r for r in found if all(r[k] == v for k, v in match.items())]


def program_of(recorded: tuple[Bundle, Path], proc: int) -> bytes:
    rows = {r["proc"]: r for r in recorded[0].tables["processes"].to_pylist()}
    argv = rows[proc]["argv"]
    return bytes(argv[0].rpartition(b"/")[2]) if argv else b""


def ranges(rows: list[dict[str, Any]]) -> list[tuple[int, int, int]]:
    return [(r["start"], r["length"], r["count"]) for r in rows]


def test_complete_and_without_losses(recorded: tuple[Bundle, Path]) -> None:
    bundle, folder = recorded
    assert bundle.manifest.complete
    assert bundle.manifest.exit_status == 7
    assert bundle.manifest.collector == "strace"
    assert bundle.tables["losses"].num_rows == 0
    assert not bundle.problems
    assert not (folder / "run.trace" / "raw").exists()
    assert (folder / "run.trace").stat().st_mode & 0o777 == 0o700


def test_sequential_write_by_head(recorded: tuple[Bundle, Path]) -> None:
    rows = extents(recorded, "in", op="write")
    assert ranges(rows) == [(0, 100003, 1)]
    assert program_of(recorded, rows[0]["proc"]) == b"head"


def test_dd_reads_its_blocks(recorded: tuple[Bundle, Path]) -> None:
    rows = [
        r for r in extents(recorded, "in", op="read") if program_of(recorded, r["proc"]) == b"dd"
    ]
    assert ranges(rows) == [(3 * 997, 13 * 997, 1)]
    assert rows[0]["ops"] == 13
    written = extents(recorded, "part", op="write")
    assert ranges(written) == [(0, 13 * 997, 1)]


def test_cp_is_seen_whatever_call_it_uses(recorded: tuple[Bundle, Path]) -> None:
    rows = extents(recorded, "copy", op="write")
    assert sum(r["bytes"] for r in rows) == 100003
    assert {program_of(recorded, r["proc"]) for r in rows} == {b"cp"}


def test_shared_offset_of_a_subshell(recorded: tuple[Bundle, Path]) -> None:
    rows = extents(recorded, "sub", op="write")
    assert sum(r["bytes"] for r in rows) == 100003
    # head may read more than 10 bytes and seek back; cat continues at the shared offset
    cat = [r for r in rows if program_of(recorded, r["proc"]) == b"cat"]
    assert ranges(cat) == [(10, 99993, 1)]


def test_appends_of_the_shell(recorded: tuple[Bundle, Path]) -> None:
    assert ranges(extents(recorded, "log", op="write")) == [(0, 4, 1), (4, 4, 1)]


def test_file_keeps_its_identity_through_renames(recorded: tuple[Bundle, Path]) -> None:
    rows = extents(recorded, "e/part") or extents(recorded, "d/part")
    readers = {program_of(recorded, r["proc"]) for r in rows if r["op"] == "read"}
    assert readers == {b"cat"}
    assert sum(r["bytes"] for r in rows if r["op"] == "read") == 13 * 997


def test_pipe_counts_on_both_sides(recorded: tuple[Bundle, Path]) -> None:
    opens = recorded[0].tables["opens"].to_pylist()
    piped = [r for r in opens if r["via"] == "pipe" and r["read_bytes"] + r["write_bytes"]]
    totals: dict[bytes, list[int]] = {}
    for row in piped:
        total = totals.setdefault(program_of(recorded, row["proc"]), [0, 0])
        total[0] += row["read_bytes"]
        total[1] += row["write_bytes"]
    assert totals[b"wc"][0] == totals[b"cat"][1] == 200006


def test_python_reads_and_writes(recorded: tuple[Bundle, Path]) -> None:
    writes = extents(recorded, "py.bin", op="write", how="write")
    assert ranges(writes) == [(0, 7 * 1009, 1), (8009, 17, 1)]
    assert [r["ops"] for r in writes] == [7, 1]
    reads = sorted(ranges(extents(recorded, "py.bin", op="read", how="read")))
    # sendfile and copy_file_range use separate offsets; read(passed) begins at 3
    assert reads == sorted([(0, 13, 11), (5, 42, 1), (3, 29, 1), (7001, 31, 1)])
    strided = next(r for r in extents(recorded, "py.bin") if r["count"] == 11)
    assert strided["stride"] == 101


def test_python_copies_mapping_truncation(recorded: tuple[Bundle, Path]) -> None:
    source = extents(recorded, "py.bin", op="read")
    by_how = {r["how"]: (r["start"], r["length"]) for r in source}
    assert by_how["copy_file_range"] == (100, 503)
    assert by_how["sendfile"] == (0, 509)
    assert by_how["mmap"] == (0, 8026)
    assert [r["exact"] for r in source if r["how"] == "mmap"] == [False]
    target = sorted(extents(recorded, "copy.bin"), key=lambda r: (r["first_ns"], r["how"]))
    assert [(r["op"], r["how"], r["start"], r["length"]) for r in target] == [
        ("write", "copy_file_range", 0, 503),  # to an explicit offset
        ("write", "sendfile", 0, 509),
        ("truncate", "truncate", 41, 0),
    ]


def test_created_deleted_and_sizes(recorded: tuple[Bundle, Path]) -> None:
    bundle, folder = recorded
    names = bundle.tables["names"].to_pylist()
    files = {r["file"]: r for r in bundle.tables["files"].to_pylist()}

    def file(name: str, op: str) -> dict[str, Any]:
        path = os.fsencode(folder / name)
        return files[next(r["file"] for r in names if r["path"] == path and r["op"] == op)]

    assert file("tmp", "create")["deleted"]
    assert file("tmp", "create")["size_bytes"] == 43
    made = file("in", "create")
    assert (made["existed"], made["deleted"], made["size_bytes"]) == (False, False, 100003)
    info = (folder / "in").stat()
    assert (made["dev"], made["ino"]) == (info.st_dev, info.st_ino)
    script = file("script.py", "open")
    assert script["existed"] is True


def test_process_tree(recorded: tuple[Bundle, Path]) -> None:
    bundle, folder = recorded
    rows = bundle.tables["processes"].to_pylist()
    (root,) = [r for r in rows if r["parent"] is None]
    assert root["argv"] == [b"sh", b"wf.sh"]
    assert root["cwd"] == os.fsencode(folder)
    assert (root["exit_code"], root["prev"]) == (7, None)
    for row in rows:
        assert row["end_ns"] >= row["start_ns"] >= bundle.manifest.started_ns
    assert all(r["uid"] == os.getuid() for r in rows)


def test_hostile_names_are_exact(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    made = make_files(data, b"12345")
    assert len(made) == len(HOSTILE_NAMES)
    done = record(
        "find", "data", "-type", "f", "-exec", "cat", "{}", "+", collector="strace", cwd=tmp_path
    )
    assert (done.returncode, done.stderr) == (0, "")
    bundle = read_bundle(tmp_path / "run.trace")
    assert bundle.tables["losses"].num_rows == 0
    base = os.fsencode(data) + b"/"
    read = {
        r["path"]: r["read_bytes"]
        for r in bundle.tables["opens"].to_pylist()
        if r["path"].startswith(base)
    }
    assert read == {base + name: 5 for name in made}


def test_light_mode_has_opens_and_no_bytes(tmp_path: Path) -> None:
    done = record(
        "sh",
        "-c",
        "echo hello > a; cat a > b; mv b c",
        collector="strace-light",
        options="",
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    assert "no byte counts" in done.stderr
    bundle = read_bundle(tmp_path / "run.trace")
    assert bundle.manifest.collector == "strace-light"
    assert "bytes" in bundle.manifest.blind_to
    assert bundle.tables["extents"].num_rows == 0
    base = os.fsencode(tmp_path) + b"/"
    opened = [r for r in bundle.tables["opens"].to_pylist() if r["path"].startswith(base)]
    assert {(r["path"][len(base) :], r["flags"] & 3) for r in opened} == {
        (b"a", 1),
        (b"a", 0),
        (b"b", 1),
    }
    assert [r["new_path"] for r in bundle.tables["names"].to_pylist() if r["op"] == "rename"] == [
        base + b"c"
    ]


@pytest.mark.skipif(shutil.which("mount") is None or os.geteuid() != 0, reason="needs root")
def test_full_disk_does_not_reach_the_command(tmp_path: Path) -> None:
    import subprocess

    small = tmp_path / "small"
    small.mkdir()
    if subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=256k", "t", small], check=False
    ).returncode:
        pytest.skip("cannot mount a tmpfs here")
    try:
        work = "for i in $(seq 300); do cat x > /dev/null; done; echo fine >&2; exit 3"
        (tmp_path / "x").write_text("x")
        done = record("sh", "-c", work, collector="strace", to="small/run.trace", cwd=tmp_path)
        assert done.returncode == 3  # exit code of the command
        assert done.stdout == ""
        lines = done.stderr.splitlines()
        assert lines[0] == "fine"  # no output of strace among the command's messages
        assert any("every command reads it from there" in line for line in lines)
        # The part recorded until then is not lost.
        again = tracehint("import", "small/run.trace", "-o", "again.trace", cwd=tmp_path)
        assert again.returncode == 0, again.stderr
        bundle = read_bundle(tmp_path / "again.trace")
        assert bundle.tables["processes"].num_rows > 20
    finally:
        subprocess.run(["umount", small], check=False)


# A batch system signals every process of a job, including those of the recorder.
ALL_BUT_THE_RECORDER = """
for p in /proc/[0-9]*; do
    if tr '\\0' ' ' < $p/cmdline | grep -q -e "drain.py .*$PWD/run.trace" -e "strace.*$PPID"; then
        kill -TERM ${p#/proc/}; echo ${p#/proc/} >> signalled
    fi
done
sleep 0.2
echo later > after
kill -TERM $$
"""


def test_nothing_is_lost_when_all_processes_of_a_job_are_signalled(tmp_path: Path) -> None:
    done = record(
        "sh",
        "-c",
        ALL_BUT_THE_RECORDER,
        collector="strace",
        to=tmp_path / "run.trace",
        cwd=tmp_path,
    )
    assert (tmp_path / "signalled").read_text().split()
    assert done.returncode == -15, done.stderr
    bundle = read_bundle(tmp_path / "run.trace")
    assert bundle.manifest.exit_status == 128 + 15 and bundle.manifest.complete
    assert bundle.tables["losses"].num_rows == 0 and not bundle.manifest.notes
    opened = [r["path"] for r in bundle.tables["opens"].to_pylist() if r["flags"] & 3]
    assert os.fsencode(tmp_path / "after") in opened


def test_a_tracer_that_was_killed_is_told(tmp_path: Path) -> None:
    script = "echo a > k; kill -9 $(sed -n 's/^TracerPid:[^0-9]*//p' /proc/self/status); exit 3"
    record("sh", "-c", script, collector="strace", cwd=tmp_path)
    bundle = read_bundle(tmp_path / "run.trace")
    assert not bundle.manifest.complete
    assert [r["kind"] for r in bundle.tables["losses"].to_pylist()] == ["killed_recorder"]
