"""Environments in which the tagger cannot work: the program runs on without any new message."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.cli import tracehint
from tests.support.creation import Tagged
from tests.support.hints import hint_file, rule, save

pytestmark = pytest.mark.slow

HINTS = hint_file(rule("{name}.txt", DP="local"))
WRITES = """
#include <stdio.h>
int main(void) { FILE *f = fopen("s.txt", "w"); return !f || fclose(f); }
"""
OTHER = "int tracehint_test_other(void) { return 7; }\n"


def compiled(folder: Path, name: str, text: str, *flags: str) -> Path:
    (folder / f"{name}.c").write_text(text)
    subprocess.run(["gcc", *flags, "-o", folder / name, folder / f"{name}.c"], check=True)
    return folder / name


@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes programs of root")
def test_a_setuid_program_runs_as_ever(library: Path, tmp_path: Path) -> None:
    tagged = Tagged(library, tmp_path, HINTS)
    for folder in (tmp_path, *tmp_path.parents):
        if not folder.stat().st_mode & 0o001:
            folder.chmod(folder.stat().st_mode | 0o011)
    program = compiled(tagged.root, "p", WRITES)
    program.chmod(0o4755)
    become = f"import os; os.setuid(65534); os.execv('{program}', ['p'])"
    assert tagged.run(sys.executable, "-c", become) == ""
    assert (tagged.root / "s.txt").stat().st_uid == 0
    assert tagged.hints("s.txt") == {}
    tagged.run("sh", "-c", "echo 1 >a.txt")
    assert tagged.hints("a.txt") == {"user.DP": b"local"}


def test_another_preloaded_library_stays(library: Path, tmp_path: Path) -> None:
    tagged = Tagged(library, tmp_path, HINTS)
    other = compiled(tmp_path, "other.so", OTHER, "-shared", "-fPIC")
    script = (
        "import ctypes; print(ctypes.CDLL(None).tracehint_test_other()); open('a.txt', 'w').close()"
    )
    both = f"{library}:{other}"
    said = tagged.run("sh", "-c", f'{sys.executable} -c "$S"', S=script, LD_PRELOAD=both)
    assert said == "7\n"
    assert tagged.hints("a.txt") == {"user.DP": b"local"}


@pytest.mark.skipif(os.geteuid() != 0, reason="only root mounts")
def test_a_working_directory_that_cannot_be_written_to(tmp_path: Path) -> None:
    hints, work, data = save(tmp_path, *HINTS.rules), tmp_path / "w", tmp_path / "data"
    work.mkdir()
    data.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "ro", "none", work])
    if mounted.returncode:
        pytest.skip("tmpfs cannot be mounted here")
    try:
        command = ("sh", "-c", f"echo 1 >{data}/a.txt; echo 1 >b")
        options = ("--no-record", "--hints", hints, "--data-root", data)
        done = tracehint("run", *options, "--", *command, cwd=work)
    finally:
        subprocess.run(["umount", work], check=True)
    assert done.returncode == 2
    assert "Read-only" in done.stderr
    assert os.getxattr(data / "a.txt", "user.DP") == b"local"


CLOSED = "exec <&- >&- 2>&-; echo 1 >a.txt; cp a.txt b.txt"


def test_closed_descriptors(library: Path, tmp_path: Path) -> None:
    tagged = Tagged(library, tmp_path, HINTS)
    assert tagged.run("sh", "-c", CLOSED) == ""
    for name in ("a.txt", "b.txt"):
        assert tagged.hints(name) == {"user.DP": b"local"}


def test_a_program_with_the_address_sanitizer_runs_as_ever(library: Path, tmp_path: Path) -> None:
    tagged = Tagged(library, tmp_path, HINTS)
    program = compiled(tagged.root, "p", WRITES, "-fsanitize=address")
    assert tagged.run("sh", "-c", str(program)) == ""
    assert (tagged.root / "s.txt").exists()
