"""Programs that the library cannot reach: each file has its hint, or is counted and named."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.built import GO_CACHE
from tests.support.cli import tracehint
from tests.support.hints import rule, save
from tests.support.preload import compiled
from tracehint.schemas.store import read_bundle

pytestmark = pytest.mark.slow

STATIC = """
#include <stdio.h>
int main(int n, char **a) { FILE *f = fopen(a[1], "r"); char line[99], path[99];
 while (fgets(line, 99, f)) if (sscanf(line, "make %98s", path) == 1) {
  FILE *out = fopen(path, "w"); fputs("x", out); fclose(out); } return n != 2; }
"""
GO = """package main
// #include <stdlib.h>
import "C"
import "os"
func main() { C.abs(1); os.WriteFile(os.Args[1], []byte("x"), 0644) }
"""
NAMELESS = """import os, sys
fd = os.open(".", os.O_TMPFILE | os.O_WRONLY)
os.link(f"/proc/self/fd/{fd}", sys.argv[1], src_dir_fd=0, follow_symlinks=True)
"""
# file -> (command that makes it, state of its hint)
ROWS = {
    "script.dat": ("./script.st", "missed"),
    "cgo.dat": ("./cgo cgo.dat", "missed"),
    "static.dat": ("./static in", "set"),
    "nameless.dat": (f"{sys.executable} nameless.py nameless.dat", "set"),
    "unshare.dat": ("unshare -m sh -c 'echo 1 >unshare.dat'", "set"),
    "bwrap.dat": ("bwrap --bind / / --dev /dev sh -c 'echo 1 >bwrap.dat'", "set"),
}


def there(folder: Path) -> list[str]:
    """Build the programs and return the rows that can run on this machine."""
    static = compiled(folder, "static", STATIC, "-static")
    (folder / "in").write_text("make static.dat\n")
    script = folder / "script.st"
    script.write_text(f"#!{static}\nmake script.dat\n")
    script.chmod(0o755)
    (folder / "nameless.py").write_text(NAMELESS)
    (folder / "cgo.go").write_text(GO)
    if shutil.which("go"):
        env = {**os.environ, "GOCACHE": str(GO_CACHE), "CGO_ENABLED": "1"}
        subprocess.run(["go", "build", "-o", "cgo", "cgo.go"], cwd=folder, env=env, check=False)
    needs = {
        "cgo.dat": ["test", "-x", folder / "cgo"],
        "unshare.dat": ["unshare", "-m", "true"],
        "bwrap.dat": ["bwrap", "--bind", "/", "/", "true"],
    }
    lacks = set()
    for name, command in needs.items():
        found = shutil.which(str(command[0]))
        if not found or subprocess.run(command, capture_output=True).returncode:
            lacks.add(name)
    return [name for name in ROWS if name not in lacks]


def test_a_hint_is_set_or_its_lack_is_named(tmp_path: Path) -> None:
    hints = save(tmp_path, rule("{name}.dat", DP="local"))
    names = there(tmp_path)
    (tmp_path / "run.sh").write_text("\n".join(ROWS[name][0] for name in names))
    words = ["--hints", hints, "--store", "xattr", "--collector", "strace"]
    done = tracehint("run", *words, "-o", "r.trace", "--", "sh", "run.sh", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    rows = read_bundle(tmp_path / "r.trace").tables["settings"].to_pylist()
    states = {Path(os.fsdecode(row["path"])).name: row["state"] for row in rows}
    assert states == {name: ROWS[name][1] for name in names}
    for row in rows:
        there_now = b"user.DP" in [os.fsencode(n) for n in os.listxattr(row["path"])]
        assert there_now == (row["state"] == "set"), row
        if row["state"] == "missed":
            assert "its creation was not recorded by" in row["why"]
    missed = sum(state == "missed" for state in states.values())
    assert f"hints set on {len(names) - missed} of {len(names)} matching files" in done.stderr


@pytest.mark.parametrize("learning", [True, False])
@pytest.mark.parametrize("compiler", ["gcc -fsanitize=address", "musl-gcc"])
def test_a_first_program_that_cannot_bear_the_library_runs(
    tmp_path: Path, compiler: str, learning: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It runs without the library, like any other program that cannot load it."""
    words = compiler.split()
    (tmp_path / "first.c").write_text('int puts(const char *);int main(void) { puts("ran"); }')
    if not shutil.which(words[0]):
        pytest.skip(f"{words[0]} is not installed")
    subprocess.run([*words, "first.c", "-o", "first"], cwd=tmp_path, check=True)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "sbatch").symlink_to("/bin/true")  # jobs also get the library
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    monkeypatch.setenv("ASAN_OPTIONS", "detect_leaks=0")  # fails below strace
    hints = save(tmp_path, rule("{name}.dat", DP="local"))
    options = ("--collector", "strace") if learning else ("--hints", hints, "--no-record")
    done = tracehint("run", *options, "--", "./first", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "ran\n"), done.stderr
