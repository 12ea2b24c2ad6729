"""Programs that the preload library cannot enter, followed from outside (--option follow=yes)."""

from __future__ import annotations

import contextlib
import itertools
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.support.built import GO_CACHE
from tests.support.cli import tracehint
from tests.support.patience import PATIENCE_S, until
from tracehint.collectors.preload import PreloadCollector
from tracehint.schemas.store import Bundle, read_bundle

_CHECK = PreloadCollector().check()
pytestmark = [pytest.mark.slow, pytest.mark.skipif(not _CHECK.usable, reason=_CHECK.reason)]

COPY = """
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
int main(int argc, char **argv)
{
	char buffer[1000];
	long n;
	int from = open("in", O_RDONLY), to = open("tmp.1", O_CREAT | O_WRONLY | O_TRUNC, 0666);

	while ((n = read(from, buffer, sizeof(buffer))) > 0)
		if (write(to, buffer, n) != n)
			return 3;
	close(from);
	close(to);
	if (rename("tmp.1", "final") || rename("none", "nowhere") != -1 || mkdir("d", 0755))
		return 4;
	to = open("d/both", O_CREAT | O_EXCL | O_RDWR, 0600);
	if (write(to, "abc", 3) != 3 || close(to) || unlink("d/both"))
		return 5;
	if (!fork()) {
		to = open("child", O_CREAT | O_WRONLY, 0666);
		_exit(write(to, "12345", 5) != 5);
	}
	wait(0);
	if (argc > 1)
		execv(argv[1], argv + 1);
	return 7;
}
"""
MANY = """
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>
int main(void)
{
	char name[32];

	for (int i = 0; i < 3000; i++) {
		snprintf(name, sizeof(name), "f%d", i % 10);
		int fd = open(name, O_CREAT | O_WRONLY | O_TRUNC, 0666);

		if (fd < 0 || write(fd, name, 2) != 2 || close(fd))
			return 1;
		usleep(300);
	}
	return 0;
}
"""
MAKES = """
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>
int main(void)
{
	char name[32];
	struct stat go;

	while (stat("go", &go))
		usleep(1000);
	int first = dup(0);

	close(first);
	for (int i = 0; i < 12; i++) {
		snprintf(name, sizeof(name), "f%d", i);
		int fd = open(name, O_CREAT | O_EXCL | O_WRONLY, 0600);

		if (fd < 0 || fd != first || write(fd, name, 2) != 2 || close(fd))
			return 1;
	}
	return 0;
}
"""
GO = """
package main

import "os"

func main() {
	data, _ := os.ReadFile("in")
	for i := 0; i < 3; i++ {
		os.WriteFile("out", data, 0o644)
	}
	os.Rename("out", "renamed")
}
"""


def static(folder: Path, text: str) -> Path:
    """A static C program."""
    source = folder / "program.c"
    source.write_text(text)
    program = folder / "program"
    done = subprocess.run(
        ["gcc", "-O1", "-static", source, "-o", program], capture_output=True, check=False
    )
    if done.returncode:
        pytest.skip("static programs cannot be linked here")
    return program


def followed(folder: Path, *command: str | Path, status: int = 0) -> Bundle:
    """A recording of the command, run in `folder`."""
    done = tracehint(
        "record", "--quiet", "--collector", "preload", "--option", "follow=yes", "-o", "run.trace",
        "--", *command, cwd=folder,
    )  # fmt: skip  # a table
    assert done.returncode == status, done.stderr
    return read_bundle(folder / "run.trace")


def opens(bundle: Bundle, folder: Path) -> list[tuple[str, int, int, bool]]:
    """Name, bytes read and written, and whether it was created, of the opens in the folder."""
    return sorted(
        (
            row["path"].removeprefix(bytes(folder) + b"/").decode(),
            row["read_bytes"], row["write_bytes"], row["created"],
        )
        for row in bundle.tables["opens"].to_pylist()
        if row["path"].startswith(bytes(folder) + b"/")
    )  # fmt: skip  # a table


EXPECTED = [
    ("child", 0, 5, True), ("d/both", 0, 3, True), ("in", 50000, 0, False),
    ("tmp.1", 0, 50000, True),
]  # fmt: skip  # a table


def test_a_static_program_has_its_opens_names_and_children(tmp_path: Path) -> None:
    (tmp_path / "in").write_bytes(bytes(50000))
    bundle = followed(tmp_path, static(tmp_path, COPY), status=7)
    assert opens(bundle, tmp_path) == EXPECTED
    losses = [(r["kind"], r["detail"]) for r in bundle.tables["losses"].to_pylist()]
    assert losses == [("unentered_programs", "static, followed")]
    changes = [
        (row["op"], Path(os.fsdecode(row["path"])).name, row["new_path"])
        for row in bundle.tables["names"].to_pylist()
        if row["op"] not in ("open", "create")
    ]
    assert changes == [
        ("rename", "tmp.1", bytes(tmp_path / "final")),
        ("mkdir", "d", None),
        ("unlink", "both", None),
    ]
    gone = {
        row["path"] for row in bundle.tables["names"].to_pylist() if row["path"].endswith(b"both")
    }
    assert gone == {bytes(tmp_path / "d" / "both")}
    ends = [row["exit_code"] for row in bundle.tables["processes"].to_pylist()]
    assert 7 in ends


