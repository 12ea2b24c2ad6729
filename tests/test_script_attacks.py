"""The script of `emit` if another user owns the directory or has placed files there."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support import appliers
from tests.support.appliers import emit, give, tagged
from tests.support.hints import rule
from tests.support.patience import PATIENCE_S
from tests.support.tagger import SANITIZERS, build
from tests.support.users import OTHER, needs_root, reachable, swapping
from tracehint.adapters.apply.journal import JournalEntry, session_entry, to_line
from tracehint.cli import main

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("tagger")]
CAPABILITY = bytes.fromhex(
    "0100000202000000000000000000000000000000"
)  # in a form that the kernel accepts


@pytest.fixture
def data(tmp_path: Path) -> Path:
    root = reachable(tmp_path) / "data"
    (root / "d").mkdir(parents=True)
    for number in range(40):
        (root / "d" / f"f{number}").touch()
    return root


def sh(script: Path, *arguments: str | Path) -> tuple[int, str]:
    """Run the script and return its exit code and error messages."""
    done = appliers.sh(script, *arguments)
    return done.returncode, done.stderr.decode()


def write_journal(data: Path, *lines: str) -> Path:
    """Write a journal with these lines."""
    folder = data / ".tracehint"
    folder.mkdir(mode=0o700)
    path = folder / "journal"
    path.write_text(to_line(session_entry("xattr", "user.")) + "".join(lines))
    path.chmod(0o600)
    return path


def change(path: bytes, key: str, old: bytes | None, new: bytes = b"local") -> str:
    """Return the journal's line of a setting."""
    return to_line(JournalEntry(op="set", path=path, key=key, old=old, new=new))


@needs_root
def test_a_journal_of_another_user_is_refused(tmp_path: Path, data: Path) -> None:
    """Issue 12, S1: the user's program would receive the capability named by the journal."""
    script = emit(tmp_path, more=("--dir", str(data)))
    write_journal(data, change(b"d/f1", "security.capability", CAPABILITY))
    give(data)
    code, said = sh(script, "--undo", data)
    assert code == 2
    assert "another user" in said
    assert os.listxattr(data / "d/f1") == []
    assert sh(script, data)[0] == 2


@pytest.mark.parametrize(
    "line",
    [
        change(b"d/f1", "security.capability", CAPABILITY),
        change(b"d/f1", "trusted.x", b"a"),
        change(b"d/f1", "user.other", b"a"),
        change(b"d/f1", "user.DP\nuser.other", b"a"),
        change(b"d/f1", "-x", b"a"),
        change(b"d/f1", "user.DP", b"a" * 5000),
        change(b"../secret", "user.DP", b"a"),
        change(b"/etc/passwd", "user.DP", b"a"),
        change(b"link", "user.DP", b"a"),
        change(b"d/f1\0", "user.DP", b"a"),
        change(b"d/f1", "user.DP", b"a").replace("0x61", "text"),
        change(b"d/f1", "user.DP", b"a").replace("0x61", "0x6"),
        change(b"d/f1", "user.DP", b"a").replace("\t0\n", "\tx\n"),
        change(b"d/f1", "user.DP", b"a").replace("\t0\n", "\t0\t0\n"),
        change(b"d/f1", "user.DP", b"a").replace("\t0\n", "\n"),
    ],
)
def test_of_a_journal_only_what_the_table_sets(tmp_path: Path, data: Path, line: str) -> None:
    """This includes the user's own journal, which may be a copy from elsewhere."""
    (tmp_path / "secret").touch()
    (data / "link").symlink_to(tmp_path / "secret")
    for name in ("d/f1", "d/f2", "../secret"):
        os.setxattr(data / name, "user.DP", b"local")
    script = emit(tmp_path, more=("--dir", str(data)))
    path = write_journal(data, line, change(b"d/f2", "user.DP", b"old"))
    code, said = sh(script, "--undo", data)
    assert (code, "refused" in said or "did not write" in said) == (1, True)
    assert os.getxattr(data / "d/f2", "user.DP") == b"old", "the rest is done"
    for name in ("d/f1", "../secret"):
        assert os.listxattr(data / name) == ["user.DP"]
        assert os.getxattr(data / name, "user.DP") == b"local"
    assert line in path.read_text(), "what was refused stays"


