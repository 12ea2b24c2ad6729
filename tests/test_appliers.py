"""`apply` and the script of `emit`: both set and undo the same and resist the same attacks."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from tests.support.appliers import Applier, attributes, give, make_data, tagged
from tests.support.hints import literal, rule
from tests.support.hostile import HOSTILE_NAMES, make_files
from tests.support.users import OTHER, exchanging, needs_root, reachable, swapping

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("tagger")]
RULES = (
    rule("proj/p_{n}.fits", DP="local", examples=("proj/p_1.fits",)),
    rule("table.txt", producer=None, Replication=3, ReplicationSemantics="optimistic"),
    rule("out/deep/o.dat", DP="local"),
    rule("in.dat", producer=None, Replication=2, examples=("in.dat",)),
)


@pytest.fixture(params=["apply", "script"])
def applier(request: pytest.FixtureRequest, tmp_path: Path) -> Applier:
    (reachable(tmp_path) / "hints").mkdir()
    return Applier(request.param, tmp_path / "hints")


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return make_data(tmp_path)


@pytest.fixture
def many(tmp_path: Path) -> Path:
    """A directory of empty files, for attacks that run while hints are set."""
    root = tmp_path / "many"
    (root / "d").mkdir(parents=True)
    for number in range(200):
        (root / "d" / f"f{number}").touch()
    return root


def test_what_the_rules_say_is_set_once_and_undone(applier: Applier, data: Path) -> None:
    applier.hints(*RULES, data=data)
    os.setxattr(data / "proj", "user.DP", b"mine")
    os.setxattr(data / "table.txt", "user.Replication", b"7")
    os.setxattr(data / "table.txt", "user.mine", b"kept")
    assert applier(data)[0] == 0
    for i in range(3):
        assert attributes(data / "proj" / f"p_{i}.fits") == {"user.DP": b"local"}
    assert attributes(data / "proj") == {"user.DP": b"local"}
    assert attributes(data / "table.txt") == {
        "user.Replication": b"3", "user.ReplicationSemantics": b"optimistic", "user.mine": b"kept",
    }  # fmt: skip  # a table
    assert sorted(p.name for p in data.iterdir()) == [".tracehint", "proj", "table.txt"]
    journal = (data / ".tracehint" / "journal").read_text()
    assert applier(data)[0] == 0
    again = (data / ".tracehint" / "journal").read_text()
    assert again.count("set\t") == journal.count("set\t"), "the second time nothing is set"
    assert applier(data, "--undo")[0] == 0
    assert attributes(data / "proj") == {"user.DP": b"mine"}
    assert attributes(data / "proj/p_0.fits") == {}
    assert attributes(data / "table.txt") == {"user.Replication": b"7", "user.mine": b"kept"}
    assert not (data / ".tracehint").exists()


def test_dry_run_changes_nothing_and_lists_everything(applier: Applier, data: Path) -> None:
    applier.hints(*RULES, data=data, create=True)
    code, said = applier(data, "--dry-run")
    assert code == 0
    assert [line for line in said.splitlines() if "set" in line and "proj/p_1.fits" in line]
    assert "out/deep/o.dat" in said
    assert attributes(data / "proj") == {}
    assert sorted(p.name for p in data.iterdir()) == ["proj", "table.txt"]


def test_outputs_are_made_but_never_inputs(applier: Applier, data: Path) -> None:
    applier.hints(*RULES, data=data, create=True)
    assert applier(data)[0] == 0
    assert attributes(data / "out/deep/o.dat") == {"user.DP": b"local"}
    assert (data / "out/deep/o.dat").stat().st_size == 0
    assert not (data / "in.dat").exists()
    assert applier(data, "--undo")[0] == 0
    assert sorted(p.name for p in data.iterdir()) == ["proj", "table.txt"]


def test_undo_leaves_what_was_written_or_changed_since(applier: Applier, data: Path) -> None:
    applier.hints(*RULES, data=data, create=True)
    applier(data)
    (data / "out/deep/o.dat").write_text("result")
    os.setxattr(data / "table.txt", "user.Replication", b"9")
    code, said = applier(data, "--undo")
    assert (code, "changed since" in said) == (0, True), said
    assert (data / "out/deep/o.dat").read_text() == "result"
    assert attributes(data / "out/deep/o.dat") == {}
    assert attributes(data / "table.txt") == {"user.Replication": b"9"}
    assert (data / ".tracehint").exists(), "what could not be undone stays recorded"


def test_hostile_names_stay_names(applier: Applier, tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    made = make_files(data)
    assert len(made) >= len(HOSTILE_NAMES) * 0.9
    applier.hints(*(literal(name, DP="local") for name in made), data=data)
    for script in applier.folder.glob("*.sh"):
        assert not set(script.read_bytes()) - {10, *range(32, 127)}
    said = applier(data, "--dry-run")[1] + applier(data)[1]
    assert not set(said.encode()) & ({*range(32), 127} - {10}), "no control character is printed"
    for name in made:
        assert attributes(os.fsencode(data) + b"/" + name) == {"user.DP": b"local"}, name
    assert not list(tmp_path.rglob("PWNED"))
    assert applier(data, "--undo", "--quiet")[0] == 0
    assert all(attributes(os.fsencode(data) + b"/" + name) == {} for name in made)


@pytest.mark.parametrize("place", ["table.txt", "proj"])
def test_attack_link_in_place(applier: Applier, data: Path, tmp_path: Path, place: str) -> None:
    applier.hints(*RULES, data=data, create=True)
    shutil.move(data / place, tmp_path / "elsewhere")
    (data / place).symlink_to(tmp_path / "elsewhere")
    assert applier(data)[0] != 0
    assert attributes(tmp_path / "elsewhere") == {}
    if place == "proj":
        assert attributes(tmp_path / "elsewhere" / "p_0.fits") == {}
    else:
        assert attributes(data / "proj" / "p_0.fits") == {"user.DP": b"local"}, "the rest is done"


@needs_root
@pytest.mark.parametrize("mode", [[], ["--undo"]], ids=["set", "undo"])
def test_attack_directory_swapped_meanwhile(
    applier: Applier, many: Path, tmp_path: Path, mode: list[str]
) -> None:
    """Issue 12, S5: while root sets hints, the owner replaces the directory by a symbolic link."""
    applier.hints(rule("d/f{n}", DP="local"), data=many)
    outside = tmp_path / "outside"
    shutil.copytree(many / "d", outside)
    if mode:
        for path in outside.iterdir():
            os.setxattr(path, "user.DP", b"local")
    give(many)
    before = tagged(outside)
    with swapping(many, outside):
        for _ in range(10):
            code, said = applier(many, "--quiet", *mode)
            assert code in (0, 1, 2)
            assert "Traceback" not in said
    assert tagged(outside) == before
    assert attributes(outside) == {}


@needs_root
@pytest.mark.parametrize("victim", ["folder", "file"])
def test_what_root_makes_belongs_to_the_directorys_owner(
    applier: Applier, tmp_path: Path, victim: str
) -> None:
    """Root's files keep their owner, even if that user swaps them with new ones meanwhile."""
    for number in range(10):
        data = tmp_path / f"data{number}"
        (data / "folder").mkdir(parents=True)
        (data / "file").touch()
        applier.hints(rule("new/o.dat", DP="local"), data=data, create=True)
        of_root = (data / victim).stat().st_ino
        os.chown(data, OTHER, OTHER)
        with exchanging(data, victim):
            applier(data)
        owners = {entry.stat().st_ino: entry.stat().st_uid for entry in data.iterdir()}
        assert owners[of_root] == 0, number
    data = tmp_path / "calm"
    data.mkdir()
    os.chown(data, OTHER, OTHER + 1)
    assert applier(data)[0] == 0
    for path in (data / "new", data / "new/o.dat"):
        assert (path.stat().st_uid, path.stat().st_gid) == (OTHER, OTHER + 1)
    assert applier(data, "--undo")[0] == 0
    assert list(data.iterdir()) == []


