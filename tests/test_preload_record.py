"""The preload collector in difficult cases: killed processes, closed descriptors, threads, other
libraries, programs that cannot load it, damaged arenas."""

from __future__ import annotations

import os
import random
import re
import shlex
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.cli import process, record, tracehint
from tests.support.needs import needs_preload
from tests.support.patience import PATIENCE_S
from tests.support.preload import compiled
from tracehint.collectors.preload import PreloadCollector
from tracehint.collectors.preload.library import LIBRARY
from tracehint.errors import BundleError
from tracehint.schemas.store import Bundle, read_bundle

pytestmark = [pytest.mark.slow, needs_preload()]


def recorded(folder: Path, *command: str | Path, status: int = 0) -> Bundle:
    """Record the command, run in `folder`."""
    done = record(*command, collector="preload", cwd=folder)
    assert done.returncode == status, done.stderr
    bundle = read_bundle(folder / "run.trace")
    assert bundle.problems == []
    assert not (folder / "run.trace" / "spool").exists()
    return bundle


def totals(bundle: Bundle, name: str) -> tuple[int, int]:
    """Return the bytes read from and written to the files of this name."""
    rows = bundle.tables["opens"].to_pylist()
    mine = [row for row in rows if row["path"].endswith(b"/" + name.encode())]
    return sum(r["read_bytes"] for r in mine), sum(r["write_bytes"] for r in mine)


def test_a_process_without_descriptors_of_ours_goes_on(tmp_path: Path) -> None:
    code = """
import os
os.closerange(0, 4096)
fd = os.open("out", os.O_CREAT | os.O_WRONLY)
assert fd == 0, fd
os.write(fd, b"x" * 100)
for i in range(300):
    os.close(os.open("out", os.O_RDONLY))
"""
    bundle = recorded(tmp_path, sys.executable, "-c", code)
    assert totals(bundle, "out") == (0, 100)


def test_an_empty_environment_is_recorded(tmp_path: Path) -> None:
    (tmp_path / "in").write_bytes(bytes(5000))
    bundle = recorded(tmp_path, "env", "-i", "/bin/sh", "-c", "/bin/cat in > out")
    assert totals(bundle, "in")[0] == totals(bundle, "out")[1] == 5000


def test_threads_that_read_one_descriptor_at_their_own_places(tmp_path: Path) -> None:
    (tmp_path / "in").write_bytes(bytes(1 << 20))
    code = """
import os, threading
fd = os.open("in", os.O_RDONLY)
def work(i):
    for at in range(i << 17, (i + 1) << 17, 512):
        os.pread(fd, 512, at)
threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
[t.start() for t in threads]
[t.join() for t in threads]
"""
    bundle = recorded(tmp_path, sys.executable, "-c", code)
    opened = {r["open"] for r in bundle.tables["opens"].to_pylist() if r["path"].endswith(b"/in")}
    runs = [r for r in bundle.tables["extents"].to_pylist() if r["open"] in opened]
    assert sum(r["bytes"] for r in runs) == 1 << 20
    pieces = sorted(
        (r["start"] + i * r["stride"], r["length"]) for r in runs for i in range(r["count"])
    )
    ends = [0, *(start + length for start, length in pieces)]
    assert [start for start, _ in pieces] == ends[:-1]  # each byte once, without gaps
    assert ends[-1] == 1 << 20
    assert bundle.tables["losses"].num_rows == 0


def test_what_a_killed_process_did_is_kept(tmp_path: Path) -> None:
    code = """
import os, signal
fd = os.open("out", os.O_CREAT | os.O_WRONLY)
for i in range(1000):
    os.write(fd, bytes(1000))
os.kill(os.getpid(), signal.SIGKILL)
"""
    script = f'{sys.executable} -c "$CODE"; exit 3'
    os.environ["CODE"] = code
    try:
        bundle = recorded(tmp_path, "sh", "-c", script, status=3)
    finally:
        del os.environ["CODE"]
    assert totals(bundle, "out") == (0, 1_000_000)
    ends = [(r["exit_code"], r["exit_signal"]) for r in bundle.tables["processes"].to_pylist()]
    assert (None, signal.SIGKILL) in ends
    files = {r["size_bytes"] for r in bundle.tables["files"].to_pylist()}
    assert 1_000_000 in files


