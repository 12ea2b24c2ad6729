"""The agent that the kernel asks before opens: hints for all programs, and never in their way."""

from __future__ import annotations

import contextlib
import ctypes
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.cli import tracehint
from tests.support.fanotify import Watched, build, has_unnamed, memory, mirror
from tests.support.first_byte import disk
from tests.support.hints import hint_file, rule, save
from tests.support.hostile import HOSTILE_NAMES
from tests.support.patience import PATIENCE_S
from tests.support.preload import compiled
from tests.test_run import WAYS
from tracehint.adapters.creation.journal import read_journals

pytestmark = [
    pytest.mark.slow, pytest.mark.skipif(os.geteuid() != 0, reason="fanotify is for root"),
]  # fmt: skip  # a table

HINTS = hint_file(rule("out/{name}.txt", DP="local", Replication="2"))
WANTED = {"user.DP": b"local", "user.Replication": b"2"}
NAMED_LATER = "a file without a name"  # no open makes it: nobody is asked
MANY = (
    "import sys, time\n"
    "for i in range(200):\n"
    "    open(f'out/{i}.txt', 'w').write('1'); time.sleep(0.02)\n"
)
STATIC = (
    "#include <fcntl.h>\n#include <unistd.h>\nint main(int n, char **a) { int fd = "
    "open(a[1], O_CREAT | O_WRONLY, 0644); return write(fd, a[1], 5) != 5; }\n"
)
PTRACE_ATTACH, WALL = 16, 0x40000000