@needs_root
def test_a_hard_link_is_refused_as_root(applier: Applier, data: Path, tmp_path: Path) -> None:
    applier.hints(*RULES, data=data)
    give(data)
    os.link(data / "table.txt", tmp_path / "elsewhere")
    code, said = applier(data)
    assert code != 0 and "hard link" in said
    assert attributes(tmp_path / "elsewhere") == {}
    assert tagged(data / "proj") == 3


@pytest.mark.parametrize(
    ("name", "what"),
    [
        *(("journal", what) for what in ("link", "hard link", "fifo", "open to others")),
        *((".", what) for what in ("link", "open to others")),
    ],
)
@pytest.mark.parametrize("mode", [[], ["--undo"]], ids=["set", "undo"])
def test_a_planted_journal_is_refused(
    applier: Applier, data: Path, tmp_path: Path, name: str, what: str, mode: list[str]
) -> None:
    """Issue 12, S2: the target of a planted link was appended to."""
    applier.hints(*RULES, data=data)
    folder, victim = data / ".tracehint", tmp_path / "victim"
    path = folder / name
    folder.mkdir(mode=0o700)
    (folder / "journal").touch(0o600)
    if what == "open to others":
        path.chmod(0o777)
    elif name == ".":
        folder.rename(victim)
        folder.symlink_to(victim)
    else:
        path.unlink()
        victim.write_text("precious")
        victim.chmod(0o600)
        make = {"link": path.symlink_to, "hard link": path.hardlink_to}
        make.get(what, lambda _: os.mkfifo(path, 0o600))(victim)
    code, said = applier(data, *mode)
    assert (code, ".tracehint" in said) == (2, True), said
    assert attributes(data / "table.txt") == {}
    if victim.is_file():
        assert victim.read_text() == "precious"
    elif victim.is_dir():
        assert (victim / "journal").read_text() == ""
