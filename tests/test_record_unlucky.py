"""Commands that run a command, under adverse conditions: the exit codes stay as documented."""

from __future__ import annotations

import itertools
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.ebpf import require_ebpf
from tests.support.patience import PATIENCE_S

TRACEHINT = f"{sys.executable} -m tracehint"
CLOSED = [" ".join(c) for n in (1, 2, 3) for c in itertools.combinations(("<&-", ">&-", "2>&-"), n)]
PROFILE = "profile --collector ebpf"  # records like `record`
COMMANDS = ("record --collector ebpf", "record --collector strace", PROFILE, "task t")
# Streams that accept no data: all of them for one command, stderr only for the others.
TAKES_NOTHING = ("2>/dev/full", "2>&1 | true", ">/dev/full", "2> >(exec true)")


def _usual(how: str) -> int:
    """Return the last variant of the quick suite: `profile` reports like `record`."""
    return {COMMANDS[0]: len(TAKES_NOTHING), PROFILE: 0}.get(how, 1)


SAID = [
    pytest.param(how, where, marks=[pytest.mark.full] * (number > _usual(how)))
    for how in COMMANDS
    for number, where in enumerate(TAKES_NOTHING)
]
# Describes each of the first descriptors; only the number of the output file can differ.
LOOK = (
    "import os\n"
    "out = open('seen', 'w')\n"
    "for fd in range(6):\n"
    "    try: print(fd, os.readlink(f'/proc/self/fd/{fd}'), file=out)\n"
    "    except OSError: print(fd, 'closed', file=out)\n"
    "raise SystemExit(7)\n"
)


def shell(text: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        ["bash", "-c", text],
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert "Traceback" not in done.stderr
    return done


def runs(how: str) -> str:
    """Return the command line up to the command; skip if the collector cannot run."""
    if "ebpf" in how:
        require_ebpf()
    if "strace" in how and not shutil.which("strace"):
        pytest.skip("strace is not installed")
    return f"{TRACEHINT} {how} --"


@pytest.mark.ebpf
@pytest.mark.slow
@pytest.mark.parametrize("how", COMMANDS)
def test_closed_streams_are_the_commands_own(tmp_path: Path, how: str) -> None:
    (tmp_path / "look.py").write_text(LOOK)
    for closed in CLOSED if how in (COMMANDS[0], COMMANDS[-1]) else CLOSED[-1:]:
        streams = "exec </dev/zero >out 2>err"
        alone = shell(f"{streams}; {sys.executable} look.py {closed}", tmp_path)
        wanted = (tmp_path / "seen").read_text()
        done = shell(f"{streams}; {runs(how)} {sys.executable} look.py {closed}", tmp_path)
        assert (alone.returncode, done.returncode) == (7, 7), closed
        assert "Traceback" not in (tmp_path / "err").read_text()
        assert (tmp_path / "seen").read_text() == wanted, closed


@pytest.mark.ebpf
@pytest.mark.slow
@pytest.mark.parametrize(("how", "where"), SAID)
def test_what_we_say_does_not_change_the_code(tmp_path: Path, how: str, where: str) -> None:
    text = f"{runs(how)} sh -c 'sleep 0.1; exit 7' {where}; exit ${{PIPESTATUS[0]}}"
    assert shell(text, tmp_path).returncode == 7


@pytest.mark.ebpf
@pytest.mark.parametrize("how", COMMANDS[:3])
def test_a_working_directory_that_is_gone(tmp_path: Path, how: str) -> None:
    done = shell(f"mkdir x; cd x; rmdir ../x; {runs(how)} sh -c 'echo ran'", tmp_path)
    assert (done.returncode, done.stdout) == (125, "")
    assert "the working directory no longer exists" in done.stderr


def test_a_task_needs_no_working_directory(tmp_path: Path) -> None:
    done = shell(f"mkdir x; cd x; rmdir ../x; {runs('task t')} sh -c 'exit 7'", tmp_path)
    assert done.returncode == 7


@pytest.mark.ebpf
@pytest.mark.slow
@pytest.mark.parametrize(
    "how", [pytest.param(how, marks=[pytest.mark.full] * (how == PROFILE)) for how in COMMANDS]
)
def test_few_descriptors_and_no_place_for_temporary_files(tmp_path: Path, how: str) -> None:
    for limit in (6, 12, 24, 64) if how != PROFILE else (12, 64):
        done = shell(f"ulimit -n {limit}; {runs(how)} sh -c 'exit 7'", tmp_path)
        assert done.returncode in (7, 125), (limit, done.stderr)
    done = shell(f"env -u HOME TMPDIR=/nonexistent {runs(how)} sh -c 'exit 7'", tmp_path)
    # tempfile falls back to /tmp and the working directory
    assert done.returncode == 7, done.stderr


@pytest.mark.slow
def test_no_directory_takes_temporary_files(tmp_path: Path) -> None:
    runs("record --collector strace")
    words = ["record", "--collector", "strace", "-o", "b", "--", "sh", "-c", "exit 7"]
    code = (
        "import sys, tempfile; tempfile._candidate_tempdir_list = lambda: ['/proc/nowhere'];"
        f"from tracehint.cli import main; sys.exit(main({words!r}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 7, done.stderr
    assert not (tmp_path / "b" / "raw").exists()


def test_a_result_that_cannot_be_written_is_a_failure(tmp_path: Path) -> None:
    assert shell(f"{TRACEHINT} completion bash > /dev/full", tmp_path).returncode == 2
    assert shell(f"{TRACEHINT} completion bash >&-", tmp_path).returncode == 2
    assert shell(f"{TRACEHINT} completion bash 2>&-", tmp_path).returncode == 0
