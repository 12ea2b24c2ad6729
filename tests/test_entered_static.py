"""Static programs below the tagger: entered without a loader, with no visible difference."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.built import GO_CACHE
from tests.support.creation import Tagged
from tests.support.hints import hint_file, rule
from tests.support.preload import compiled

pytestmark = pytest.mark.slow

HINTS = hint_file(rule("{name}.txt", DP="local"))
LOCAL = {"user.DP": b"local"}
WRITES = r"""
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
static void *thread(void *name)
{
	FILE *f = fopen(name, "w");

	fputs("1", f);
	return (void *)(long)fclose(f);
}
static void handler(int s)
{
	char big[60000];

	memset(big, s, sizeof(big));
	close(open("signal.txt", O_CREAT | O_WRONLY, 0600));
}
int main(int argc, char **argv)
{
	char exe[4096] = "";
	pthread_t one;
	FILE *f = fopen("stdio.txt", "w");

	printf("%s %ld\n", argv[0], (long)readlink("/proc/self/exe", exe, 3));
	memset(exe, 0, sizeof(exe));
	readlink("/proc/self/exe", exe, sizeof(exe) - 1);
	printf("%s\n", exe);
	fputs("1", f);
	fclose(f);
	signal(SIGUSR1, handler);
	raise(SIGUSR1);
	pthread_create(&one, NULL, thread, "thread.txt");
	pthread_join(one, NULL);
	if (!fork()) {
		thread("fork.txt");
		_exit(0);
	}
	wait(NULL);
	printf("%d %d\n", open("no/where.txt", O_CREAT | O_WRONLY, 0600), errno);
	fflush(stdout);
	if (argc > 1)
		execvp(argv[1], argv + 1);
	return argc > 1 ? 9 : 5;
}
"""
NINE = "int main(void) { return 9; }\n"
MADE = {"stdio.txt", "signal.txt", "thread.txt", "fork.txt"}
GO = """
package main

import (
	"fmt"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"
)

