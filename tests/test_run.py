"""`tracehint run`: files have hints before their first byte, and the command is unaffected."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.cli import tracehint
from tests.support.creation import Tagged
from tests.support.hints import hint_file, rule, save
from tests.support.hostile import HOSTILE_NAMES
from tracehint.adapters.creation.journal import read_journals
from tracehint.adapters.creation.outcome import teller
from tracehint.hintgen.hints.hintfile import dump

pytestmark = pytest.mark.slow

HINTS = hint_file(rule("out/{name}.txt", DP="local", Replication="2"))


@pytest.fixture
def tagged(library: Path, tmp_path: Path) -> Tagged:
    """Runs commands in a folder that has an empty directory out/."""
    found = Tagged(library, tmp_path, HINTS)
    (found.root / "out").mkdir()
    return found


# how out/x.txt is made -> the command; the file `in` exists
WAYS = {
    "redirection": ("sh", "-c", "echo 1 >out/x.txt"),
    "append": ("sh", "-c", "echo 1 >>out/x.txt"),
    "cp": ("cp", "in", "out/x.txt"),
    "install": ("install", "in", "out/x.txt"),
    "dd": ("dd", "if=in", "of=out/x.txt", "status=none"),
    "sort -o": ("sort", "-o", "out/x.txt", "in"),
    "tee": ("sh", "-c", "tee out/x.txt <in >/dev/null"),
    "tar": ("sh", "-c", "mkdir d && cp in d/x.txt && tar cf t d && tar xf t --transform=s/^d/out/"),
    "awk": ("awk", '{print > "out/x.txt"}', "in"),
    "an empty environment": ("env", "-i", "sh", "-c", "echo 1 >out/x.txt"),
    "another directory": ("sh", "-c", "cd out && echo 1 >x.txt"),
    "a link to the directory": ("sh", "-c", "ln -s out way && echo 1 >way/x.txt"),
    "a link to what is not there": ("sh", "-c", "ln -s out/x.txt way && echo 1 >way"),
    "a link to a link": ("sh", "-c", "ln -s out a && ln -s a b && echo 1 >b/x.txt"),
    "a link in a whole name": ("sh", "-c", 'ln -s out way && echo 1 >"$PWD/way/x.txt"'),
    "a whole name": ("sh", "-c", 'echo 1 >"$PWD/out/x.txt"'),
    "a whole name with dots": ("sh", "-c", 'echo 1 >"$PWD/./out/../out/x.txt"'),
    "dots": ("sh", "-c", "echo 1 >././out/../out//x.txt"),
    "a directory that was renamed": (
        "sh", "-c", "rmdir out; mkdir d; cd d; mv ../d ../out; echo 1 >x.txt"
    ),
    "below another directory's descriptor": (
        sys.executable, "-c",
        "import os; d = os.open('out', os.O_RDONLY); os.open('x.txt', os.O_CREAT | 1, dir_fd=d)",
    ),
    "python": (sys.executable, "-c", "open('out/x.txt', 'w').write('1')"),
    "a thread": (
        sys.executable, "-c",
        "import threading as t; a = t.Thread(target=lambda: open('out/x.txt', 'w').write('1'));"
        "a.start(); a.join()",
    ),
    "a file without a name": (
        sys.executable, "-c",
        "import os, ctypes; f = os.open('out', os.O_TMPFILE | os.O_RDWR); os.write(f, b'1');"
        "ctypes.CDLL(None).linkat(-100, f'/proc/self/fd/{f}'.encode(), -100, b'out/x.txt', 1024)",
    ),
}  # fmt: skip  # a table


@pytest.mark.parametrize("way", WAYS)
def test_each_way_of_making_a_file_is_hinted(tagged: Tagged, way: str) -> None:
    (tagged.root / "in").write_text("b\na\n")
    tagged.run(*WAYS[way])
    assert tagged.hints("out/x.txt") == {"user.DP": b"local", "user.Replication": b"2"}


@pytest.mark.parametrize("name", ["out/y.txt", "way/y.txt", "$PWD/way/y.txt", "$PWD/out/y.txt"])
def test_a_name_that_leads_elsewhere_is_not_the_file_s(tagged: Tagged, name: str) -> None:
    (tagged.root / "out/y.txt").symlink_to("../elsewhere.txt")
    (tagged.root / "way").symlink_to("out")
    tagged.run("sh", "-c", f'echo 1 >"{name}"')
    assert tagged.hints("elsewhere.txt") == {}
    assert (tagged.root / "elsewhere.txt").read_text() == "1\n"


def test_a_usual_name_costs_no_look_into_proc(tagged: Tagged) -> None:
    """Two kinds of calls: getcwd for relative names, and readlink for each part of the name."""
    if shutil.which("strace") is None:
        pytest.skip("strace is not installed")
    (tagged.root / "a/b").mkdir(parents=True)
    script = 'echo 1 >x.txt; echo 1 >out/x.txt; echo 1 >"$PWD/out/y.txt"; echo 1 >a/b/x.txt'
    tagged.run("strace", "-o", "log", "-e", "trace=readlink,getcwd,openat", "bash", "-c", script)
    text = (tagged.root / "log").read_text()
    after = [part.splitlines()[1:] for part in re.split(r"(?=openat.*O_CREAT)", text)[1:]]
    calls = [
        [line.partition("(")[0] for line in lines if "(" in line and "openat" not in line]
        for lines in after
    ]
    assert calls == [
        ["getcwd", "readlink"],
        ["getcwd", "readlink", "readlink"],
        ["readlink", "readlink"],
        ["getcwd", "readlink", "readlink", "readlink"],  # the last one queries /proc
    ]
    assert text.count("/proc/self/fd") == 1


def test_the_hint_is_there_before_the_first_byte(tagged: Tagged) -> None:
    if shutil.which("strace") is None:
        pytest.skip("strace is not installed")
    tagged.run("strace", "-f", "-o", "log", "-e", "trace=openat,write,fsetxattr",
               "sh", "-c", "echo 1 >out/x.txt")  # fmt: skip  # a table
    lines = (tagged.root / "log").read_text().splitlines()
    made = next(i for i, line in enumerate(lines) if "out/x.txt" in line and "O_CREAT" in line)
    wrote = next(i for i, line in enumerate(lines) if 'write(1, "1\\n"' in line)
    hinted = [i for i, line in enumerate(lines) if "fsetxattr(" in line and "= 0" in line]
    assert len(hinted) == 2
    assert made < min(hinted) <= max(hinted) < wrote


def test_names_of_every_byte(library: Path, tmp_path: Path) -> None:
    tagged = Tagged(library, tmp_path, hint_file(rule("{name}", DP="local")))
    script = "import os, sys\nfor n in sys.stdin.buffer.read().split(b'\\0')[:-1]: open(n, 'w')"
    names = [name for name in HOSTILE_NAMES if name != b".tracehint"]
    subprocess.run(
        [sys.executable, "-c", script], input=b"".join(n + b"\0" for n in names),
        cwd=tagged.root, env=tagged.environment(), check=True,
    )  # fmt: skip  # a table
    assert {n for n in names if tagged.hints(n) != {"user.DP": b"local"}} == set()


def test_what_was_set_and_refused_is_told(tagged: Tagged) -> None:
    if os.geteuid() != 0 or not Path("/proc/self/ns/mnt").exists():
        pytest.skip("needs root to mount a file system without attributes")
    place = tagged.root / "out"
    mounted = subprocess.run(["mount", "-t", "ramfs", "none", place], capture_output=True)
    if mounted.returncode:
        pytest.skip("ramfs cannot be mounted here")
    try:
        tagged.run("sh", "-c", "echo 1 >out/x.txt; echo 1 >out/no.dat; cat out/x.txt")
    finally:
        subprocess.run(["umount", place], check=True)
    tagged.run("sh", "-c", "echo 1 >out/y.txt")
    journal = read_journals(tagged.table)
    assert (journal.counts["set"], journal.counts["refused"]) == (1, 1)
    root = os.fsencode(tagged.root)
    rows = teller(tagged.resolution, tagged.store, [root], "me").rows(journal)
    assert [(r["path"], r["key"], r["state"], r["error"]) for r in rows] == [
        (root + b"/out/x.txt", "user.DP", "refused", 95),
        (root + b"/out/x.txt", "user.Replication", "refused", 95),
        (root + b"/out/y.txt", "user.DP", "set", None),
        (root + b"/out/y.txt", "user.Replication", "set", None),
    ]


def test_many_processes_and_threads_write_one_journal(tagged: Tagged) -> None:
    script = (
        "import threading as t, sys\n"
        "def make(k):\n"
        "    for i in range(60): open(f'out/{sys.argv[1]}-{k}-{i}.txt', 'w')\n"
        "all = [t.Thread(target=make, args=(k,)) for k in range(4)]\n"
        "[a.start() for a in all]; [a.join() for a in all]\n"
    )
    workers = " & ".join(f'{sys.executable} -c "$S" {n}' for n in range(6)) + " & wait"
    tagged.run("sh", "-c", workers, S=script)
    journal = read_journals(tagged.table)
    assert journal.counts["set"] == 6 * 4 * 60
    assert len({record.path for record in journal.records}) == 6 * 4 * 60
    assert journal.counts["dropped"] == 0


def test_a_journal_that_another_process_is_making_is_used(tagged: Tagged) -> None:
    """The first processes on a node where no run began start together, and one is not finished."""
    for size in (0, 1 << 30):
        for journal in tagged.folder.glob("table.journal.*"):
            journal.write_bytes(b"")
            os.truncate(journal, size)
        tagged.run("sh", "-c", "rm -f out/x.txt; echo 1 >out/x.txt")
        assert [record.path for record in read_journals(tagged.table).records] == [b"out/x.txt"]


def test_a_missing_table_or_journal_harms_nobody(tagged: Tagged) -> None:
    env = tagged.environment()
    for name in ("nowhere", "broken"):
        (tagged.folder / "broken").write_bytes(b"x" * 5000)
        env["TRACEHINT_HINTS"] = str(tagged.folder / name)
        subprocess.run(["sh", "-c", "echo 1 >out/x.txt"], env=env, cwd=tagged.root, check=True)
        assert tagged.hints("out/x.txt") == {}
    for journal in tagged.folder.glob("table.journal.*"):
        journal.unlink()
        journal.symlink_to("/dev/null")
    tagged.run("sh", "-c", "rm out/x.txt; echo 1 >out/x.txt")
    assert tagged.hints("out/x.txt") != {}


def run(folder: Path, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Run `tracehint run` with these arguments."""
    return tracehint("run", *arguments, cwd=folder)