def test_from_static_to_dynamic_and_back(tmp_path: Path) -> None:
    (tmp_path / "in").write_bytes(bytes(50000))
    program = static(tmp_path, COPY)
    script = "cat in > by_cat; rm -r d; ./program; exit 9"
    bundle = followed(tmp_path, program, "/bin/sh", "-c", script, status=9)
    found = opens(bundle, tmp_path)
    for row in EXPECTED:
        times = 3 if row[0] == "in" else 2  # and by cat
        assert len([r for r in found if r[:3] == row[:3]]) == times, (row, found)
    assert [r for r in found if r[0] == "by_cat" and r[2]] == [("by_cat", 0, 50000, False)]


@pytest.mark.skipif(shutil.which("go") is None, reason="Go is not installed")
@pytest.mark.slow
def test_a_go_program(tmp_path: Path) -> None:
    (tmp_path / "in").write_bytes(bytes(3000))
    (tmp_path / "main.go").write_text(GO)
    env = {**os.environ, "GOCACHE": str(GO_CACHE), "GO111MODULE": "off"}
    subprocess.run(["go", "build", "-o", "program", "main.go"], cwd=tmp_path, env=env, check=True)
    found = opens(followed(tmp_path, "./program"), tmp_path)
    assert [r for r in found if r[0] == "in"] == [("in", 3000, 0, False)]
    assert [r[1:3] for r in found if r[0] == "out"] == [(0, 3000)] * 3


def helpers(folder: Path) -> list[int]:
    """The two processes in this folder that hold the other end of a filter, first the one that
    takes calls, the child of the one that waits; none before both are there."""
    found: dict[int, int] = {}  # process -> its parent
    for place in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if (place / "cwd").readlink() != folder:
                continue
            links = [str(link.readlink()) for link in (place / "fd").iterdir()]
            if any("seccomp" in link for link in links):
                stat = (place / "stat").read_text()
                found[int(place.name)] = int(stat.rpartition(")")[2].split()[1])
    return next(([pid, parent] for pid, parent in found.items() if parent in found), [])


def runs(program: Path) -> bool:
    """Whether a process has begun to be the program."""
    for place in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if (place / "exe").readlink() == program:
                return True
    return False


@pytest.mark.slow
def test_who_follows_may_be_killed_at_any_moment(tmp_path: Path) -> None:
    """One of the two at a time: the program goes on, and what it opens is noted all the same."""
    program = static(tmp_path, MANY)
    command = [
        sys.executable, "-m", "tracehint", "record", "--quiet", "--collector", "preload",
        "--option", "follow=yes", "-o", "run.trace", "--", program,
    ]  # fmt: skip  # a table
    killed = 0
    with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE) as recorder:
        while recorder.poll() is None:
            both = helpers(tmp_path)
            if both and killed < 10:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(random.choice(both), signal.SIGKILL)
                    killed += 1
            time.sleep(random.random() * 0.1)
        assert recorder.returncode == 0, recorder.stderr and recorder.stderr.read()
    assert killed
    found = [r for r in opens(read_bundle(tmp_path / "run.trace"), tmp_path) if r[0][0] == "f"]
    assert 3000 - killed <= len(found) <= 3000
    assert {r[2] for r in found} == {2}


@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")
@pytest.mark.parametrize("call", ["ioctl", "close", "statx"])
@pytest.mark.parametrize(
    "at", [pytest.param(n, marks=[pytest.mark.full] * (n % 2)) for n in range(2, 10)]
)
def test_who_is_killed_while_it_makes_a_file_leaves_none_and_no_descriptor(
    tmp_path: Path, call: str, at: int
) -> None:
    """As soon as it is made, before it is handed over, after that, and before the answer: O_EXCL
    finds nothing in its way, and each open of the program has the number that it has alone."""
    command = [
        sys.executable, "-m", "tracehint", "record", "--quiet", "--collector", "preload",
        "--option", "follow=yes", "-o", "run.trace", "--", static(tmp_path, MAKES),
    ]  # fmt: skip  # a table
    with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE) as recorder:
        until(lambda: runs(tmp_path / "program"), "the program")
        killer = subprocess.Popen(
            [
                "strace", "-o", "/dev/null", "-e", f"inject={call}:signal=KILL:when={at}",
                "-p", str(helpers(tmp_path)[0]),
            ],
            cwd=tmp_path, stderr=subprocess.PIPE,
        )  # fmt: skip  # a table
        with killer:
            assert killer.stderr and b"attached" in killer.stderr.readline()
            (tmp_path / "go").touch()
            said = recorder.communicate(timeout=PATIENCE_S)[1]
            killer.terminate()
    assert recorder.returncode == 0, said
    found = opens(read_bundle(tmp_path / "run.trace"), tmp_path)
    noted = {r[:3] for r in found if r[0][0] == "f"}
    missing = {(f"f{n}", 0, 2) for n in range(12)} - noted
    assert len(noted) == 12 - len(missing)
    assert len(missing) <= (call == "statx")  # killed while it looked at what is to be closed


