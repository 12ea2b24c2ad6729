"""The hook core of libtracehint.so is in every program, observes its calls, and changes nothing."""

from __future__ import annotations

import ctypes.util
import os
import platform
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.preload import OBSERVER, Event, Hooked, compiled, library_in

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        platform.machine() != "x86_64" or ctypes.util.find_library("c") != "libc.so.6",
        reason="x86-64 with glibc only",
    ),
]
STATIC, ASAN, UNREADABLE = 1, 5, 7  # enum th_class


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The core, linked with the tests' observer."""
    with library_in(tmp_path_factory.mktemp("preload"), OBSERVER) as built:
        yield built


@pytest.fixture
def hooked(library: Path, tmp_path: Path) -> Hooked:
    """Runs commands in a folder of the test."""
    return Hooked(library, tmp_path)


def created(events: list[Event]) -> list[str]:
    """Return the names reported at creation."""
    return [event.name for event in events if event.what == "created"]


def test_a_creating_open_is_told_once_and_only_for_a_new_or_emptied_file(hooked: Hooked) -> None:
    (hooked.folder / "full").write_text("x")
    events = hooked.run(
        "sh", "-c", "echo 1 > new; echo 2 >> new; echo 3 >> full; echo 4 > full; cat new > copy"
    )
    assert created(events) == ["new", "full", "copy"]


def test_programs_of_every_kind_of_start_are_entered(hooked: Hooked) -> None:
    code = """
import os, subprocess, threading
subprocess.run(["/usr/bin/env", "-i", "/bin/sh", "-c", "echo > by_env"], env={})
os.waitpid(os.posix_spawn("/bin/true", ["true"], {}, file_actions=[
    (os.POSIX_SPAWN_OPEN, 1, "by_spawn", os.O_CREAT | os.O_WRONLY, 0o644)]), 0)
pid = os.fork()
if not pid:
    open("by_child", "w").close()
    os._exit(0)
os.waitpid(pid, 0)
threading.Thread(target=lambda: open("by_thread", "w").close()).start()
os.system("echo > by_system")
os.execve("/bin/sh", ["sh", "-c", "echo > by_exec"], {})
"""
    events = hooked.run(sys.executable, "-c", code)
    names = ["by_env", "by_spawn", "by_child", "by_thread", "by_system", "by_exec"]
    assert sorted(created(events)) == sorted(names)
    shared = {event.name for event in events if event.shared and event.what == "created"}
    assert shared == {"by_spawn"}  # created by a child that shares its parent's memory


def test_a_name_given_to_a_nameless_file_is_a_creation(hooked: Hooked) -> None:
    program = compiled(
        hooked.folder,
        "tmpfile",
        """
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>
int main(void)
{
	int fd = open(".", O_TMPFILE | O_RDWR, 0644);
	char name[64];
	if (fd < 0)
		return 77;
	snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
	return linkat(AT_FDCWD, name, AT_FDCWD, "named", AT_SYMLINK_FOLLOW);
}
""",
    )
    events = hooked.run(program)
    assert created(events) == ["named"]


def test_each_read_and_write_of_a_program_is_seen(hooked: Hooked) -> None:
    (hooked.folder / "in").write_bytes(bytes(1000))
    events = hooked.run("dd", "if=in", "of=out", "bs=1")
    counts = {event.what: event.value for event in events if event.what in ("reads", "writes")}
    assert counts["writes"] >= 1000
    assert counts["reads"] >= 1001
    assert (hooked.folder / "out").read_bytes() == bytes(1000)


def test_an_environment_of_others_is_kept(hooked: Hooked) -> None:
    other = compiled(hooked.library.parent, "other.so", "int other;", "-shared", "-fPIC")
    env = hooked.environment(LD_PRELOAD=f"{other}:{hooked.library}")
    hooked.run("sh", "-c", "LD_PRELOAD=$OTHER env", env={**env, "OTHER": str(other)})
    values = dict(line.split("=", 1) for line in hooked.output.decode().splitlines())
    assert values["LD_PRELOAD"] == f"{other}:{hooked.library}"


