"""The preload library with the C libraries of other releases: cancellable threads."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.reach.compare import moved
from tests.support.cli import TRACEHINT
from tests.support.ebpf import require_ebpf
from tests.support.libcs import RELEASES, changed_libc, with_libc
from tests.support.needs import needs_preload
from tests.support.preload import ROOT
from tracehint.collectors.preload import collector
from tracehint.schemas.store import Bundle, read_bundle

pytestmark = [pytest.mark.slow, pytest.mark.libc, needs_preload()]
PROGRAMS = ROOT / "tests" / "preload"
# Tests that must pass with each C library as with this machine's.
SAME = (
    "test_preload_coverage.py",
    "test_preload_sites.py",
    "test_record_both.py",
    "test_entered_static.py",
)


@pytest.fixture(params=RELEASES)
def words(request: pytest.FixtureRequest) -> list[str]:
    """The command prefix that runs a command with the C library of a release."""
    return with_libc(request.param)


def recorded(folder: Path, words: list[str], *command: str | Path) -> Bundle:
    """Record the command, which must succeed, with that C library."""
    start = [*words, sys.executable, "-m", "tracehint", "record", "--quiet", "--collector"]
    subprocess.run(
        [*start, "preload", "-o", folder / "run.trace", "--", *command], cwd=folder, check=True
    )
    return read_bundle(folder / "run.trace")


def read_bytes(bundle: Bundle, name: str) -> int:
    """Return the bytes read from the files of that name."""
    rows = bundle.tables["opens"].to_pylist()
    return sum(r["read_bytes"] for r in rows if r["path"].endswith(f"/{name}".encode()))


def compiled(folder: Path, compiler: str, source: Path, *flags: str) -> Path:
    """Compile the source and return the program."""
    program = folder / source.stem
    words = [compiler, "-O1", "-Wall", "-Wextra", "-Werror", "-pthread", *flags]
    subprocess.run([*words, source, "-o", program], check=True)
    return program


@pytest.fixture
def unsupported(tmp_path: Path) -> list[str]:
    """The prefix that runs a command with a C library with an unknown code form at one site."""
    return changed_libc("sid", tmp_path / "libc")


@pytest.mark.parametrize(
    "release", [pytest.param(n, marks=[pytest.mark.full] * (n != RELEASES[-1])) for n in RELEASES]
)
def test_the_tests_of_this_machines_c_library_pass(release: str, tmp_path: Path) -> None:
    words = [*with_libc(release), sys.executable, "-m", "pytest", "-q", "-n0"]
    options = ["-p", "no:cacheprovider", f"--basetemp={tmp_path / 'inner'}"]
    done = subprocess.run(
        [*words, *options, *(ROOT / "tests" / name for name in SAME)],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip  # a table
    assert done.returncode == 0, done.stdout
    assert "skipped" not in done.stdout


def test_cancelled_threads(words: list[str], tmp_path: Path) -> None:
    """Threads are cancelled and unwound as without the library, and their reads are recorded."""
    for name, size in (("data", 8192), ("closed", 100), ("busy", 10)):
        (tmp_path / name).write_bytes(bytes(size))
    bundle = recorded(tmp_path, words, compiled(tmp_path, "g++", PROGRAMS / "cancel.cc"))
    assert read_bytes(bundle, "data") == 819_200
    assert read_bytes(bundle, "closed") == 5 * 100
    assert read_bytes(bundle, "busy") > 300
    assert bundle.tables["losses"].num_rows == 0


@pytest.mark.full
@pytest.mark.ebpf
def test_all_bytes_of_fifteen_steps_with_threads(words: list[str], tmp_path: Path) -> None:
    require_ebpf()
    (tmp_path / "work").mkdir()
    record = [*TRACEHINT, "record", "--collector", "all", "-o"]
    steps = ["../run.trace", "--", "sh", ROOT / "tests/reach/steps.sh", ROOT / "tests/workloads"]
    env = {**os.environ, "PYTHON": sys.executable}
    subprocess.run([*words, *record, *steps], cwd=tmp_path / "work", env=env, check=True)
    ebpf, preload = (
        moved(tmp_path / name, bytes(tmp_path)) for name in ("run.trace", "run.preload.trace")
    )
    assert len(ebpf) > 60
    assert preload == ebpf


BLOCKED = r"""
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>
static __attribute__((noinline)) void *waits_for_input(void *ends)
{
	char c;

	return (void *)(long)read(((int *)ends)[0], &c, 1);
}
int main(void)
{
	int ends[2];
	pthread_t one;

	(void)!pipe(ends);
	pthread_create(&one, NULL, waits_for_input, ends);
	usleep(200000);
	puts("ready");
	fflush(stdout);
	getchar();
	return (int)(write(ends[1], "x", 1) - 1 + pthread_join(one, NULL));
}
"""


@pytest.mark.skipif(not shutil.which("gdb"), reason="gdb is not installed")
def test_a_debugger_sees_the_callers_of_a_blocked_call(words: list[str], tmp_path: Path) -> None:
    (tmp_path / "blocked.c").write_text(BLOCKED)
    program = compiled(tmp_path, "gcc", tmp_path / "blocked.c", "-g")
    (tmp_path / "look.sh").write_text(
        f"""mkfifo out in
{program} < in > out &
exec 3> in
read line < out
gdb -q -batch -p $! -ex 'thread apply all backtrace' > frames 2>/dev/null
echo >&3
wait $!
"""
    )
    recorded(tmp_path, words, "sh", "look.sh")
    frames = (tmp_path / "frames").read_text()
    assert re.search(r" read \(\).*\n#\d+ .* waits_for_input .*\n#\d+ .*\n#\d+ ", frames), frames


THREAD = """
import threading
def work():
    assert len(open("data", "rb").read()) == 5000