KILLED = """
import os, random, signal, sys, time
rng = random.Random(int(sys.argv[1]))
for i in range(int(sys.argv[2])):
    pid = os.fork()
    if not pid:
        fd = os.open(f"out{i}", os.O_CREAT | os.O_WRONLY)
        while True:
            os.write(fd, b"x" * 10)
    time.sleep(rng.random() * 0.01)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
"""


@pytest.mark.parametrize("tries", [40, pytest.param(200, marks=pytest.mark.full)])
def test_nothing_is_lost_of_processes_that_are_killed_at_any_moment(
    tmp_path: Path, tries: int
) -> None:
    """The size of each child's file shows how many bytes it wrote before its last write."""
    seed = str(random.randrange(1 << 30))
    bundle = recorded(tmp_path, sys.executable, "-c", KILLED, seed, str(tries))
    written = dict[bytes, int]()
    for row in bundle.tables["opens"].to_pylist():
        written[row["path"]] = written.get(row["path"], 0) + row["write_bytes"]
    for path in tmp_path.glob("out*"):
        # killed within the call (cut short at a page boundary), or before the library noted it
        assert 0 <= path.stat().st_size - written.get(bytes(path), 0) <= 10, path
    assert bundle.tables["losses"].num_rows == 0


REOPENED = """
import os, random, signal, sys, time
rng = random.Random(int(sys.argv[1]))
for i in range(int(sys.argv[2])):
    pid = os.fork()
    if not pid:
        while True:
            fd = os.open(f"again{i}", os.O_CREAT | os.O_WRONLY | os.O_APPEND)
            os.write(fd, b"x" * 10)
            os.write(fd, b"y" * 7)
            os.close(fd)
    time.sleep(0.005 + rng.random() * 0.01)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
"""


@pytest.mark.parametrize("tries", [20, pytest.param(200, marks=pytest.mark.full)])
def test_files_that_were_closed_are_kept_whole(tmp_path: Path, tries: int) -> None:
    """Their slots are reused: each file appears once, whether or not its process was killed."""
    bundle = recorded(
        tmp_path, sys.executable, "-c", REOPENED, str(random.randrange(1 << 30)), str(tries)
    )
    written = dict[bytes, int]()
    whole = dict[bytes, list[tuple[int, int]]]()
    rows = bundle.tables["opens"].to_pylist()
    for row in sorted(rows, key=lambda row: row["open_ns"]):
        written[row["path"]] = written.get(row["path"], 0) + row["write_bytes"]
        whole.setdefault(row["path"], []).append((row["write_ops"], row["write_bytes"]))
    for path in tmp_path.glob("again*"):
        assert set(whole.get(bytes(path), [])[:-1]) <= {(2, 17)}  # the last one was killed
        assert 0 <= path.stat().st_size - written.get(bytes(path), 0) <= 10, path
    opens = {row["open"]: row for row in bundle.tables["opens"].to_pylist()}
    runs = dict[int, int]()
    for row in bundle.tables["extents"].to_pylist():
        if row["op"] == "write":
            runs[row["open"]] = runs.get(row["open"], 0) + row["bytes"]
    assert runs == {i: row["write_bytes"] for i, row in opens.items() if row["write_bytes"]}
    assert bundle.tables["losses"].num_rows == 0


