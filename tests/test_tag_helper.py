"""tracehint-tag: attributes set before a task, and cleaning up after it."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from tests.support.hostile import HOSTILE_NAMES
from tests.support.patience import PATIENCE_S
from tests.support.tagger import SANITIZERS, SOURCES, build, target
from tracehint.adapters.engines.tag_table import TagTarget, encode, tag_files
from tracehint.adapters.stores.registry import open_store

pytestmark = pytest.mark.slow


def attributes(path: Path | bytes) -> dict[str, bytes]:
    """Return all attributes of a file."""
    return {n: os.getxattr(path, n) for n in os.listxattr(path, follow_symlinks=False)}


@pytest.fixture(scope="session")
def helper(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program as it is shipped."""
    return build(tmp_path_factory.mktemp("tag"))


class Folder:
    """A work directory with a tag folder."""

    def __init__(self, root: Path, program: Path, *tasks: list[TagTarget]) -> None:
        self.root = root
        table, _, _ = encode(tasks, open_store("xattr"))
        (root / "x.tracehint").mkdir()
        for path, data in tag_files(root / "x.tracehint", table).items():
            assert path is not None
            path.write_bytes(data)
            path.chmod(0o755)
        shutil.copy(program, root / "x.tracehint" / "helper")

    def run(self, task: int, command: str, **more: object) -> subprocess.CompletedProcess[bytes]:
        """Run the command as the annotated workflow does: the task's shell sources the tag."""
        text = (
            f"TRACEHINT_RULE={task} TRACEHINT_DIR=./x.tracehint; "
            "[ -r ./x.tracehint/tag ] && . ./x.tracehint/tag; " + command
        )
        return subprocess.run(["/bin/sh", "-c", text], cwd=self.root, capture_output=True, **more)  # type: ignore[call-overload, no-any-return]

    def wrap(self, task: int, command: str) -> subprocess.CompletedProcess[bytes]:
        """Run the command as `makeflow --wrapper` does."""
        words = ["./x.tracehint/tag", str(task), "/bin/sh", "-c", command]
        return subprocess.run(words, cwd=self.root, capture_output=True)


@pytest.mark.parametrize("way", ["run", "wrap"])
def test_output_is_tagged_before_the_command_runs(tmp_path: Path, helper: Path, way: str) -> None:
    folder = Folder(tmp_path, helper, [], [target("o", DP="local", Replication="3")])
    code = "test -e o && ls -i o > before && echo result > o && ls -i o > after && exit 7"
    done = getattr(folder, way)(1, code)
    assert (done.returncode, done.stdout, done.stderr) == (7, b"", b"")
    assert attributes(tmp_path / "o") == {"user.DP": b"local", "user.Replication": b"3"}
    assert (tmp_path / "before").read_text() == (tmp_path / "after").read_text()


@pytest.mark.parametrize("way", ["run", "wrap"])
def test_only_the_tasks_own_files(tmp_path: Path, helper: Path, way: str) -> None:
    folder = Folder(tmp_path, helper, [target("a")], [target("b")], [])
    for task in (0, 2):
        assert getattr(folder, way)(task, "echo x > a; echo x > b").returncode == 0
    assert attributes(tmp_path / "a") == {"user.DP": b"local"}
    assert attributes(tmp_path / "b") == {}


@pytest.mark.parametrize("way", ["run", "wrap"])
def test_an_output_that_the_task_did_not_write_is_removed(
    tmp_path: Path, helper: Path, way: str
) -> None:
    folder = Folder(tmp_path, helper, [target("o"), target("empty"), target("kept", "K")])
    done = getattr(folder, way)(0, ": > empty; false")
    assert done.returncode == 1
    assert not (tmp_path / "o").exists(), "a missing output must stay missing for the engine"
    assert (tmp_path / "empty").exists(), "an empty output is an output"
    assert (tmp_path / "kept").exists()