@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")
def test_who_is_killed_before_it_follows_leaves_nobody_waiting(tmp_path: Path) -> None:
    """Between the filter and the first call: the program cannot begin, and its shell goes on."""
    program = static(tmp_path, COPY)
    script = f"./{program.name}; echo $? > status"
    done = subprocess.run(
        [
            "strace", "-f", "--seccomp-bpf", "-qq", "-o", "/dev/null", "-e", "trace=unshare",
            "-e", "inject=unshare:signal=KILL:when=1",
            sys.executable, "-m", "tracehint", "record", "--quiet", "--collector", "preload",
            "--option", "follow=yes", "-o", "run.trace", "--", "sh", "-c", script,
        ],
        cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=(tmp_path / "said").open("w"),
        check=False, timeout=PATIENCE_S,
    )  # fmt: skip  # a table
    assert done.returncode == 0, (tmp_path / "said").read_text()
    assert int((tmp_path / "status").read_text()) in (126, 127)
    assert [r[:3] for r in opens(read_bundle(tmp_path / "run.trace"), tmp_path)]


@pytest.mark.parametrize("turn", range(8))
def test_both_who_follow_may_be_killed_at_one_moment(tmp_path: Path, turn: int) -> None:
    """The command ends, by errors of its own; what it did before is there, and what is missing is
    said. The more turns, the later they are killed."""
    program = static(tmp_path, MANY.replace("i < 3000", "i < 3000000"))  # until it fails
    script = f"echo before > earlier; ./{program.name}; echo $? > status; cat earlier > later"
    command = [
        sys.executable, "-m", "tracehint", "record", "--quiet", "--collector", "preload",
        "--option", "follow=yes", "-o", "run.trace", "--", "sh", "-c", script,
    ]  # fmt: skip  # a table
    killed = False
    with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE) as recorder:
        while recorder.poll() is None and not killed:
            found = helpers(tmp_path)
            if found and (tmp_path / f"f{turn}").exists():
                time.sleep(random.random() * 0.05 * turn)
                # stopped, they cannot take the place of each other between two kills
                for number, pid in itertools.product((signal.SIGSTOP, signal.SIGKILL), found):
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, number)
                killed = True
        said = recorder.communicate(timeout=PATIENCE_S)[1]
    assert killed, said
    assert recorder.returncode == 0, said
    bundle = read_bundle(tmp_path / "run.trace")
    done = [row[:3] for row in opens(bundle, tmp_path)]
    assert ("earlier", 0, 7) in done and ("later", 0, 7) in done
    assert (f"f{turn}", 0, 2) in done or not turn
    assert int((tmp_path / "status").read_text())
    lost = [(r["kind"], r["detail"]) for r in bundle.tables["losses"].to_pylist()]
    until_then = "static, followed until those who followed it were killed"
    assert ("unentered_programs", until_then) in lost


def test_where_filters_are_not_allowed_the_program_runs_as_ever(tmp_path: Path) -> None:
    denied = """
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
int main(int argc, char **argv)
{
	struct sock_filter rules[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_seccomp, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog filter = {4, rules};

	if (argc < 2 || syscall(SYS_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return 76;
	if (syscall(SYS_prctl, PR_SET_SECCOMP, 2, &filter))
		return 77;
	execv(argv[1], argv + 1);
	return 78;
}
"""
    launcher = static(tmp_path, denied).rename(tmp_path / "launcher")
    program = static(tmp_path, COPY)
    (tmp_path / "in").write_bytes(bytes(100))
    environ = {**os.environ, "TRACEHINT_FOLLOW": "1"}
    done = subprocess.run(
        [launcher, sys.executable, "-m", "tracehint", "record", "--quiet", "--collector", "preload",
         "--option", "follow=yes", "-o", "run.trace", "--", program],
        cwd=tmp_path, env=environ, capture_output=True, check=False, timeout=PATIENCE_S,
    )  # fmt: skip  # a table
    assert done.returncode == 7, done.stderr
    losses = read_bundle(tmp_path / "run.trace").tables["losses"].to_pylist()
    assert [(r["kind"], r["detail"]) for r in losses] == [("unentered_programs", "static")]