thread = threading.Thread(target=work)
thread.start()
thread.join()
"""


def unknown(bundle: Bundle) -> set[str]:
    """Return the details of losses about unknown calls."""
    rows = bundle.tables["losses"].to_pylist()
    return {r["detail"] for r in rows if r["kind"] == "unknown_calls"}


def run(words: list[str], *arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run tracehint with that C library."""
    start = [*words, sys.executable, "-m", "tracehint", *arguments]
    return subprocess.run(start, cwd=cwd, capture_output=True, text=True, check=False)


def test_an_unsupported_c_library_is_a_warning_and_a_loss(
    unsupported: list[str], tmp_path: Path
) -> None:
    (tmp_path / "data").write_bytes(bytes(5000))
    record = ("record", "--collector", "preload", "-o", "run.trace", "--")
    done = run(unsupported, *record, sys.executable, "-c", THREAD, cwd=tmp_path)
    assert done.returncode == 0
    assert "warning: calls of this C library (glibc 2." in done.stderr
    assert "not recorded: in a thread all; after a thread all" in done.stderr
    bundle = read_bundle(tmp_path / "run.trace")
    assert read_bytes(bundle, "data") == 0
    assert "unsupported C library: calls of it are not seen" in unknown(bundle)


def test_auto_takes_the_next_collector_and_doctor_says_why(
    unsupported: list[str], tmp_path: Path
) -> None:
    code = """
from tracehint.collectors.registry import choose
print(choose("auto", {"ebpf": "not here"})[1])
"""
    done = subprocess.run(
        [*unsupported, sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout.startswith("recording with collector strace-light")
    assert "not preload: calls of this C library" in done.stdout
    text = run(unsupported, "doctor", "--", "cat", "data", cwd=tmp_path).stdout
    assert "incomplete: calls of this C library" in text
    assert "recorded only in part: calls of this C library" in text


@pytest.mark.parametrize("changed", [False, True])
def test_another_c_library_in_one_program_tries_itself(changed: bool, tmp_path: Path) -> None:
    """As in a container: the recorder has tested this machine's C library only."""
    words = changed_libc("trixie", tmp_path / "libc") if changed else with_libc("trixie")
    (tmp_path / "data").write_bytes(bytes(5000))
    bundle = recorded(tmp_path, [], *words, sys.executable, "-c", THREAD)
    assert read_bytes(bundle, "data") == (0 if changed else 5000)
    assert bool(unknown(bundle)) == changed


def test_what_passed_is_not_tried_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert collector.find_unsupported_calls.__wrapped__() == ""
    monkeypatch.setattr(collector, "_find_losses", lambda: ["in a thread all"])
    assert collector.find_unsupported_calls.__wrapped__() == ""
    (kept,) = tmp_path.rglob("*.passed")
    kept.chmod(0o666)  # others may have modified it
    assert "in a thread all" in collector.find_unsupported_calls.__wrapped__()
    kept.unlink()
    monkeypatch.setattr(
        collector, "LIBRARY", Path(shutil.copy(collector.LIBRARY, tmp_path / "copy.so"))
    )
    assert "in a thread all" in collector.find_unsupported_calls.__wrapped__()