def test_a_file_that_is_there_keeps_content_and_time(tmp_path: Path, helper: Path) -> None:
    (tmp_path / "o").write_text("old")
    os.utime(tmp_path / "o", (5, 5))
    folder = Folder(tmp_path, helper, [target("o"), target("in", "F")])
    assert folder.run(0, "true").returncode == 0
    assert (tmp_path / "o").read_text() == "old"
    assert (tmp_path / "o").stat().st_mtime == 5
    assert attributes(tmp_path / "o") == {"user.DP": b"local"}
    assert not (tmp_path / "in").exists()


def test_directories_are_tagged_but_never_made(tmp_path: Path, helper: Path) -> None:
    (tmp_path / "d").mkdir()
    targets = [target("d", "D"), target("", "D"), target("new/o"), target("new", "D")]
    folder = Folder(tmp_path, helper, targets)
    assert folder.run(0, "mkdir new && echo x > new/o").returncode == 0
    assert attributes(tmp_path / "d") == attributes(tmp_path) == {"user.DP": b"local"}


@pytest.mark.parametrize("evil", ["link", "dirlink/f", "../secret"])
def test_attack_links_and_ways_out(tmp_path: Path, helper: Path, evil: str) -> None:
    work = tmp_path / "work"
    work.mkdir()
    (tmp_path / "secret").write_text("s")
    (tmp_path / "f").write_text("s")
    (work / "link").symlink_to(tmp_path / "secret")
    (work / "dirlink").symlink_to(tmp_path)
    folder = Folder(work, helper, [target("x" * len(evil)), target("good")])
    table = work / "x.tracehint" / "table"
    table.write_bytes(table.read_bytes().replace(b"x" * len(evil) + b"\0", evil.encode() + b"\0"))
    assert folder.run(0, "echo x > good").returncode == 0
    assert attributes(tmp_path / "secret") == attributes(tmp_path / "f") == {}
    assert attributes(work / "good") == {"user.DP": b"local"}