def test_a_process_has_little_memory_of_ours(tmp_path: Path) -> None:
    """Private dirty memory: at most 64 KiB more than without the library. Files of the recording
    are excluded: their neighbouring pages are mapped by chance. Sharing of clean pages depends
    on other processes."""
    sleep = shutil.which("sleep")
    assert sleep
    shutil.copy(sleep, tmp_path / "alone")  # clean pages of a program that others run are shared
    look = "cat /proc/$!/smaps"
    begun = "while ! grep -q alone /proc/$!/comm || ! grep -q '^State:.S' /proc/$!/status"
    script = f"./alone 900 & {begun}; do sleep 0.1; done; sleep 0.5; {look}; kill $!"
    plain = subprocess.run(
        ["sh", "-c", script], check=True, capture_output=True, text=True, cwd=tmp_path
    )
    (tmp_path / "run.sh").write_text(f"({script}) > said")
    recorded(tmp_path, "sh", "run.sh")
    own, more = (
        sum(
            int(size)  # KiB
            for mapping in re.split(r"\n(?=[0-9a-f]+-)", text)
            if "/spool/" not in mapping.partition("\n")[0]
            for size in re.findall(r"^Private_Dirty: +(\d+)", mapping, re.M)
        )
        for text in (plain.stdout, (tmp_path / "said").read_text())
    )
    assert 0 < more - own <= 64, (own, more)


def test_what_a_child_finds_zeroed_is_no_huge_page(tmp_path: Path) -> None:
    """If huge pages are the default, the first access to it would allocate 2 MiB."""
    recorded(tmp_path, "sh", "-c", "cat /proc/self/smaps > said")
    flags = [
        line.split()[1:]
        for line in (tmp_path / "said").read_text().splitlines()
        if line.startswith("VmFlags:")
    ]
    wiped = [words for words in flags if "wf" in words]
    assert wiped and all("nh" in words for words in wiped)


def test_one_name_for_several_files_in_turn(tmp_path: Path) -> None:
    """Each file keeps its own identity and size, though the name is written only once."""
    code = """
import os
for i in range(30):
    with open("new", "w") as stream:
        stream.write("x" * (i + 1))
    os.replace("new", "file")
    assert len(open("file").read()) == i + 1
"""
    bundle = recorded(tmp_path, sys.executable, "-c", code)
    rows = bundle.tables["opens"].to_pylist()
    read = [r for r in rows if r["path"] == bytes(tmp_path / "file")]
    assert [r["read_bytes"] for r in sorted(read, key=lambda r: r["open_ns"])] == [*range(1, 31)]
    made = [r for r in rows if r["path"] == bytes(tmp_path / "new")]
    assert len({r["file"] for r in made}) == 30
    assert {r["file"] for r in made} == {r["file"] for r in read}


def test_a_program_that_cannot_be_entered_is_named(tmp_path: Path) -> None:
    text = '#include <stdio.h>\nint main(void) { fclose(fopen("made", "w")); return 0; }\n'
    static = compiled(tmp_path, "static", text, "-static")
    bundle = recorded(tmp_path, "sh", "-c", f"{shlex.quote(str(static))} one two; cat made")
    losses = bundle.tables["losses"].to_pylist()
    assert [(r["kind"], r["count"], r["detail"]) for r in losses] == [
        ("unentered_programs", 1, "static")
    ]
    processes = bundle.tables["processes"].to_pylist()
    (row,) = [r for r in processes if r["proc"] == losses[0]["proc"]]
    assert row["argv"] == [bytes(static), b"one", b"two"]
    assert row["exe"] == bytes(static)
    assert row["exit_code"] == 0
    assert row["prev"] is not None
    assert "static_binaries" in bundle.manifest.blind_to


def test_a_command_that_cannot_be_entered_is_not_begun(tmp_path: Path) -> None:
    static = compiled(tmp_path, "static", "int main(void) { return 3; }\n", "-static")
    done = tracehint("record", "--collector", "preload", "--", static, cwd=tmp_path)
    assert done.returncode == 125
    assert "(static)" in done.stderr
    assert not list(tmp_path.glob("*.trace"))


