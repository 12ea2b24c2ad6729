"""apply, undo, verify: what they set, and one attack per safety rule."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.appliers import AS_ROOT, attributes, make_data
from tests.support.hints import literal, rule, save
from tests.support.users import OTHER, needs_root
from tracehint.adapters.apply.journal import JournalEntry, from_line, session_entry, to_line
from tracehint.cli import main
from tracehint.hintgen.hints.model import Conditions, Rule

pytestmark = pytest.mark.slow


def run_apply(hints: Path, data: Path, *more: str, store: str = "xattr") -> int:
    """Run `tracehint apply` in this process."""
    return main(["apply", str(hints), "--store", store, str(data), *AS_ROOT, *more])


def run_verify(hints: Path, data: Path, *more: str) -> int:
    """Run `tracehint verify` in this process."""
    return main(["verify", str(hints), "--store", "xattr", str(data), *more])


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return make_data(tmp_path)


@pytest.fixture
def hints(tmp_path: Path) -> Path:
    return save(
        tmp_path,
        rule("proj/p_{n}.fits", DP="local"),
        rule("table.txt", producer=None, Replication=3, ReplicationSemantics="optimistic"),
    )


def test_sets_what_the_rules_say_and_verify_agrees(data: Path, hints: Path) -> None:
    assert run_verify(hints, data) == 1
    assert run_apply(hints, data) == 0
    for i in range(3):
        assert attributes(data / "proj" / f"p_{i}.fits") == {"user.DP": b"local"}
    assert attributes(data / "proj") == {"user.DP": b"local"}
    assert attributes(data / "table.txt") == {
        "user.Replication": b"3",
        "user.ReplicationSemantics": b"optimistic",
    }
    assert run_verify(hints, data) == 0


def test_files_that_differ_give_no_directory_default(tmp_path: Path) -> None:
    data = tmp_path / "d"
    (data / "a").mkdir(parents=True)
    (data / "b").mkdir()
    for name in ("a/x_1", "a/y_1", "b/x_1", "b/x_2", "b/readme"):
        (data / name).write_text("x")
    hints = save(tmp_path, rule("{word}/x_{n}", DP="local"), rule("{word}/y_{n}", DP="scatter|2"))
    assert run_apply(hints, data) == 0
    assert attributes(data / "a") == {}, "its files differ"
    assert attributes(data / "b") == {}, "one of its files has no hint"
    assert attributes(data / "b/x_2") == {"user.DP": b"local"}


def test_verify_names_a_wrong_and_a_missing_value(
    data: Path, hints: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run_apply(hints, data)
    os.setxattr(data / "table.txt", "user.Replication", b"1")
    os.removexattr(data / "proj/p_2.fits", "user.DP")
    capsys.readouterr()
    assert run_verify(hints, data, "--format", "json") == 1
    found = json.loads(capsys.readouterr().out)
    assert {(m["path"], m["state"]) for m in found["mismatches"]} == {
        ("table.txt", "differs"),
        ("proj/p_2.fits", "missing"),
    }


def test_verify_of_nothing_is_not_fine(tmp_path: Path, hints: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    assert run_verify(hints, empty) == 1


# Attacks -------------------------------------------------------------------------------------


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    path = tmp_path / "secret"
    path.write_text("s")
    return path


def test_attack_directory_swapped_while_apply_runs(tmp_path: Path) -> None:
    """A racing attacker swaps a directory for a link; nothing outside it ever changes."""
    data, outside = tmp_path / "data", tmp_path / "outside"
    (data / "d").mkdir(parents=True)
    outside.mkdir()
    for i in range(300):
        (data / "d" / f"f{i}").write_text("x")
        (outside / f"f{i}").write_text("x")
    hints = save(tmp_path, rule("d/f{n}", DP="local"))
    swap = (
        "import os,shutil,sys\nd=sys.argv[1]\nwhile 1:\n try:\n"
        "  os.rename(d+'/d',d+'/e'); os.symlink(sys.argv[2],d+'/d')\n"
        "  os.unlink(d+'/d'); os.rename(d+'/e',d+'/d')\n"
        # apply --create made a new directory while the old one was renamed
        " except OSError:\n  shutil.rmtree(d+'/d', True); os.rename(d+'/e',d+'/d')\n"
    )
    attacker = subprocess.Popen([sys.executable, "-c", swap, data, outside])
    try:
        for _ in range(5):
            run_apply(hints, data, "--quiet", "--create")
        assert attacker.poll() is None, "the attack went on all the time"
    finally:
        attacker.kill()
        attacker.wait()
    assert attributes(outside) == {}
    assert all(attributes(outside / f"f{i}") == {} for i in range(300))


@pytest.mark.parametrize(
    "path", ["../secret", "/etc/passwd", "a/../../secret", "..", "./x", "a//b"]
)
def test_attack_paths_that_lead_out(tmp_path: Path, secret: Path, path: str) -> None:
    data = tmp_path / "data"
    data.mkdir()
    hints = save(
        tmp_path,
        rule("{dirs}{name}", DP="local", examples=(path,), per_file={path: {"DP": "local"}}),
    )
    run_apply(hints, data, "--create")
    assert attributes(secret) == {}
    assert "user.DP" not in attributes(Path("/etc/passwd"))
    assert sorted(p.name for p in tmp_path.iterdir()) == ["data", "hints.json", "secret"]


def test_attack_hint_named_security_capability(tmp_path: Path, data: Path) -> None:
    hints = save(tmp_path, rule("table.txt", DP="local"))
    text = hints.read_text().replace('"DP"', '"security.capability"')
    hints.write_text(text)
    assert run_apply(hints, data) == 2
    assert attributes(data / "table.txt") == {}


@pytest.mark.parametrize("prefix", ["security.", "system.", "SECURITY.", "trusted.", "user.\n"])
def test_attack_prefix(data: Path, hints: Path, prefix: str) -> None:
    assert run_apply(hints, data, "--prefix", prefix) == 2
    assert attributes(data / "table.txt") == {}
    assert not (data / ".tracehint").exists()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"[]",
        b"{}",
        b"\xff\xfe",
        b"[" * 100_000,
        b'{"schema": "tracehint.hints/1"}',
        b'{"schema": "tracehint.hints/1", "rules": [{"id": 1}], "parameters": {}}',
        b'{"schema": "tracehint.hints/1", "rules": "x", "parameters": {}}',
    ],
)
def test_attack_hostile_hint_file(tmp_path: Path, data: Path, content: bytes) -> None:
    path = tmp_path / "h.json"
    path.write_bytes(content)
    code = run_apply(path, data)
    assert code == 2 or content.endswith(b'1"}')
    assert attributes(data / "table.txt") == {}


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to test what root may not do")
def test_attack_as_root(data: Path, hints: Path) -> None:
    assert main(["apply", str(hints), "--store", "xattr", str(data)]) == 2
    assert attributes(data / "table.txt") == {}


def test_attack_hostile_lines_in_the_journal(data: Path, hints: Path, secret: Path) -> None:
    folder = data / ".tracehint"
    outside, table = b"../secret".hex(), b"table.txt".hex()
    for line in [
        f"set\t{table}\tsecurity.capability\t-\t0x\t0",
        f"set\t{outside}\tuser.DP\t-\t0x\t0",
        f"made\t{outside}\t\t-\t0x\t{secret.stat().st_ino}",
        f"rm -rf\t{table}\t\t-\t0x\t0",
        "",
        f"set\t3\tuser.DP\t-\t{table}\tx",
    ]:
        session = to_line(session_entry("xattr", None))
        folder.mkdir(mode=0o700, exist_ok=True)
        (folder / "journal").write_text(f"{session}{line}\n")
        run_apply(hints, data, "--undo")
        assert secret.exists()
        assert (data / "table.txt").exists()


def test_the_largest_attribute_values_fit_into_a_line_of_the_journal() -> None:
    largest = JournalEntry(
        op="set", path=b"\xff" * 4095, key="user." + "k" * 250, old=b"o" * (64 << 10),
        new=b"n" * (64 << 10), ino=(1 << 64) - 1,
    )  # fmt: skip  # a table
    assert from_line(to_line(largest)) == largest


def test_undo_after_a_crash_at_any_moment(tmp_path: Path) -> None:
    """Kill apply at several moments; undo always restores the first state."""
    data = tmp_path / "data"
    data.mkdir()
    for i in range(2000):
        (data / f"f{i}").touch()
    hints = save(tmp_path, rule("f{n}", DP="local", Replication=2))
    command = [
        sys.executable,
        "-m",
        "tracehint",
        "apply",
        str(hints),
        "--store",
        "xattr",
        str(data),
        *AS_ROOT,
        "--quiet",
    ]
    caught = 0
    for delay in (0.0, 0.01, 0.03, 0.06, *[0.0] * 20):
        if caught and delay == 0.0:
            break  # the other attempts are for machines where apply is faster or slower
        process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        journal = data / ".tracehint" / "journal"
        for _ in range(2000):
            if journal.exists() and journal.stat().st_size > 1000:
                break
            time.sleep(0.002)
        time.sleep(delay)
        process.send_signal(signal.SIGKILL)
        caught += process.wait() == -signal.SIGKILL
        assert run_apply(hints, data, "--undo", "--quiet") == 0
        assert all(attributes(data / f"f{i}") == {} for i in range(2000))
    assert caught, "apply was never killed in the middle"


def test_apply_resumes_after_a_crash(data: Path, hints: Path) -> None:
    run_apply(hints, data)
    journal = data / ".tracehint" / "journal"
    journal.write_bytes(journal.read_bytes()[:-7])  # truncate the last line
    os.removexattr(data / "table.txt", "user.Replication")
    assert run_apply(hints, data) == 0
    assert run_verify(hints, data) == 0
    assert run_apply(hints, data, "--undo") == 0


def test_a_file_that_cannot_be_tagged_does_not_stop_the_rest(
    data: Path, hints: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (data / "proj" / "p_1.fits").unlink()
    (data / "proj" / "p_1.fits").mkdir()
    save_again: Rule = literal(b"proj/p_1.fits", DP="local")
    path = save(hints.parent, rule("proj/p_{n}.fits", DP="local"), save_again)
    assert run_apply(path, data) == 2
    assert "is not a file" in capsys.readouterr().err
    assert attributes(data / "proj" / "p_2.fits") == {"user.DP": b"local"}


def test_small_files_that_are_there_are_left_alone_and_empty_ones_are_not(
    data: Path, tmp_path: Path
) -> None:
    large = replace(rule("proj/p_{n}.fits", DP="local"), conditions=Conditions(min_size_bytes=2))
    (data / "proj" / "p_1.fits").write_text("")
    (data / "proj" / "p_2.fits").write_text("xy")
    assert run_apply(save(tmp_path, large), data, "--no-directories") == 0
    tagged = [i for i in range(3) if attributes(data / "proj" / f"p_{i}.fits")]
    assert tagged == [1, 2], "p_0 has one byte; p_1 may be written yet"


# Another user in the directory ----------------------------------------------------------------


@needs_root
def test_attack_planted_folder_for_what_root_makes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = tmp_path / "data"
    data.mkdir()
    (data / ".tracehint.new").mkdir(mode=0o700)
    os.chown(data / ".tracehint.new", OTHER, OTHER)
    os.chown(data, OTHER, OTHER)
    hints = save(tmp_path, rule("new/o.dat", DP="local"))
    assert run_apply(hints, data, "--create") == 2
    assert "belongs to another user" in capsys.readouterr().err
    assert not (data / "new").exists()


def test_made_directories_inherit_as_always(tmp_path: Path) -> None:
    """New entries of a directory with the set-group-ID bit inherit its group."""
    data = tmp_path / "data"
    data.mkdir()
    data.chmod(0o2775)
    assert run_apply(save(tmp_path, rule("out/o.dat", DP="local")), data, "--create") == 0
    assert (data / "out").stat().st_mode & 0o2000
    assert sorted(p.name for p in data.iterdir()) == [".tracehint", "out"]