@needs_root
def test_a_directory_swapped_under_an_ordinary_user(tmp_path: Path, data: Path) -> None:
    """The same if an ordinary user owns the outside files and another one swaps the directory."""
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
@pytest.mark.parametrize("how", ["another owner", "open to others", "in a directory of another"])
def test_root_runs_no_program_that_others_could_have_made(
    tmp_path: Path, data: Path, how: str, monkeypatch: pytest.MonkeyPatch
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
    monkeypatch.setenv("TRACEHINT_TAG", str(program))
    code, said = sh(script, data)
    assert (code, "is not run as root" in said) == (2, True)
    assert not (tmp_path / "PWNED").exists()
    assert tagged(data / "d") == 0


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
        table, lines = bytearray(good), bytearray(change(b"d/f1", "user.DP", b"a").encode() * 3)
        for text in (table, lines):
            for _ in range(chance.randint(0, 6)):
                text[chance.randrange(len(text))] = chance.choice(b"\0\xff09 /x.CM\t\n")
        with write_journal(data).open("ab") as journal:
            journal.write(lines[: len(lines) - number % 9])
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


@pytest.mark.parametrize("first", ["script", "apply"])
def test_script_and_apply_take_back_each_others_work(
    tmp_path: Path, data: Path, first: str
) -> None:
    rules = rule("d/f{n}", DP="local"), rule("new/deep/o", DP="local")
    script = emit(tmp_path, *rules, more=("--dir", str(data), "--create"))
    apply = ["apply", str(tmp_path / "hints.json"), "--store", "xattr", str(data), "--create"]
    apply += ["--as-root"] if os.geteuid() == 0 else []
    os.setxattr(data / "d/f1", "user.DP", b"mine")
    os.setxattr(data / "d/f2", "user.DP", b"")
    assert (sh(script, data) == (0, "")) if first == "script" else (main(apply) == 0)
    assert tagged(data / "d") == 40
    assert (data / "new/deep/o").exists()
    os.setxattr(data / "d/f3", "user.DP", b"changed")
    for _ in range(2):  # the second time, only entries left behind by the first remain
        assert (
            (main([*apply, "--undo"]) == 0)
            if first == "script"
            else sh(script, "--undo", data)[0] == 0
        )
        assert tagged(data / "d") == 3
        assert os.getxattr(data / "d/f1", "user.DP") == b"mine"
        assert os.getxattr(data / "d/f3", "user.DP") == b"changed"
        assert sorted(p.name for p in data.iterdir()) == [".tracehint", "d"]
    os.removexattr(data / "d/f3", "user.DP")
    assert sh(script, "--undo", data) == (0, "")
    assert [p.name for p in data.iterdir()] == ["d"]


def test_a_script_leaves_what_was_set_for_another_store(tmp_path: Path, data: Path) -> None:
    script = emit(tmp_path, more=("--dir", str(data)))
    store = tmp_path / "other.toml"
    store.write_text('name = "near"\nprefix = "user."\n[hints."DP=local"]\nattribute = "near"\n')
    apply = ["apply", str(tmp_path / "hints.json"), "--store", str(store), str(data)]
    apply += ["--as-root"] if os.geteuid() == 0 else []
    assert main(apply) == 0
    before = {path: os.listxattr(path) for path in (data / "d").iterdir()}
    assert any(before.values())
    assert sh(script, data) == (0, "")
    assert sh(script, "--undo", data) == (0, "")
    assert {path: os.listxattr(path) for path in (data / "d").iterdir()} == before
    assert main([*apply, "--undo"]) == 0
    assert tagged(data / "d") == 0
