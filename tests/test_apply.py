"""apply, undo, verify: what they set, and one attack per safety rule."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.hints import literal, rule, save
from tests.support.hostile import HOSTILE_NAMES, make_files
from tests.support.users import OTHER, exchanging, needs_root, reachable
from tracehint.cli import main
from tracehint.hintgen.hints.model import Rule

pytestmark = pytest.mark.slow

ROOT_FLAG = ["--as-root"] if os.geteuid() == 0 else []


def attributes(path: Path | bytes) -> dict[str, bytes]:
    """All user attributes of a file, links not followed."""
    names = os.listxattr(path, follow_symlinks=False)
    return {n: os.getxattr(path, n, follow_symlinks=False) for n in names}


def run_apply(hints: Path, data: Path, *more: str, store: str = "xattr") -> int:
    """`tracehint apply` in this process."""
    return main(["apply", str(hints), "--store", store, str(data), *ROOT_FLAG, *more])


def run_verify(hints: Path, data: Path, *more: str) -> int:
    """`tracehint verify` in this process."""
    return main(["verify", str(hints), "--store", "xattr", str(data), *more])


@pytest.fixture
def data(tmp_path: Path) -> Path:
    root = tmp_path / "data"
    (root / "proj").mkdir(parents=True)
    for i in range(3):
        (root / "proj" / f"p_{i}.fits").write_text("x")
    (root / "table.txt").write_text("t")
    return root


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


def test_a_second_time_changes_nothing(
    data: Path, hints: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run_apply(hints, data)
    before = (data / ".tracehint" / "applied.jsonl").read_text()
    capsys.readouterr()
    assert run_apply(hints, data) == 0
    assert "0 settings set" in capsys.readouterr().err
    sets = [
        e for e in (data / ".tracehint" / "applied.jsonl").read_text().splitlines() if '"set"' in e
    ]
    assert sets == [e for e in before.splitlines() if '"set"' in e]


def test_dry_run_changes_nothing_and_lists_everything(
    data: Path, hints: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_apply(hints, data, "--dry-run", "--create") == 0
    out = capsys.readouterr().out
    assert "set user.DP (DP=local)  proj/p_1.fits" in out
    assert attributes(data / "proj") == {}
    assert not (data / ".tracehint").exists()


def test_undo_gives_back_what_was_there(data: Path, hints: Path) -> None:
    os.setxattr(data / "table.txt", "user.Replication", b"7")
    os.setxattr(data / "table.txt", "user.mine", b"kept")
    assert run_apply(hints, data) == 0
    assert run_apply(hints, data, "--undo") == 0
    assert attributes(data / "table.txt") == {"user.Replication": b"7", "user.mine": b"kept"}
    assert attributes(data / "proj") == {}
    assert attributes(data / "proj" / "p_0.fits") == {}
    assert not (data / ".tracehint").exists()


def test_undo_leaves_what_somebody_changed_since(
    data: Path, hints: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run_apply(hints, data)
    os.setxattr(data / "table.txt", "user.Replication", b"9")
    assert run_apply(hints, data, "--undo") == 0
    assert "changed since" in capsys.readouterr().err
    assert attributes(data / "table.txt") == {"user.Replication": b"9"}
    assert (data / ".tracehint").exists(), "what could not be undone stays recorded"


def test_create_makes_outputs_but_never_inputs(tmp_path: Path) -> None:
    data = tmp_path / "new"
    data.mkdir()
    hints = save(
        tmp_path, rule("out/deep/o.dat", DP="local"), rule("in.dat", producer=None, Replication=2)
    )
    assert run_apply(hints, data, "--create") == 0
    assert attributes(data / "out/deep/o.dat")["user.DP"] == b"local"
    assert (data / "out/deep/o.dat").stat().st_size == 0
    assert not (data / "in.dat").exists()
    assert run_apply(hints, data, "--undo") == 0
    assert sorted(data.iterdir()) == []


def test_undo_keeps_a_made_file_that_was_written(tmp_path: Path) -> None:
    data = tmp_path / "new"
    data.mkdir()
    hints = save(tmp_path, rule("out/o.dat", DP="local"))
    run_apply(hints, data, "--create")
    (data / "out/o.dat").write_text("result")
    assert run_apply(hints, data, "--undo") == 0
    assert (data / "out/o.dat").read_text() == "result"
    assert attributes(data / "out/o.dat") == {}


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


def test_attack_symlink_in_place_of_a_file(data: Path, hints: Path, secret: Path) -> None:
    (data / "table.txt").unlink()
    (data / "table.txt").symlink_to(secret)
    assert run_apply(hints, data) == 2
    assert attributes(secret) == {}
    assert attributes(data / "proj" / "p_0.fits") == {"user.DP": b"local"}, "the rest is done"


def test_attack_symlink_in_place_of_a_directory(data: Path, hints: Path, tmp_path: Path) -> None:
    shutil.move(data / "proj", tmp_path / "elsewhere")
    (data / "proj").symlink_to(tmp_path / "elsewhere")
    run_apply(hints, data, "--create")
    assert attributes(tmp_path / "elsewhere") == {}
    assert attributes(tmp_path / "elsewhere" / "p_0.fits") == {}


def test_attack_directory_swapped_while_apply_runs(tmp_path: Path) -> None:
    """A racing attacker swaps a directory for a link; nothing outside is ever touched."""
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
        # apply --create made the directory anew while it was away
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


def test_attack_hostile_names(tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    data = tmp_path / "data"
    data.mkdir()
    made = make_files(data)
    assert len(made) >= len(HOSTILE_NAMES) * 0.9
    hints = save(tmp_path, *(literal(name, DP="local") for name in made))
    assert run_apply(hints, data) == 0
    for name in made:
        assert attributes(os.fsencode(data) + b"/" + name) == {"user.DP": b"local"}
    assert run_verify(hints, data) == 0
    assert run_apply(hints, data, "--dry-run", "--prefix", "user.x.") == 0
    printed = capfdbinary.readouterr()
    bad = {*range(32), 127} - {10}
    assert not bad & set(printed.out + printed.err), "no control character reaches the terminal"
    assert not (tmp_path / "PWNED").exists()
    assert run_apply(hints, data, "--undo", "--quiet") == 0
    assert all(attributes(os.fsencode(data) + b"/" + name) == {} for name in made)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to test what root may not do")
def test_attack_as_root(data: Path, hints: Path, tmp_path: Path) -> None:
    assert main(["apply", str(hints), "--store", "xattr", str(data)]) == 2
    assert attributes(data / "table.txt") == {}
    # A hard link to somebody's file is refused even with the flag.
    other = tmp_path / "other"
    other.write_text("x")
    (data / "table.txt").unlink()
    os.link(other, data / "table.txt")
    assert run_apply(hints, data) == 2
    assert attributes(other) == {}


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to give files away")
def test_root_leaves_made_files_to_the_owner_of_the_directory(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    os.chown(data, 1234, 1235)
    hints = save(tmp_path, rule("out/o.dat", DP="local"))
    assert run_apply(hints, data, "--create") == 0
    for path in (data / "out", data / "out/o.dat"):
        assert (path.stat().st_uid, path.stat().st_gid) == (1234, 1235)


@pytest.mark.parametrize("kind", ["link to file", "link to folder", "fifo", "hostile lines"])
def test_attack_planted_manifest(data: Path, hints: Path, secret: Path, kind: str) -> None:
    folder = data / ".tracehint"
    if kind == "link to folder":
        folder.symlink_to(secret.parent)
    else:
        folder.mkdir(mode=0o700)
        if kind == "link to file":
            (folder / "applied.jsonl").symlink_to(secret)
        elif kind == "fifo":
            os.mkfifo(folder / "applied.jsonl")
    if kind != "hostile lines":
        assert run_apply(hints, data) == 2
        assert secret.read_text() == "s"
        return
    session = {"op": "session", "store": "xattr", "schema": "tracehint.applied/1"}
    for line in [
        {"op": "set", "path": "dGFibGUudHh0", "key": "security.capability", "new": ""},
        {"op": "set", "path": "Li4vc2VjcmV0", "key": "user.DP", "new": ""},  # ../secret
        {"op": "create", "path": "Li4vc2VjcmV0"},
        {"op": "rm -rf"},
        [],
        {"op": "set", "path": 3},
    ]:
        (folder / "applied.jsonl").write_text(json.dumps(session) + "\n" + json.dumps(line) + "\n")
        run_apply(hints, data, "--undo")
        assert secret.exists()
        assert (data / "table.txt").exists()


def test_undo_after_a_crash_at_any_moment(tmp_path: Path) -> None:
    """Kill apply at several moments; undo always gives the first state back."""
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
        *ROOT_FLAG,
        "--quiet",
    ]
    caught = 0
    for delay in (0.0, 0.01, 0.03, 0.06, *[0.0] * 20):
        if caught and delay == 0.0:
            break  # the rest is for a machine on which it was too quick or too slow
        process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        journal = data / ".tracehint" / "applied.jsonl"
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
    journal = data / ".tracehint" / "applied.jsonl"
    journal.write_bytes(journal.read_bytes()[:-7])  # the last line was cut off
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


def test_ten_thousand_hints(tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    for i in range(10_000):
        (data / f"f{i}").touch()
    hints = save(tmp_path, rule("f{n}", DP="local"))
    assert run_apply(hints, data, "--quiet") == 0
    assert attributes(data / "f9999") == {"user.DP": b"local"}


def test_small_files_that_are_there_are_left_alone_and_empty_ones_are_not(
    data: Path, tmp_path: Path
) -> None:
    large = replace(rule("proj/p_{n}.fits", DP="local"), conditions={"min_size_bytes": 2})
    (data / "proj" / "p_1.fits").write_text("")
    (data / "proj" / "p_2.fits").write_text("xy")
    assert run_apply(save(tmp_path, large), data, "--no-directories") == 0
    tagged = [i for i in range(3) if attributes(data / "proj" / f"p_{i}.fits")]
    assert tagged == [1, 2], "p_0 has one byte; p_1 may be written yet"


# Another user in the directory ----------------------------------------------------------------


@needs_root
@pytest.mark.parametrize("victim", ["folder", "file"])
def test_attack_exchange_of_what_root_makes(tmp_path: Path, victim: str) -> None:
    """The owner of the directory exchanges what root makes for what root has there already."""
    hints = save(reachable(tmp_path), rule("new/o.dat", DP="local"))
    for number in range(15):
        data = tmp_path / f"data{number}"
        (data / "folder").mkdir(parents=True)
        (data / "file").touch()
        of_root = (data / victim).stat().st_ino
        os.chown(data, OTHER, OTHER)
        with exchanging(data, victim):
            run_apply(hints, data, "--quiet", "--create")
        owners = {entry.stat().st_ino: entry.stat().st_uid for entry in data.iterdir()}
        assert owners[of_root] == 0, number


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


@pytest.mark.parametrize("what", ["hard link", "open to others", "folder open to others"])
def test_attack_manifest_that_others_can_write(data: Path, hints: Path, what: str) -> None:
    folder = data / ".tracehint"
    folder.mkdir(mode=0o700)
    (folder / "applied.jsonl").touch()
    if what == "hard link":
        os.link(folder / "applied.jsonl", data / "second")
    else:
        (folder if "folder" in what else folder / "applied.jsonl").chmod(0o777)
    assert run_apply(hints, data) == 2
    assert (folder / "applied.jsonl").read_text() == ""


def test_made_directories_inherit_as_always(tmp_path: Path) -> None:
    """The group of a directory with the set-group bit goes on to what is made in it."""
    data = tmp_path / "data"
    data.mkdir()
    data.chmod(0o2775)
    assert run_apply(save(tmp_path, rule("out/o.dat", DP="local")), data, "--create") == 0
    assert (data / "out").stat().st_mode & 0o2000
    assert sorted(p.name for p in data.iterdir()) == [".tracehint", "out"]