def test_programs_that_refuse_the_library_run_without_it(hooked: Hooked) -> None:
    text = '#include <stdio.h>\nint main(void) { fclose(fopen("made", "w")); return 3; }\n'
    asan = compiled(hooked.folder, "asan", text, "-fsanitize=address")
    events = hooked.run("sh", "-c", f"{shlex.quote(str(asan))}; exit $?", status=3)
    assert hooked.output == b""
    assert [e.value for e in events if e.what == "executing"] == [ASAN]


def test_a_static_program_is_named_and_its_children_are_entered(hooked: Hooked) -> None:
    text = '#include <unistd.h>\nint main(void) { return execl("/bin/true", "true", (char *)0); }\n'
    static = compiled(hooked.folder, "static", text, "-static")
    events = hooked.run("sh", "-c", f"{shlex.quote(str(static))}; exit 0")
    assert [e.value for e in events if e.what == "executing"] == [STATIC]
    assert [e.name for e in events if e.what == "start"] == ["sh", "true"]


def test_a_failed_exec_fails_as_ever(hooked: Hooked) -> None:
    events = hooked.run("sh", "-c", "./nothing; exec env -i ./nothing", status=127)
    assert {e.value for e in events if e.what == "not_executed"} == {-2}


def test_memory_of_spawned_children_is_given_back(hooked: Hooked) -> None:
    code = """
import os
def size():
    return int(open("/proc/self/statm").read().split()[0])
def spawn(n):
    for _ in range(n):
        os.waitpid(os.posix_spawn("/bin/true", ["true"], {}), 0)
spawn(3)
before = size()
spawn(40)
assert size() - before < 20, (before, size())
"""
    hooked.run(sys.executable, "-c", code)


@pytest.mark.parametrize("shell", ["sh", "bash"])
def test_a_shell_behaves_as_without(hooked: Hooked, shell: str) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    script = (
        "for i in 1 2 3; do echo $i | tr 1-3 a-c; done | sort -r; (exit 5); echo $?; kill -TERM $$"
    )
    plain = subprocess.run([shell, "-c", script], capture_output=True, check=False)
    below = subprocess.run(
        [shell, "-c", script], capture_output=True, check=False, env=hooked.environment()
    )
    assert (below.returncode, below.stdout, below.stderr) == (
        plain.returncode, plain.stdout, plain.stderr,
    )  # fmt: skip  # a table
    assert plain.returncode == -15


def test_nothing_happens_without_an_observer(hooked: Hooked) -> None:
    env = {k: v for k, v in os.environ.items() if k != "TRACEHINT_TEST"}
    done = subprocess.run(
        ["cat", "/proc/self/maps"],
        env={**env, "LD_PRELOAD": str(hooked.library)},
        capture_output=True,
        check=True,
        text=True,
    )
    assert "libtracehint" in done.stdout
    texts = [line for line in done.stdout.splitlines() if "r-xp" in line]
    assert not [line for line in texts if line.endswith(" 0 ")]  # no trampolines


CANCELLED = """
#include <pthread.h>
#include <unistd.h>
static int ends[2];
static void clean(void *unused)
{
	(void)unused;
	if (write(1, "cleaned", 7) != 7)
		_exit(9);
}
static void *work(void *unused)
{
	char byte;

	pthread_cleanup_push(clean, NULL);
	if (read(ends[0], &byte, 1) != 1)
		_exit(8);
	pthread_cleanup_pop(0);
	return unused;
}
int main(void)
{
	pthread_t thread;
	void *result;

	if (pipe(ends) || pthread_create(&thread, NULL, work, NULL))
		return 2;
	usleep(100000);
	pthread_cancel(thread);
	pthread_join(thread, &result);
	return result == PTHREAD_CANCELED ? 0 : 1;
}
"""


def test_a_cancelled_thread_cleans_up(hooked: Hooked) -> None:
    """The C library unwinds the stack from within the call, through our frames to the handler."""
    program = compiled(hooked.folder, "cancel", CANCELLED, "-fexceptions", "-pthread")
    hooked.run(program)
    assert hooked.output == b"cleaned"