def test_hostile_names(tmp_path: Path, helper: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    names = [n for n in HOSTILE_NAMES if n not in (b"x.tracehint",)]
    folder = Folder(work, helper, [target(name, "K") for name in names])
    done = folder.run(0, "true")
    assert (done.returncode, done.stderr) == (0, b"")
    for name in names:
        assert attributes(os.fsencode(work) + b"/" + name) == {"user.DP": b"local"}
    assert not list(tmp_path.rglob("PWNED"))


@pytest.mark.parametrize("damage", [b"", b"x", b"tracehint-tags 1 9999999999\n", None])
def test_a_damaged_table_never_stops_the_task(
    tmp_path: Path, helper: Path, damage: bytes | None
) -> None:
    folder = Folder(tmp_path, helper, [target("o")])
    table = tmp_path / "x.tracehint" / "table"
    table.write_bytes(table.read_bytes()[:-9] if damage is None else damage)
    done = folder.run(0, "echo x > o; exit 5")
    assert done.returncode == 5
    assert (tmp_path / "o").read_text() == "x\n"


def test_damaged_tables_under_sanitizers(tmp_path: Path) -> None:
    program = build(tmp_path, *SANITIZERS)
    work = tmp_path / "work"
    work.mkdir()
    targets = [target("o", DP="local", Replication="3"), target("d/kept", "K"), target("", "D")]
    good = encode([[target("a")], targets], open_store("xattr"))[0]
    chance = random.Random(7)
    tables = [good, *(good[:cut] for cut in range(0, len(good), 25))]
    for _ in range(40):
        table = bytearray(good)
        for _ in range(chance.randint(1, 6)):
            table[chance.randrange(len(table))] = chance.choice(b"\0\xff09 /x.CK")
        tables.append(bytes(table))
    for number, damaged in enumerate(tables):
        (tmp_path / "table").write_bytes(damaged)
        for mode in ("set", "clean"):
            done = subprocess.run(
                [program, mode, tmp_path / "table", "1"], cwd=work, capture_output=True,
                env={"ASAN_OPTIONS": "detect_leaks=0"},
            )  # fmt: skip  # a table
            assert done.returncode in (0, 3), (number, done.stderr)
            assert b"Sanitizer" not in done.stderr and b"runtime error" not in done.stderr
    assert {p.name for p in tmp_path.iterdir()} == {"table", "tracehint-tag", "work"}


@pytest.mark.parametrize("gone", ["", "helper", "table"])
def test_no_tag_folder_never_stops_the_task(tmp_path: Path, helper: Path, gone: str) -> None:
    folder = Folder(tmp_path, helper, [target("o")])
    if gone:
        (tmp_path / "x.tracehint" / gone).unlink()
        assert folder.wrap(0, "echo x > o; exit 5").returncode == 5
    else:
        shutil.rmtree(tmp_path / "x.tracehint")
    assert folder.run(0, "echo x > o; exit 5").returncode == 5
    assert (tmp_path / "o").read_text() == "x\n"


def test_attack_attribute_in_the_table(tmp_path: Path, helper: Path) -> None:
    folder = Folder(tmp_path, helper, [target("o")])
    table = tmp_path / "x.tracehint" / "table"
    data = table.read_bytes().replace(b"user.DP\0", b"security.capability\0")
    table.write_bytes(data.replace(b" %011d\n" % 33, b" %011d\n" % 45, 1))
    folder.run(0, "echo x > o")
    assert attributes(tmp_path / "o") == {}


def test_a_file_system_without_attributes_only_complains(tmp_path: Path, helper: Path) -> None:
    work = Path("/proc/self")
    table = tmp_path / "table"
    table.write_bytes(encode([[target("status", "F")]], open_store("xattr"))[0])
    done = subprocess.run([helper, "run", table, "0", "echo", "ran"], cwd=work, capture_output=True)
    assert (done.returncode, done.stdout) == (0, b"ran\n")
    assert b"cannot set an attribute" in done.stderr


def test_signals_reach_the_command(tmp_path: Path, helper: Path) -> None:
    table = tmp_path / "table"
    table.write_bytes(encode([[target("o")]], open_store("xattr"))[0])
    process = subprocess.Popen(
        [helper, "run", table, "0", "sh", "-c", "trap 'echo got; exit 9' TERM; echo up; "
         "while :; do sleep 0.05; done"], cwd=tmp_path, stdout=subprocess.PIPE,
    )  # fmt: skip  # a table
    assert process.stdout is not None
    assert process.stdout.readline() == b"up\n"
    process.send_signal(signal.SIGTERM)
    assert process.communicate(timeout=PATIENCE_S)[0] == b"got\n"
    assert process.returncode == 9
    assert not (tmp_path / "o").exists()


def test_death_by_signal_is_passed_on(tmp_path: Path, helper: Path) -> None:
    table = tmp_path / "table"
    table.write_bytes(encode([[target("o")]], open_store("xattr"))[0])
    done = subprocess.run([helper, "run", table, "0", "sh", "-c", "kill -KILL $$"], cwd=tmp_path)
    assert done.returncode == -signal.SIGKILL


def test_one_task_among_ten_thousand(tmp_path: Path, helper: Path) -> None:
    tasks = [[target(f"o{i}")] for i in range(10_000)]
    (tmp_path / "table").write_bytes(encode(tasks, open_store("xattr"))[0])
    for i in (0, 5000, 9999):
        done = subprocess.run([helper, "set", tmp_path / "table", str(i)], cwd=tmp_path)
        assert done.returncode == 3  # it created a file
    assert sorted(p.name for p in tmp_path.glob("o*")) == ["o0", "o5000", "o9999"]


def test_the_driver_passes_shellcheck() -> None:
    if shutil.which("shellcheck") is None:
        pytest.skip("shellcheck is not installed")
    subprocess.run(["shellcheck", "-s", "sh", SOURCES / "tag.sh"], check=True)