@pytest.fixture(scope="session")
def agent(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The agent with sanitizers."""
    return build(tmp_path_factory.mktemp("fanotify"))


MOUNTS = {"tmpfs": lambda folder: memory(folder / "m"), "ext4": disk, "fuse": mirror}


@pytest.fixture(params=MOUNTS)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Watched]:
    """A mount of its own with an empty directory out/."""
    with MOUNTS[request.param](tmp_path) as mount:
        found = Watched(Path("/none"), tmp_path, HINTS, root=mount)
        (mount / "out").mkdir()
        yield found


def test_each_way_of_making_a_file_is_hinted(place: Watched, agent: Path) -> None:
    missing = []
    with place.watched(agent) as said:
        for way, command in WAYS.items():
            (place.root / "in").write_text("b\na\n")
            for left in ("out", "d", "way"):
                shutil.rmtree(place.root / left, ignore_errors=True)
            (place.root / "way").unlink(missing_ok=True)
            (place.root / "out").mkdir()
            if way == NAMED_LATER and not has_unnamed(place.root):
                missing.append(way)  # the file system has none
                continue
            place.run(*command)
            if place.hints("out/x.txt") != WANTED:
                missing.append(way)
    assert said == ["ready"]
    assert missing == [NAMED_LATER]


def test_programs_that_no_library_enters(place: Watched, agent: Path) -> None:
    static = compiled(place.folder, "static", STATIC, "-static")
    setuid = compiled(place.folder, "setuid", STATIC)
    setuid.chmod(0o4755)
    for folder in (place.folder, *place.folder.parents):
        folder.chmod(folder.stat().st_mode | 0o011)
    place.root.joinpath("out").chmod(0o777)
    become = f"import os; os.setuid(65534); os.execv('{setuid}', ['p', 'out/setuid.txt'])"
    with place.watched(agent):
        place.run(static, "out/static.txt")
        place.run(sys.executable, "-c", become)
        place.run("env", "-i", static, "out/nothing.txt")
        place.run("sh", "-c", "(setsid sh -c 'sleep 0.2; echo 1 >out/left.txt' &) ; sleep 0.4")
    for name in ("static", "setuid", "nothing"):
        assert place.hints(f"out/{name}.txt") == WANTED, name
    pids = {record.pid for record in read_journals(place.table).records}
    assert len(pids) == 4 or os.getpid() not in pids


def test_only_new_files_of_the_run(place: Watched, agent: Path) -> None:
    """Others' files, files that hold data, and empty ones that are only read stay as they are."""
    out = place.root / "out"
    for name in ("empty", "full", "again"):
        (out / f"{name}.txt").write_text("1" if name == "full" else "")
    time.sleep(0.2)  # they are old
    with place.watched(agent):
        (out / "own.txt").write_text("1")  # by this process, which is no child of its own
        place.run("sh", "-c", "cat out/*.txt; echo 1 >>out/full.txt; echo 1 >out/again.txt")
        place.run("sh", "-c", "echo 1 >other.txt; echo 1 >out/no.dat")
    hinted = {p.name for p in out.iterdir() if place.hints(f"out/{p.name}")}
    assert hinted == {"again.txt"}
    assert read_journals(place.table).counts["set"] == 1


def test_other_mount_namespaces(place: Watched, agent: Path) -> None:
    """The same file system under another mount: unshare, and a container that binds the folder."""
    bare = ["bwrap", "--bind", "/", "/", "--dev", "/dev"]
    if subprocess.run([*bare, "true"], capture_output=True).returncode:
        pytest.skip("bubblewrap cannot make name spaces here")
    with place.watched(agent):
        place.run("unshare", "-m", "sh", "-c", "echo 1 >out/a.txt")
        place.run(*bare, "sh", "-c", "echo 1 >out/b.txt")
        place.run(*bare, "--bind", place.root, "/mnt", "sh", "-c", "echo 1 >/mnt/out/c.txt")
    assert [place.hints(f"out/{name}.txt") for name in "ab"] == [WANTED] * 2
    # the path is the container's own: no rule is for it
    assert not place.hints("out/c.txt")


def switches(pid: int) -> int:
    text = Path(f"/proc/{pid}/status").read_text()
    return int(text.split("voluntary_ctxt_switches:\t")[1].split()[0])


def test_a_file_that_holds_something_is_asked_about_once(place: Watched, agent: Path) -> None:
    (place.root / "in").write_text("1")
    read = "for i in range(500): open('in').close()"
    again = "open('out/x.txt', 'w').write('1'); open('out/x.txt'); open('out/x.txt', 'w')"
    with place.watched(agent):
        place.run(sys.executable, "-c", read)
        before = switches(place.agent_pid())
        place.run(sys.executable, "-c", read)
        assert switches(place.agent_pid()) - before < 100
        # what was made empty, or anew under the same name, is another matter
        place.run(sys.executable, "-c", again)
        os.removexattr(place.root / "out/x.txt", "user.DP")
        place.run("sh", "-c", ">>out/x.txt")
        assert place.hints("out/x.txt") == WANTED
        place.run("sh", "-c", "echo 1 >out/x.txt; cat out/x.txt; rm out/x.txt; echo 2 >out/x.txt")
        assert place.hints("out/x.txt") == WANTED


def test_names_of_every_byte(tmp_path: Path, agent: Path) -> None:
    with memory(tmp_path / "m") as mount:
        place = Watched(Path("/none"), tmp_path, hint_file(rule("{name}", DP="local")), root=mount)
        names = [name for name in HOSTILE_NAMES if name != b".tracehint"]
        script = "import sys\nfor n in sys.stdin.buffer.read().split(b'\\0')[:-1]: open(n, 'w')"
        with place.watched(agent):
            subprocess.run(
                [sys.executable, "-c", script], input=b"".join(n + b"\0" for n in names),
                cwd=mount, check=True,
            )  # fmt: skip  # a table
        assert {n for n in names if place.hints(n) != {"user.DP": b"local"}} == set()


def test_many_processes_and_threads(place: Watched, agent: Path) -> None:
    script = (
        "import threading as t, sys\n"
        "def make(k):\n"
        "    for i in range(60): open(f'out/{sys.argv[1]}-{k}-{i}.txt', 'w')\n"
        "all = [t.Thread(target=make, args=(k,)) for k in range(4)]\n"
        "[a.start() for a in all]; [a.join() for a in all]\n"
    )
    workers = " & ".join(f'{sys.executable} -c "$S" {n}' for n in range(6)) + " & wait"
    with place.watched(agent) as said:
        place.run("sh", "-c", workers, S=script)
    journal = read_journals(place.table)
    assert said == ["ready"]
    assert journal.counts["set"] == 6 * 4 * 60
    assert len({record.path for record in journal.records}) == 6 * 4 * 60


def test_a_file_deleted_at_once_is_gone(place: Watched, agent: Path) -> None:
    """FUSE keeps a file that somebody has open under another name: the agent has it no more."""
    script = (
        "import os\n"
        "for i in range(300):\n"
        "    os.mkdir('d'); os.mkdir('d/out')\n"
        "    os.chdir('d'); os.close(os.open('out/x.txt', os.O_CREAT)); os.chdir('..')\n"
        "    os.close(os.open('out/x.txt', os.O_CREAT)); os.unlink('out/x.txt')\n"
        "    os.unlink('d/out/x.txt'); os.rmdir('d/out'); os.rmdir('d')\n"
        "    assert os.listdir('out') == [], i\n"
    )
    with place.watched(agent) as said:
        place.run(sys.executable, "-c", script)
    assert said == ["ready"]


def test_a_refusal_is_counted_and_never_reaches_the_program(tmp_path: Path, agent: Path) -> None:
    (tmp_path / "m").mkdir()
    if subprocess.run(["mount", "-t", "ramfs", "none", tmp_path / "m"]).returncode:
        pytest.skip("ramfs cannot be mounted here")
    try:
        place = Watched(Path("/none"), tmp_path, HINTS, root=tmp_path / "m")
        (place.root / "out").mkdir()
        with place.watched(agent):
            assert place.run("sh", "-c", "echo 1 >out/x.txt; cat out/x.txt") == "1\n"
    finally:
        subprocess.run(["umount", tmp_path / "m"], check=True)
    journal = read_journals(place.table)
    assert (journal.counts["set"], journal.counts["refused"]) == (0, 1)
    assert [record.error for record in journal.records] == [95]


def kill(place: Watched) -> None:
    os.kill(place.agent_pid(), signal.SIGKILL)


def stop(place: Watched) -> None:
    os.kill(place.agent_pid(), signal.SIGSTOP)


def stop_both(place: Watched) -> None:
    os.kill(place.agent.pid, signal.SIGSTOP)
    os.kill(place.agent_pid(), signal.SIGSTOP)


def kill_both(place: Watched) -> None:
    pid = place.agent_pid()
    os.kill(place.agent.pid, signal.SIGKILL)
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def hold(place: Watched) -> None:
    """A debugger that stops it: nothing but a kill ends that."""
    pid = place.agent_pid()
    ctypes.CDLL(None).ptrace(PTRACE_ATTACH, pid, 0, 0)
    threading.Thread(target=wait_for_end, args=(pid,), daemon=True).start()


def wait_for_end(pid: int) -> None:
    """Who traces a process is told of its end first."""
    while os.WIFSTOPPED(os.waitpid(pid, WALL)[1]):
        pass


# what happens to the agent -> (what the watchdog says, fewest files that have hints of 200)
HARMS = {
    kill: ("killed 9", 60), stop: ("", 200), stop_both: ("", 200), hold: ("stuck", 60),
    kill_both: ("", 1),
}  # fmt: skip  # a table


@pytest.mark.parametrize("harm", HARMS, ids=lambda harm: harm.__name__)
def test_an_agent_that_ends_or_hangs_blocks_nobody(tmp_path: Path, agent: Path, harm) -> None:  # type: ignore[no-untyped-def]
    says, fewest = HARMS[harm]
    with memory(tmp_path / "m") as mount:
        place = Watched(Path("/none"), tmp_path, HINTS, root=mount)
        (mount / "out").mkdir()
        with place.watched(agent) as said:
            work = subprocess.Popen([sys.executable, "-c", MANY], cwd=mount)
            while not (mount / "out/50.txt").exists():
                time.sleep(0.01)
            harm(place)
            assert work.wait(PATIENCE_S) == 0
        made = list((mount / "out").iterdir())
        hinted = sum(place.hints(f"out/{path.name}") == WANTED for path in made)
    counts = read_journals(place.table).counts
    assert said[1:2] == ([says] if says else [])
    assert len(made) == 200
    assert hinted >= fewest, counts


def run(folder: Path, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """The command line, by fanotify."""
    return tracehint("run", "--via", "fanotify", *arguments, cwd=folder)


def test_the_command_line(tmp_path: Path) -> None:
    from tracehint.schemas.store import read_bundle

    hints = save(tmp_path, rule("out/{name}.txt", DP="local"))
    static = compiled(tmp_path, "static", STATIC, "-static")
    nameless = tmp_path / "nameless.py"
    nameless.write_text(
        "import os\nfd = os.open('out', os.O_TMPFILE | os.O_WRONLY)\n"
        "os.link(f'/proc/self/fd/{fd}', 'out/e.txt', src_dir_fd=0, follow_symlinks=True)\n"
    )
    with memory(tmp_path / "m") as mount:
        (mount / "out").mkdir()
        script = "echo 1 >out/a.txt; exit 7"
        done = run(mount, "--hints", hints, "--no-record", "--", "sh", "-c", script)
        assert done.returncode == 7
        assert "1 of 1 file that a rule is for got their hints" in done.stderr
        done = run(
            mount, "--hints", hints, "--collector", "strace", "-o", tmp_path / "r.trace", "--",
            "sh", "-c", f"{static} out/b.txt; echo 1 >out/c.txt; mv out/c.txt out/d.txt; "
            f"{sys.executable} {nameless}",
        )  # fmt: skip  # a table
        assert done.returncode == 0, done.stderr
        assert os.getxattr(mount / "out/b.txt", "user.DP") == b"local"
    rows = read_bundle(tmp_path / "r.trace").tables["settings"].to_pylist()
    assert {(Path(os.fsdecode(r["path"])).name, r["state"]) for r in rows} == {
        ("b.txt", "set"), ("d.txt", "set"), ("e.txt", "missed"),
    }  # fmt: skip  # a table


KILL_WATCHDOG = """
import contextlib, os, signal, time
from pathlib import Path
for place in Path("/proc").glob("[0-9]*"):
    with contextlib.suppress(OSError):
        words = (place / "cmdline").read_bytes().split(b"\\0")
        if words[0].endswith(b"/tracehint-fanotify") and os.fsencode(os.getcwd()) in words:
            os.kill(int(place.name), signal.SIGKILL)
time.sleep(0.3)
open("out/late.txt", "w").write("1")
"""


def test_what_was_made_without_an_agent_is_said(tmp_path: Path) -> None:
    hints = save(tmp_path, rule("out/{name}.txt", DP="local"))
    (tmp_path / "kill.py").write_text(KILL_WATCHDOG)
    with memory(tmp_path / "m") as mount:
        (mount / "out").mkdir()
        done = run(
            mount, "--hints", hints, "--collector", "strace", "-o", tmp_path / "r.trace", "--",
            sys.executable, tmp_path / "kill.py",
        )  # fmt: skip  # a table
    assert done.returncode == 0, done.stderr
    assert "the agent and its watchdog ended before the command" in done.stderr
    assert "0 of 1 file that a rule is for got their hints" in done.stderr
    assert "nobody saw it being made" in done.stderr


def test_where_root_is_somebody_else_it_is_refused(tmp_path: Path) -> None:
    """The kernel would deny opens that the agent may not make."""
    hints = save(tmp_path, rule("{name}.txt", DP="local"))
    read_only = tmp_path / "m"
    read_only.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "ro", "none", read_only]).returncode:
        pytest.skip("tmpfs cannot be mounted here")
    try:
        done = run(tmp_path, "--hints", hints, "--data-root", read_only, "--", "touch", "made")
    finally:
        subprocess.run(["umount", read_only], check=True)
    assert done.returncode == 125
    assert "Read-only" in done.stderr and "--via preload" in done.stderr
    assert not (tmp_path / "made").exists()
    words = [sys.executable, "-m", "tracehint", "run", "--via", "magic", "--hints", hints]
    done = subprocess.run([*words, "--", "true"], capture_output=True, text=True)
    assert done.returncode == 125 and "preload, fanotify" in done.stderr