func main() {
	name, _ := os.Executable()
	fmt.Println(name)
	var all sync.WaitGroup
	syscall.Mkfifo("pipe", 0o600)
	for i := 0; i < 100; i++ { // each is within our call until there is a reader
		all.Add(1)
		go func() {
			defer all.Done()
			fd, _ := syscall.Open("pipe", syscall.O_WRONLY, 0)
			syscall.Close(fd)
		}()
	}
	time.Sleep(200 * time.Millisecond)
	os.WriteFile("while.txt", []byte("1"), 0o644)
	pipe, _ := syscall.Open("pipe", syscall.O_RDONLY, 0)
	all.Wait()
	syscall.Close(pipe)
	os.Remove("pipe")
	for i := 0; i < 150; i++ {
		all.Add(1)
		go func(i int) {
			defer all.Done()
			os.WriteFile(fmt.Sprintf("g%d.txt", i), make([]byte, 70000), 0o644)
		}(i)
	}
	all.Wait()
	for i := 0; i < 270; i++ { // more than there are stacks
		if exec.Command("true").Run() != nil {
			os.Exit(3)
		}
	}
	os.WriteFile("last.txt", []byte("1"), 0o644)
	out, err := exec.Command("sh", "-c", "echo 1 >child.txt; echo ok").CombinedOutput()
	fmt.Println(string(out), err)
	os.Exit(4)
}
"""


@pytest.fixture
def tagged(library: Path, tmp_path: Path) -> Tagged:
    """The tagger, which runs commands in an empty folder."""
    return Tagged(library, tmp_path, HINTS)


def plain(tagged: Tagged, *command: str | Path) -> tuple[str, int]:
    """Return output and status without the library; remove the files that were created."""
    done = subprocess.run(command, cwd=tagged.root, capture_output=True)
    for path in tagged.root.iterdir():
        path.unlink()
    return (done.stdout + done.stderr).decode(), done.returncode


def programs(tagged: Tagged) -> list[str]:
    """Return the names of the copied programs."""
    return sorted(path.name for path in tagged.folder.glob("table.programs/*/*"))


@pytest.mark.parametrize("kind", ["-static", "-static-pie"])
def test_a_static_program_is_hinted_and_as_ever(tagged: Tagged, kind: str) -> None:
    program = compiled(tagged.folder, "program", WRITES, kind)
    output, status = plain(tagged, "sh", "-c", f"{shlex.quote(str(program))}; exit $?")
    assert str(program) in output and status == 5
    assert tagged.run("sh", "-c", f"{shlex.quote(str(program))}; exit $?", status=5) == output
    assert {p.name for p in tagged.root.iterdir() if tagged.hints(p.name) == LOCAL} == MADE
    assert programs(tagged) == ["program"]


def test_from_static_to_static_and_dynamic(tagged: Tagged) -> None:
    program = compiled(tagged.folder, "program", WRITES, "-static")
    other = compiled(tagged.folder, "other", WRITES, "-static-pie")
    tagged.run("env", "-i", program, other, "/bin/sh", "-c", "echo 1 >last.txt")
    assert {p.name for p in tagged.root.iterdir() if tagged.hints(p.name) == LOCAL} == {
        *MADE,
        "last.txt",
    }
    assert programs(tagged) == ["other", "program"]


@pytest.mark.skipif(shutil.which("go") is None, reason="Go is not installed")
def test_a_go_program(tagged: Tagged) -> None:
    (tagged.folder / "main.go").write_text(GO)
    more = {"GOCACHE": str(GO_CACHE), "GO111MODULE": "off", "CGO_ENABLED": "0"}
    subprocess.run(
        ["go", "build", "-o", "program", "main.go"], cwd=tagged.folder, check=True,
        env={**os.environ, **more},
    )  # fmt: skip  # a table
    program = tagged.folder / "program"
    output, status = plain(tagged, "sh", "-c", f"{shlex.quote(str(program))}; exit $?")
    assert str(program) in output and status == 4
    assert tagged.run("sh", "-c", f"{shlex.quote(str(program))}; exit $?", status=4) == output
    made = {path.name for path in tagged.root.iterdir()}
    assert len(made) == 153
    assert {name for name in made if tagged.hints(name) != LOCAL} == set()


@pytest.mark.skipif(shutil.which("busybox") is None, reason="busybox is not installed")
def test_busybox_and_its_applets(tagged: Tagged) -> None:
    script = "echo 1 >a.txt; cp a.txt b.txt; busybox cp a.txt c.txt"
    tagged.run("sh", "-c", f"busybox sh -c '{script}'")
    names = {path.name for path in tagged.root.iterdir()}
    assert names == {"a.txt", "b.txt", "c.txt"}
    assert {name for name in names if tagged.hints(name) != LOCAL} == set()


def test_what_is_in_the_way_leaves_the_program_alone(tagged: Tagged) -> None:
    """No folder for copies, the loader itself, a script, a file that is not executable."""
    program = compiled(tagged.folder, "program", WRITES, "-static")
    output, _ = plain(tagged, "sh", "-c", f"{shlex.quote(str(program))}; exit $?")
    place = tagged.folder / "table.programs"
    place.write_text("")  # not a directory
    assert tagged.run("sh", "-c", f"{shlex.quote(str(program))}; exit $?", status=5) == output
    place.unlink()
    place.mkdir()
    loader = next(Path("/lib64").glob("ld-linux-x86-64.so.2"))
    tagged.run("sh", "-c", f"{loader} /bin/sh -c 'echo 1 >by_loader.txt'")
    assert tagged.hints("by_loader.txt") == LOCAL
    script = tagged.folder / "script"
    script.write_text(f"#!{compiled(tagged.folder, 'nine', NINE, '-static')}\n")
    script.chmod(0o755)
    tagged.run("sh", "-c", f"{script}; exit $?", status=9)
    (tagged.folder / "data").write_bytes(program.read_bytes())
    tagged.run("sh", "-c", f"{shlex.quote(str(tagged.folder))}/data", status=126)  # not executable
    assert programs(tagged) == []


CANCELLED = r"""
#include <cstdio>
#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>
static int destroyed;
struct Counted {
	~Counted() { destroyed++; }
};
static void *opens(void *)
{
	Counted counted;

	return (void *)(long)open("fifo", O_RDONLY);
}
static void *makes(void *)
{
	return (void *)(long)close(open("made.txt", O_CREAT | O_WRONLY, 0600));
}
int main()
{
	pthread_t thread;
	void *result;

	mkfifo("fifo", 0600);
	pthread_create(&thread, nullptr, makes, nullptr);
	pthread_join(thread, nullptr);
	pthread_create(&thread, nullptr, opens, nullptr);
	usleep(100000);
	pthread_cancel(thread);
	pthread_join(thread, &result);
	std::printf("%d %d\n", result == PTHREAD_CANCELED, destroyed);
}
"""


def test_a_cancelled_thread_is_unwound(tagged: Tagged) -> None:
    """Needs glibc 2.41 or later: older unwinders do not find the tagger's frames."""
    version = str(os.confstr("CS_GNU_LIBC_VERSION")).rpartition(".")[2]
    if int(version) < 41:
        pytest.skip("as tests/test_preload_libc.py runs it")
    (tagged.folder / "cancelled.cc").write_text(CANCELLED)
    words = ["g++", "-O1", "-static", "-pthread", "cancelled.cc", "-o", "cancelled"]
    subprocess.run(words, cwd=tagged.folder, check=True)
    program = shlex.quote(str(tagged.folder / "cancelled"))
    assert tagged.run("sh", "-c", f"{program}; exit $?") == "1 1\n"
    assert tagged.hints("made.txt") == LOCAL