def test_a_library_of_another_version_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    older = tmp_path / LIBRARY.name
    older.write_bytes(LIBRARY.read_bytes().replace(b"tracehint arena ", b"tracehint arena 0"))
    monkeypatch.setattr("tracehint.collectors.preload.collector.LIBRARY", older)
    found = PreloadCollector().check()
    assert found.reason == "libtracehint.so belongs to another version of tracehint"
    assert not found.usable and found.broken and "make tracer" in found.remedy


@pytest.mark.parametrize("command", ["profile", "record", "run"])
def test_the_first_command_on_a_machine_inherits_nothing(command: str, tmp_path: Path) -> None:
    """The one-time test of the C library loads the libraries that convert recordings."""
    env = {"XDG_CACHE_HOME": str(tmp_path / "cache")}
    inherited = {}
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        words = ("--collector", "preload", "--", "sh", "-c", "env > names")
        done = process(command, *words, cwd=tmp_path / name, env=env)
        assert done.returncode == 0, done.stderr
        lines = (tmp_path / name / "names").read_text().splitlines()
        inherited[name] = {line.partition("=")[0] for line in lines}
    assert inherited["first"] == inherited["second"]
    assert not {n for n in inherited["first"] if n.startswith(("OPENBLAS_", "MKL_", "OMP_"))}


def test_another_preloaded_library_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled(
        tmp_path,
        "other.so",
        """
#include <stdio.h>
#include <stdlib.h>
__attribute__((destructor)) static void end(void)
{
	FILE *said = fopen(getenv("WHERE"), "a");

	fputs("was here\\n", said);
	fclose(said);
}
""",
        "-shared",
        "-fPIC",
    )
    monkeypatch.setenv("LD_PRELOAD", "./other.so")  # the loader does not support quotes
    monkeypatch.setenv("WHERE", str(tmp_path / "said"))
    bundle = recorded(tmp_path, "sh", "-c", "echo x > out; /bin/true")
    assert totals(bundle, "out") == (0, 2)
    assert "was here" in (tmp_path / "said").read_text()


def test_a_child_that_makes_no_call_has_its_process(tmp_path: Path) -> None:
    program = compiled(
        tmp_path,
        "silent",
        """
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>
int main(void)
{
	int status;
	pid_t pid = fork();

	if (!pid)
		for (;;)
			;
	kill(pid, SIGTERM);
	waitpid(pid, &status, 0);
	return 0;
}
""",
    )
    bundle = recorded(tmp_path, program)
    ends = [(r["exit_code"], r["exit_signal"]) for r in bundle.tables["processes"].to_pylist()]
    assert sorted(ends, key=str) == [(0, None), (None, signal.SIGTERM)]


def test_a_full_disk_is_a_loss_and_no_signal(tmp_path: Path) -> None:
    if os.geteuid():
        pytest.skip("mounting needs root")
    (tmp_path / "small").mkdir()
    script = 'mount -t tmpfs -o size=5m none small && cd small && exec "$@"'
    command = [
        "unshare", "-m", "sh", "-c", script, "-", sys.executable, "-m", "tracehint", "record",
        "--collector", "preload", "-o", "run.trace", "--", sys.executable, "-c",
        "import os\nfor i in range(40000): os.close(os.open('/etc/hostname', os.O_RDONLY))",
    ]  # fmt: skip  # a table
    done = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=PATIENCE_S
    )
    if "Operation not permitted" in done.stderr:
        pytest.skip(done.stderr)
    assert done.returncode == 0, done.stderr
    assert "were not followed" in done.stderr or "could not be written" in done.stderr


