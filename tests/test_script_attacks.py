"""The setfattr script where somebody else owns the directory, or has put something there."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.hints import rule, save
from tests.support.patience import PATIENCE_S
from tests.support.tagger import SANITIZERS, build
from tests.support.users import AS_OTHER, OTHER, exchanging, needs_root, reachable, swapping
from tracehint.cli import main
from tracehint.hintgen.hints.model import Rule

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("setfattr") is None, reason="attr is not installed"),
]
CAPABILITY = b"0x0100000202000000000000000000000000000000"  # of a form that the kernel takes


@pytest.fixture(scope="module")
def helper(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """tracehint-tag as it is shipped, where everybody may run it."""
    return build(reachable(tmp_path_factory.mktemp("tag")))


@pytest.fixture(params=["shell", "program"])
def way(request: pytest.FixtureRequest, helper: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The script alone, and with tracehint-tag."""
    monkeypatch.setenv("TRACEHINT_TAG", str(helper) if request.param == "program" else "")
    return str(request.param)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    root = reachable(tmp_path) / "data"
    (root / "d").mkdir(parents=True)
    for number in range(40):
        (root / "d" / f"f{number}").touch()
    return root


def emit(folder: Path, *rules: Rule, more: tuple[str, ...] = ()) -> Path:
    """The script's path."""
    script = folder / "set.sh"
    hints = save(folder, *(rules or [rule("d/f{n}", DP="local")]))
    command = ["emit", str(hints), "--store", "xattr", "-o", str(script), "--force", *more]
    assert main(command) == 0
    return script


def sh(script: Path, *arguments: str | Path, other: bool = False) -> tuple[int, str]:
    """Run the script: exit code and what it complained about."""
    done = subprocess.run(
        ["sh", script, *arguments],
        capture_output=True,
        timeout=PATIENCE_S,
        **(AS_OTHER if other else {}),
    )
    return done.returncode, done.stderr.decode()


def tagged(folder: Path) -> int:
    """How many files of a directory have an attribute."""
    return sum(bool(os.listxattr(path)) for path in folder.iterdir())


def give(path: Path) -> None:
    """The directory and all that lies in it belong to the other user."""
    for part in (path, *path.rglob("*")):
        os.chown(part, OTHER, OTHER, follow_symlinks=False)


def notes(data: Path, old: bytes, made: bytes = b"") -> Path:
    """A journal that somebody wrote."""
    folder = data / ".tracehint"
    folder.mkdir(mode=0o700)
    for name, text in (("old", old), ("made", made)):
        (folder / name).write_bytes(text)
        (folder / name).chmod(0o600)
    return folder


@needs_root
@pytest.mark.usefixtures("way")
def test_a_journal_of_another_user_is_refused(tmp_path: Path, data: Path) -> None:
    """Issue 12, S1: the user's program would get the capability that the journal names."""
    script = emit(tmp_path, more=("--dir", str(data)))
    notes(data, b"d/f1\0security.capability\0" + CAPABILITY + b"\0")
    give(data)
    code, said = sh(script, "--undo", data)
    assert code == 2
    assert "refused as root" in said or "another user" in said
    assert os.listxattr(data / "d/f1") == []
    assert sh(script, data)[0] == 2


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize(
    "record",
    [
        b"d/f1\0security.capability\0" + CAPABILITY + b"\0",
        b"d/f1\0trusted.x\0000x61\0",
        b"d/f1\0user.other\0000x61\0",
        b"d/f1\0user.DP\nuser.other\0000x61\0",
        b"d/f1\0-x\0000x61\0",
        b"d/f1\0user.DP\0text\0",
        b"d/f1\0user.DP\0000sYWJj\0",
        b"d/f1\0user.DP\0000x" + b"61" * 5000 + b"\0",
        b"../secret\0user.DP\0000x61\0",
        b"/etc/passwd\0user.DP\0000x61\0",
        b"link\0user.DP\0000x61\0",
    ],
)
def test_of_a_journal_only_what_the_table_sets(tmp_path: Path, data: Path, record: bytes) -> None:
    """Also of one's own: it may have been copied from somewhere."""
    (tmp_path / "secret").touch()
    (data / "link").symlink_to(tmp_path / "secret")
    script = emit(tmp_path, more=("--dir", str(data)))
    folder = notes(data, record + b"d/f2\0user.DP\0000x6f6c64\0")
    code, said = sh(script, "--undo", data)
    assert (code, "refused" in said) == (1, True)
    assert os.getxattr(data / "d/f2", "user.DP") == b"old", "the rest is done"
    assert tagged(data / "d") == 1
    assert os.listxattr(tmp_path / "secret") == []
    assert record in (folder / "old").read_bytes(), "what was refused stays"


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("name", ["old", "made", "."])
@pytest.mark.parametrize("what", ["link", "hard link", "fifo", "open to others"])
@pytest.mark.parametrize("mode", ["set", "undo"])
def test_links_in_the_journal_are_refused(
    tmp_path: Path, data: Path, name: str, what: str, mode: str
) -> None:
    """Issue 12, S2: the script appended to what the link leads to."""
    if name == "." and what in ("hard link", "fifo"):
        pytest.skip("not for a directory")
    victim = tmp_path / "victim"
    script = emit(tmp_path, more=("--dir", str(data)))
    os.setxattr(data / "d/f1", "user.DP", b"old")
    folder = notes(data, b"")
    path = folder / name
    if what == "open to others":
        path.chmod(0o777)
    elif name == ".":
        folder.rename(victim)
        folder.symlink_to(victim)
    else:
        path.unlink()
        victim.write_text("precious")
        victim.chmod(0o600)
        {"link": path.symlink_to, "hard link": path.hardlink_to}.get(
            what, lambda _: os.mkfifo(path, 0o600)
        )(victim)
    code, said = sh(script, *(["--undo"] if mode == "undo" else []), data)
    assert (code, ".tracehint" in said) == (2, True)
    assert victim.read_text() == "precious" if victim.is_file() else True
    assert {os.getxattr(data / "d/f1", "user.DP")} == {b"old"}
    assert not victim.is_dir() or (victim / "old").read_bytes() == b""