@pytest.fixture
def hints(tmp_path: Path) -> Path:
    """A hint file next to the working directory."""
    (tmp_path / "w" / "out").mkdir(parents=True)
    return save(tmp_path, rule("out/{name}.txt", DP="local"))


def test_the_command_line(hints: Path) -> None:
    folder = hints.parent / "w"
    done = run(
        folder, "--hints", hints, "--no-record", "--", "sh", "-c", "echo 1 >out/a.txt; exit 7"
    )
    assert done.returncode == 7
    assert os.getxattr(folder / "out/a.txt", "user.DP") == b"local"
    assert "hints set on 1 of 1 matching file" in done.stderr
    assert not list((folder / ".tracehint").iterdir())
    done = run(folder, "--hints", hints, "--no-record", "--", "sh", "-c", "kill -TERM $$")
    assert done.returncode == -signal.SIGTERM
    assert run(folder, "--hints", hints, "--no-record", "--", "no-such-program").returncode == 127
    assert run(folder, "--hints", hints, "--store", "nowhere", "--", "true").returncode == 125


def test_a_bad_hint_file_stops_before_the_command(hints: Path) -> None:
    dump(hint_file(rule("{name}", DP="local")), hints, force=True)
    hints.write_text(hints.read_text().replace('"local"', '"sideways"'))
    done = run(hints.parent / "w", "--hints", hints, "--", "touch", "made")
    assert done.returncode == 125
    assert not (hints.parent / "w" / "made").exists()


def test_what_was_set_stands_in_the_bundle(hints: Path) -> None:
    from tracehint.schemas.store import read_bundle

    folder = hints.parent / "w"
    done = run(
        folder, "--hints", hints, "--collector", "strace", "-o", "r.trace", "--",
        "sh", "-c", "echo 1 >out/a.txt; cp out/a.txt out/b.txt; echo 2 >other",
    )  # fmt: skip  # a table
    assert done.returncode == 0, done.stderr
    bundle = read_bundle(folder / "r.trace")
    rows = bundle.tables["settings"].to_pylist()
    assert [Path(os.fsdecode(r["path"])).name for r in rows] == ["a.txt", "b.txt"]
    assert {(r["hint"], r["key"], r["value"], r["state"]) for r in rows} == {
        ("DP=local", "user.DP", b"local", "set")
    }
    assert not bundle.problems