@pytest.mark.parametrize("seed", range(30))
def test_damaged_arenas_are_refused_or_read_in_part(arena: Path, tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    root = tmp_path / "run.trace"
    shutil.copytree(arena, root)
    path = root / "spool" / "arena"
    data = bytearray(path.read_bytes())
    for _ in range(rng.randrange(1, 400)):
        data[rng.randrange(len(data) if rng.random() < 0.5 else 4096)] = rng.randrange(256)
    path.write_bytes(data[: rng.randrange(len(data))] if rng.random() < 0.3 else data)
    try:
        read_bundle(root)
    except BundleError as error:
        assert str(path.parent) in str(error) or "run.trace" in str(error)


@pytest.fixture(scope="module")
def arena(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bundle whose recorder was killed after the command, with the arena unconverted."""
    folder = tmp_path_factory.mktemp("arena")
    script = (
        "import tracehint.collectors.preload.record as r, os, sys\n"
        "r.PreparedBundle._convert = lambda *_: os._exit(0)\n"
        "from tracehint.__main__ import run\nsys.exit(run())\n"
    )
    subprocess.run(
        [
            sys.executable, "-c", script, "record", "--quiet", "--collector", "preload", "-o",
            "run.trace", "--", "sh", "-c", "echo hi > a; cat a > b; mv b c; ls -l > d",
        ],
        cwd=folder,
        check=True,
    )  # fmt: skip  # a table
    assert (
        totals(read_bundle(folder / "run.trace"), "c")[1]
        + totals(read_bundle(folder / "run.trace"), "b")[1]
        == 3
    )
    return folder / "run.trace"


def test_a_program_that_sandboxes_itself_goes_on_unrecorded(tmp_path: Path) -> None:
    """Its filter kills any caller of statx, which the library calls at each open."""
    program = compiled(
        tmp_path,
        "sandbox",
        """
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
int main(void)
{
	struct sock_filter rules[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_statx, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog filter = {4, rules};
	int status;

	close(open("before", O_CREAT | O_WRONLY, 0644));
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, 2, &filter))
		return 77;
	close(open("after", O_CREAT | O_WRONLY, 0644));
	if (!fork())
		_exit(close(open("child", O_CREAT | O_WRONLY, 0644)));
	wait(&status);
	return status;
}
""",
    )
    bundle = recorded(tmp_path, program)
    names = {row["path"].rpartition(b"/")[2] for row in bundle.tables["opens"].to_pylist()}
    assert b"before" in names
    assert not names & {b"after", b"child"}
    assert "credentials_exec" in {r["kind"] for r in bundle.tables["losses"].to_pylist()}


DENIED = """
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
int main(int argc, char **argv)
{
	struct sock_filter rules[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mprotect, 0, 3),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),
		BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, 4, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EACCES),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog filter = {6, rules};

	if (argc < 2 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return 76;
	if (prctl(PR_SET_SECCOMP, 2, &filter))
		return 77;
	execv(argv[1], argv + 1);
	return 78;
}
"""


def test_a_program_that_must_not_change_its_code_is_recorded(tmp_path: Path) -> None:
    """As under SELinux without execmod: code may be mapped from a file but not modified."""
    compiled(tmp_path, "denied", DENIED)
    (tmp_path / "in").write_bytes(bytes(5000))
    bundle = recorded(tmp_path, "sh", "-c", "./denied /bin/cp in out; ./denied /bin/cat in > two")
    assert totals(bundle, "in")[0] == 10000
    assert totals(bundle, "out") == totals(bundle, "two") == (0, 5000)


def test_code_that_was_changed_once_is_shared_by_all_programs(tmp_path: Path) -> None:
    bundle = recorded(tmp_path, "sh", "-c", "cat /proc/self/maps > maps; cat /proc/self/smaps > s")
    assert totals(bundle, "maps")[1] > 0
    texts = [line for line in (tmp_path / "maps").read_text().splitlines() if "r-xp" in line]
    assert len([line for line in texts if line.endswith("/spool/sites")]) >= 3
    assert not [line for line in texts if "libc.so.6" in line or "ld-linux" in line]
    sizes = (tmp_path / "s").read_text().split("/spool/sites")[1:]
    own = [int(size.split("Anonymous:")[1].split()[0]) for size in sizes]
    assert sum(own) == 0, own