@needs_root
@pytest.mark.parametrize("mode", ["set", "undo"])
def test_a_directory_swapped_for_a_link(
    tmp_path: Path, data: Path, mode: str, helper: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Issue 12, S5: root runs the script, the directory's owner makes it a link meanwhile."""
    monkeypatch.setenv("TRACEHINT_TAG", str(helper))
    script = emit(tmp_path, more=("--dir", str(data)))
    outside = tmp_path / "outside"
    shutil.copytree(data / "d", outside)
    if mode == "undo":
        for number in range(40):
            os.setxattr(outside / f"f{number}", "user.DP", b"local")
    give(data)
    before = tagged(outside)
    with swapping(data, outside):
        for _ in range(20):
            code, said = sh(script, "--quiet", *(["--undo"] if mode == "undo" else []), data)
            assert code in (0, 1)
            assert "Traceback" not in said
    assert tagged(outside) == before


@needs_root
@pytest.mark.usefixtures("way")
def test_a_directory_swapped_under_an_ordinary_user(tmp_path: Path, data: Path) -> None:
    """The same where one ordinary user owns the outside, and another one swaps the directory."""
    script = emit(tmp_path, more=("--dir", str(data)))
    outside = tmp_path / "outside"
    shutil.copytree(data / "d", outside)
    user = {"user": OTHER + 1, "group": OTHER + 1, "extra_groups": []}
    for path in [data / "d", *(data / "d").iterdir(), outside, *outside.iterdir()]:
        os.chown(path, OTHER + 1, OTHER + 1)
    data.chmod(0o777)
    for path in (script, Path(f"{script}.data")):
        path.chmod(0o755)
    with swapping(data, outside):
        for _ in range(3):
            subprocess.run(["sh", script, "--quiet", data], capture_output=True, **user)  # type: ignore[call-overload]
    assert tagged(outside) == 0
    assert subprocess.run(["sh", script, data], **user).returncode == 0  # type: ignore[call-overload]
    assert tagged(data / "d") == 40


@needs_root
@pytest.mark.parametrize("place", [".", "d"])
@pytest.mark.parametrize("how", ["another owner", "open to others", "open to a group"])
def test_root_alone_is_refused_where_others_may_write(
    tmp_path: Path, data: Path, place: str, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRACEHINT_TAG", "")
    script = emit(tmp_path, more=("--dir", str(data)))
    if how == "another owner":
        os.chown(data / place, OTHER, OTHER)
    else:
        (data / place).chmod(0o777 if how == "open to others" else 0o775)
    for mode in ([], ["--undo"]):
        code, said = sh(script, *mode, data)
        assert (code, "refused as root" in said) == (2 if place == "." else 1, True)
    assert tagged(data / "d") == 0
    assert sh(script, "--dry-run", data) == (0, "")


@needs_root
@pytest.mark.parametrize("how", ["another owner", "open to others", "in a directory of another"])
def test_root_uses_no_helper_that_others_could_have_made(
    tmp_path: Path, data: Path, helper: Path, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "bin"
    place.mkdir()
    program = place / "tracehint-tag"
    program.write_text("#!/bin/sh\ntouch " + str(tmp_path / "PWNED"))
    program.chmod(0o755)
    os.chown(
        place if how.startswith("in") else program, *([OTHER] * 2 if "other" in how else [0] * 2)
    )
    if how == "open to others":
        os.chown(program, 0, 0)
        program.chmod(0o777)
    script = emit(tmp_path, more=("--dir", str(data)))
    monkeypatch.setenv("PATH", f"{place}:{os.environ['PATH']}")
    monkeypatch.delenv("TRACEHINT_TAG", raising=False)
    code, said = sh(script, data)
    assert (code, "is not used" in said) == (0, True)
    assert not (tmp_path / "PWNED").exists()
    assert tagged(data / "d") == 40
    monkeypatch.setenv("TRACEHINT_TAG", str(helper))
    assert sh(script, data) == (0, "")


@needs_root
@pytest.mark.parametrize("victim", ["folder", "file"])
def test_what_the_helper_makes_as_root_belongs_to_the_directorys_owner(
    tmp_path: Path, helper: Path, victim: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And nothing else, while that owner exchanges names."""
    monkeypatch.setenv("TRACEHINT_TAG", str(helper))
    script = emit(reachable(tmp_path), rule("new/o.dat", DP="local"), more=("--create",))
    for number in range(8):
        data = tmp_path / f"data{number}"
        (data / "folder").mkdir(parents=True)
        (data / "file").touch()
        of_root = (data / victim).stat().st_ino
        os.chown(data, OTHER, OTHER)
        with exchanging(data, victim):
            sh(script, data)
        owners = {entry.stat().st_ino: entry.stat().st_uid for entry in data.iterdir()}
        assert owners[of_root] == 0, number
    data = tmp_path / "calm"
    data.mkdir()
    os.chown(data, OTHER, OTHER)
    assert sh(script, data) == (0, "")
    assert {p.stat().st_uid for p in (data / "new", data / "new/o.dat")} == {OTHER}
    assert sh(script, "--undo", data) == (0, "")
    assert list(data.iterdir()) == []


@needs_root
def test_a_hard_link_is_refused_as_root(
    tmp_path: Path, data: Path, helper: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRACEHINT_TAG", str(helper))
    script = emit(tmp_path, more=("--dir", str(data)))
    give(data)
    os.link(data / "d/f1", tmp_path / "elsewhere")
    code, said = sh(script, data)
    assert (code, said.count("hard links")) == (1, 1)
    assert tagged(data / "d") == 39


def test_the_two_ways_take_back_each_others_work(
    tmp_path: Path, data: Path, helper: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = emit(
        tmp_path,
        rule("d/f{n}", DP="local"),
        rule("new/deep/o", DP="local"),
        more=("--dir", str(data), "--create"),
    )
    os.setxattr(data / "d/f1", "user.DP", b"mine")
    os.setxattr(data / "d/f2", "user.DP", b"")
    for first, second in ((helper, ""), ("", helper)):
        monkeypatch.setenv("TRACEHINT_TAG", str(first))
        assert sh(script, data) == (0, "")
        assert tagged(data / "d") == 40
        assert (data / "new/deep/o").exists()
        monkeypatch.setenv("TRACEHINT_TAG", str(second))
        assert sh(script, "--undo", data) == (0, "")
        assert tagged(data / "d") == 2
        assert os.getxattr(data / "d/f1", "user.DP") == b"mine"
        assert [p.name for p in data.iterdir()] == ["d"]


@pytest.mark.slow
def test_damaged_tables_and_journals_under_sanitizers(tmp_path: Path, data: Path) -> None:
    program = build(tmp_path, *SANITIZERS)
    script = emit(
        tmp_path,
        rule("d/f{n}", DP="local", examples=("d/f1",)),
        rule("new/o", DP="local"),
        more=("--create",),
    )
    good = Path(f"{script}.data").read_bytes()
    chance = random.Random(7)
    before = {p.name for p in tmp_path.iterdir()}
    for number in range(60):
        table, old = bytearray(good), bytearray(b"d/f1\0user.DP\0000x61\0" * 3)
        for text in (table, old):
            for _ in range(chance.randint(0, 6)):
                text[chance.randrange(len(text))] = chance.choice(b"\0\xff09 /x.CM")
        notes(data, bytes(old), b"new\0new/o\0" + bytes(old[: number % 9]))
        for mode in ("dry", "set", "undo"):
            done = subprocess.run(
                [program, "script", mode], cwd=data, capture_output=True, input=bytes(table),
                env={"ASAN_OPTIONS": "detect_leaks=0"}, timeout=PATIENCE_S,
            )  # fmt: skip  # a table
            assert done.returncode in (0, 1), (number, done.stderr)
            assert b"Sanitizer" not in done.stderr
            assert b"runtime error" not in done.stderr
        shutil.rmtree(data / ".tracehint", ignore_errors=True)
    assert {p.name for p in tmp_path.iterdir()} == before
