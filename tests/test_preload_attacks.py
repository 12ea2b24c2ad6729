"""Root records or sets hints in a directory of another user, who replaces the files that control
the library. Each attack is made TIMES times.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.cli import TRACEHINT
from tests.support.hints import rule, save
from tests.support.needs import needs_preload
from tests.support.users import OTHER, exchanging, needs_root, reachable
from tracehint.collectors.preload.arena import HEAD, ArenaFile, write_sites
from tracehint.collectors.preload.library import LIBRARY

pytestmark = [pytest.mark.slow, needs_root, needs_preload()]
TIMES = 5
PROGRAMS = "for i in 1 2 3 4 5 6 7 8 9 10; do cat /proc/self/maps; done"


@pytest.fixture
def theirs(tmp_path: Path) -> Iterator[Path]:
    """A directory of the other user, with a directory `new` that looks like a spool."""
    folder = reachable(tmp_path) / "theirs"
    spool = folder / "new" / "spool"
    spool.mkdir(parents=True)
    write_sites(spool / "sites")
    arena = ArenaFile(spool)
    arena.make()
    arena.close()
    give(folder)
    yield folder


def give(folder: Path) -> None:
    """Make the other user the owner of all of it."""
    for path in (folder, *folder.rglob("*")):
        os.chown(path, OTHER, OTHER)


def mapped(maps: str) -> set[int]:
    """Return the inodes of the files that programs had mapped."""
    return {int(line.split()[4]) for line in maps.splitlines() if len(line.split()) > 4}


def beginning(path: Path) -> bytes:
    """Return the header and the first records of an arena, which is large."""
    with path.open("rb") as stream:
        return stream.read(1 << 16)


@pytest.mark.parametrize("begun", [(), ("begun",)], ids=["as soon as it is there", "later"])
def test_a_bundle_that_is_exchanged_leads_no_program(theirs: Path, begun: tuple[str, ...]) -> None:
    planted = [theirs / "new/spool" / name for name in ("sites", "arena")]
    inodes = {path.stat().st_ino for path in planted}
    before = [beginning(path) for path in planted]
    words = [*TRACEHINT, "record", "--quiet", "--collector", "preload"]
    wait = "for i in $(seq 6000); do test -e theirs/begun || break; sleep 0.01; done"
    script = f"touch theirs/begun; {wait}" if begun else "sleep 0.1"
    for number in range(TIMES):
        name = f"{number}.trace"
        with exchanging(theirs, name, *begun):
            done = subprocess.run(
                [*words, "-o", theirs / name, "--", "sh", "-c", f"{script}; {PROGRAMS}; exit 3"],
                capture_output=True, text=True, cwd=theirs.parent,
            )  # fmt: skip  # a table
        # exchanged before the command began: rejected
        refused = not begun and done.returncode == 125 and not done.stdout
        assert done.returncode == 3 or refused, done.stderr
        assert ("libtracehint.so" in done.stdout) == (done.returncode == 3)
        assert not inodes & mapped(done.stdout)
        (theirs / "new").rename(theirs / f"old{number}")
        (theirs / name).rename(theirs / "new")
    # a rejected recording may remove the planted directory, but writes nothing there
    paths = [theirs / "new/spool" / name for name in ("sites", "arena")]
    left = {path: content for path, content in zip(paths, before, strict=True) if path.exists()}
    assert {path: beginning(path) for path in left} == left


def test_hints_of_root_are_not_where_another_user_can_move_them(theirs: Path) -> None:
    save(theirs.parent, rule("{name}.txt", DP="local"))
    words = [*TRACEHINT, "run", "--no-record", "--store", "xattr"]
    words += ["--hints", str(theirs.parent / "hints.json"), "--", "sh", "-c"]
    script = "echo 1 >a.txt; echo $TRACEHINT_HINTS; echo $TRACEHINT_SITES"
    for _ in range(TIMES):
        done = subprocess.run([*words, script], cwd=theirs, capture_output=True, text=True)
        table, sites = done.stdout.split()
        assert not table.startswith(str(theirs)) and not sites.startswith(str(theirs))
        assert os.listxattr(theirs / "a.txt") == ["user.DP"], done.stderr
        (theirs / "a.txt").unlink()


FILES = {  # defect of a file -> owner, mode
    "nothing": (0, 0o600),
    "another user's": (OTHER, 0o600),
    "its group may write": (0, 0o660),
    "others may write": (0, 0o602),
}


@pytest.mark.parametrize("wrong", FILES)
@pytest.mark.parametrize("name", ["sites", "arena"])
def test_the_library_takes_files_of_this_user_and_of_root_only(
    tmp_path: Path, wrong: str, name: str
) -> None:
    owner, mode = FILES[wrong]
    arena = ArenaFile(tmp_path)
    arena.make()
    (tmp_path / name).chmod(mode)
    os.chown(tmp_path / name, owner, owner)
    env = {"PATH": os.environ["PATH"], "LD_PRELOAD": str(LIBRARY), **arena.environment()}
    done = subprocess.run(["sh", "-c", PROGRAMS], env=env, capture_output=True, text=True)
    used = (tmp_path / name).stat().st_ino in mapped(done.stdout)
    assert used == (wrong == "nothing")
    epochs = HEAD.unpack(arena.content()[: HEAD.size])[2]
    assert (epochs > 10) == (wrong == "nothing" or name == "sites")
    arena.close()
