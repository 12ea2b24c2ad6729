"""`tracehint run` on a real Slurm and MooseFS during failures: the workflow ends as it does without
tracehint, and nothing is left on a node.

The same engine runs without tracehint on the same nodes and meets the same failure.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.cli import TRACEHINT
from tests.support.needs import needs_preload
from tests.support.patience import PATIENCE_S, until
from tests.support.predicting import SLOW
from tests.support.slurm import Site

pytestmark = [pytest.mark.slow, pytest.mark.engine, pytest.mark.store, needs_preload()]
RUN = [*TRACEHINT, "run", "--cluster", "slow.toml", "--"]
PLACED = "each job is submitted to one of "
MARK = "TEST_RUN_ADVERSITY=1"
SMALL_DISK = 72 << 20  # bytes: enough for a recording to start there
# An engine with two chains of two jobs and an array; $1: prefix of its files.
SCRIPT = """
ended() {
    while :; do
        case $(scontrol -o show job "$1" | sed -n 's/.*JobState=\\([A-Z_]*\\).*/\\1/p' | sort -u) in
        COMPLETED) return 0 ;;
        '' | *PENDING* | *RUNNING* | *COMPLETING* | *CONFIGURING* | *REQUEUED* | *NODE_FAIL*) ;;
        *) return 1 ;;
        esac
        sleep 0.3
    done
}
job() {
    id=$(sbatch --parsable -o /dev/null "$@") && ended "$id"
}
chain() {
    job --wrap="fill=$FILL; [ -z \\$fill ] || head -c \\$fill /dev/zero >\\$TMPDIR/fill
        head -c 200000$2 /dev/zero >$1_made_$2; rm -f \\$TMPDIR/fill" &&
    job --wrap="cat $1_made_$2 >$1_turned_$2
        [ $2 = 2 ] || while [ -e hold ]; do touch waits; sleep 0.2; done"
}
chain "$1" 1 & one=$!
chain "$1" 2 & two=$!
job --array=1-2 --wrap="n=\\$SLURM_ARRAY_TASK_ID
    head -c 300000\\$n /dev/zero >$1_part_\\$n" || exit 5
wait $one || exit 3
wait $two || exit 4
cat $1_turned_* $1_part_* | cksum >$1_out
"""


@dataclass(frozen=True)
class Engine:
    """A running engine."""

    process: subprocess.Popen[str]
    folder: Path
    name: str

    def ended(self, code: int = 0) -> str:
        """Wait for its end and return its messages."""
        said = self.process.communicate(timeout=PATIENCE_S)[1]
        assert self.process.returncode == code, said
        return said

    @property
    def result(self) -> str:
        """Contents of its last file; empty if there is none."""
        out = self.folder / f"{self.name}_out"
        return out.read_text() if out.exists() else ""


def begun(site: Site, folder: Path, *words: str, name: str = "w", **env: str) -> Engine:
    """Start the engine in a directory of the store; its jobs inherit the variables and a mark."""
    folder.mkdir(exist_ok=True)
    (folder / f"{name}.sh").write_text(SCRIPT)
    if not (folder / "slow.toml").exists():  # another engine may read it
        (folder / "slow.toml").write_text(SLOW.format(mbit=1))
    key, _, value = MARK.partition("=")
    local = str(site.slurm.folder / "local")
    process = subprocess.Popen(
        [*site.slurm.words, *words, "sh", f"{name}.sh", name], cwd=folder, text=True,
        env={**site.slurm.env, "TMPDIR": local, key: value, **env}, start_new_session=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
    )  # fmt: skip  # a table
    return Engine(process, folder, name)


@pytest.fixture(scope="module")
def learned(site: Site) -> Path:
    """State that tracehint learned in a first run."""
    folder = site.bed.mount / "learned"
    assert "learned from this run" in begun(site, folder, *RUN).ended()
    return folder / ".tracehint"


def again(site: Site, learned: Path, folder: Path, **env: str) -> Engine:
    """Start the second run in a separate directory and wait until it has found the nodes with free
    processors and a job runs."""
    folder.mkdir(exist_ok=True)
    shutil.copytree(learned, folder / ".tracehint")
    engine = begun(site, folder, *RUN, **env)
    until(lambda: [*folder.glob("w_*")] or engine.process.poll() is not None, "its first job runs")
    return engine


def both(site: Site, name: str) -> list[Path]:
    """Create directories of the store for a run with tracehint and one without."""
    folders = [site.bed.mount / f"{kind}_{name}" for kind in ("hinted", "plain")]
    for folder in folders:
        folder.mkdir()
    return folders


@pytest.fixture(autouse=True)
def _clean(site: Site) -> Iterator[None]:
    """Check after a test that nothing is left on a node; restart a killed node."""
    yield
    site.slurm.run("scancel", "--me")  # jobs of a failed test
    for node in site.slurm.nodes:
        if "slurmd" not in processes_of(site, node).values():
            site.slurm.start_again(node)
    site.slurm.wait()
    until(lambda: not marked_processes(), "all processes end")
    places = [site.slurm.folder / f"local-{node}" for node in site.slurm.nodes]
    until(lambda: not [path for place in places for path in place.iterdir()], "nodes are clean")
    until(lambda: not [*Path("/dev/shm").glob("*tracehint*")], "so is memory")


def marked_processes() -> dict[int, str]:
    """Return the processes that an engine of these tests started on any node, with their words."""
    found = {}
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if os.fsencode(MARK) in (process / "environ").read_bytes().split(b"\0"):
                words = (process / "cmdline").read_text(errors="replace")
                found[int(process.name)] = words.rstrip("\0").replace("\0", " ")
    return found


@dataclass(frozen=True)
class Job:
    """A running job; `folder`: the directory it was submitted from."""

    number: str
    node: str
    folder: Path


def held_jobs(site: Site) -> list[Job]:
    """Wait until the only jobs are the two that wait for their file's removal; return them."""

    def rows() -> list[str]:
        return site.slurm.run("squeue", "-h", "-o", "%i|%N|%Z|%T").stdout.splitlines()

    until(lambda: [row.rpartition("|")[2] for row in rows()] == ["RUNNING"] * 2, "both wait")
    return [Job(number, node, Path(place)) for number, node, place, _ in
            (row.split("|") for row in rows())]  # fmt: skip  # a table


def cancel(site: Site, jobs: Sequence[Job], _: Sequence[Engine]) -> None:
    site.slurm.run("scancel", *(job.number for job in jobs))


def requeue(site: Site, jobs: Sequence[Job], _: Sequence[Engine]) -> None:
    site.slurm.run("scontrol", "requeue", ",".join(job.number for job in jobs))


def kill_node(site: Site, jobs: Sequence[Job], _: Sequence[Engine]) -> None:
    """Kill all processes on the node of tracehint's job except the store's: its data has one
    copy."""
    (name,) = (job.node for job in jobs if job.folder.name.startswith("hinted"))
    for pid, program in processes_of(site, name).items():
        if not program.startswith("mfs"):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
    site.slurm.run("scontrol", "update", f"nodename={name}", "state=down", "reason=killed")


def kill_engines(_: Site, __: Sequence[Job], engines: Sequence[Engine]) -> None:
    for engine in engines:
        os.killpg(engine.process.pid, signal.SIGKILL)


def processes_of(site: Site, name: str) -> dict[int, str]:
    """Return the processes of a node with their program names."""
    (space,) = (node.space for node in site.bed.nodes if node.label == name)
    done = subprocess.run(["ip", "netns", "pids", space], capture_output=True, text=True)
    found = {}
    for pid in done.stdout.split():
        with suppress(OSError):
            found[int(pid)] = Path(f"/proc/{pid}/comm").read_text().strip()
    return found


Adversity = Callable[[Site, Sequence[Job], Sequence[Engine]], None]
ROWS: dict[str, tuple[Adversity, int]] = {  # failure of a running job in both runs -> exit code
    "cancelled": (cancel, 3),
    "requeued": (requeue, 0),
    "killed node": (kill_node, 0),
    "killed engine": (kill_engines, -signal.SIGKILL),
}
RARE = ("requeued",)  # a killed node requeues too


@pytest.mark.parametrize(
    "what", [pytest.param(what, marks=[pytest.mark.full] * (what in RARE)) for what in ROWS]
)
def test_it_ends_as_without(site: Site, learned: Path, what: str) -> None:
    happens, code = ROWS[what]
    folders = both(site, what.replace(" ", "_"))
    for folder in folders:
        (folder / "hold").touch()
    try:
        engines = [again(site, learned, folders[0]), begun(site, folders[1])]
        until(lambda: all((folder / "waits").exists() for folder in folders), "both are there")
        happens(site, held_jobs(site), engines)
    finally:
        for folder in folders:
            (folder / "hold").unlink()
    said = [engine.ended(code) for engine in engines]
    assert PLACED in said[0], said
    site.slurm.wait()
    assert engines[0].result == engines[1].result
    assert bool(engines[0].result) == (code == 0)
    turned = [(folder / "w_turned_1").stat().st_size for folder in folders]
    assert turned == [2_000_001] * 2
    if code >= 0:
        assert not list((site.slurm.folder / "local").iterdir())


def test_a_node_of_the_plan_is_missing(site: Site, learned: Path) -> None:
    name = site.slurm.nodes[-1]
    state = ("scontrol", "update", f"nodename={name}")
    site.slurm.run(*state, "state=drain", "reason=missing")
    folders = both(site, "missing")
    try:
        engines = [again(site, learned, folders[0]), begun(site, folders[1])]
        said = [engine.ended() for engine in engines]
    finally:
        site.slurm.run(*state, "state=resume")
    assert f"{PLACED}2 nodes" in said[0]
    assert engines[0].result == engines[1].result != ""


def test_the_disk_of_each_node_is_full(site: Site, learned: Path) -> None:
    """Full before the job starts its work and after its recording has started."""
    local = str(site.slurm.folder / "local")
    inside = []
    for node in site.slurm.nodes:
        (pid,) = (p for p, name in processes_of(site, node).items() if name == "slurmd")
        inside.append(["nsenter", f"--mount=/proc/{pid}/ns/mnt"])
    small = ["mount", "-t", "tmpfs", "-o", f"size={SMALL_DISK}", "none", local]
    folders = both(site, "full")
    try:
        for words in inside:
            subprocess.run([*words, *small], check=True)
        more = {"FILL": str(2 * SMALL_DISK)}
        engines = [again(site, learned, folders[0], **more), begun(site, folders[1], **more)]
        said = [engine.ended() for engine in engines]
        site.slurm.wait()
        for words in inside:
            left = subprocess.run([*words, "ls", "-A", local], capture_output=True, text=True)
            assert left.stdout == "", left
    finally:
        for words in inside:
            subprocess.run([*words, "umount", "-l", local], check=True)
    assert PLACED in said[0]
    assert engines[0].result == engines[1].result != ""


def test_workflows_at_once(site: Site, learned: Path) -> None:
    """Two in one directory, in their first and second runs, then one in another directory."""
    here, other = site.bed.mount / "two", site.bed.mount / "another"
    first = [begun(site, here, *RUN, name=name) for name in ("a", "b")]
    plain = begun(site, site.bed.mount / "plain_at_once")
    for engine in first:
        assert "learned from this run" in engine.ended()
    plain.ended()
    for path in here.glob("*_*"):
        path.unlink()
    second = [begun(site, here, *RUN, name=name) for name in ("a", "b")]
    third = again(site, learned, other)
    for engine in (*second, third):
        assert PLACED in engine.ended()
        assert engine.result == plain.result != ""


TEXTS = [f"hostname >at_{n}; while [ -e hold ]; do sleep 0.2; done; exit {n}" for n in (0, 1)]
TEXTS.append("hostname >at_2; exec sleep 600")
ALLOCATED = """
import os, subprocess
from pathlib import Path
from tracehint.adapters.place.allocation import allocated_hosts, usable
from tracehint.adapters.place.dispatch import PlacedTask, dispatching
from tracehint.collectors.preload.library import LIBRARY

nodes = usable(allocated_hosts())
assert nodes is not None and nodes.here == 0 and len(nodes.hosts) == 3, nodes
here, texts = Path.cwd(), Path("texts").read_bytes().splitlines()
keys = [(os.fsencode(here), (b"/bin/sh", b"-c", text)) for text in texts]
tasks = {key: PlacedTask(part) for part, key in enumerate(keys)}
with dispatching(nodes, tasks, here, steal=False) as place:
    env = {**os.environ, "LD_PRELOAD": str(LIBRARY), **place.environment}
    subprocess.run(["sh", "engine.sh", *texts], env=env, check=True)
"""
ENGINE = """/bin/sh -c "$1" &
/bin/sh -c "$2" &
/bin/sh -c "$3" & last=$!
wait $last
echo $? >code
wait
"""


def test_tasks_of_an_allocation_are_steps_on_its_nodes(site: Site) -> None:
    """One task ends with the process that the engine started for it; the others continue."""
    folder = site.bed.mount / "allocation"
    folder.mkdir()
    (folder / "texts").write_text("".join(f"{text}\n" for text in TEXTS))
    (folder / "engine.py").write_text(ALLOCATED)
    (folder / "engine.sh").write_text(ENGINE)
    (folder / "job.sh").write_text(f"#!/bin/sh\nexec {sys.executable} engine.py >log 2>&1\n")
    (folder / "hold").touch()
    key, _, value = MARK.partition("=")
    env = {key: value, "TMPDIR": str(site.slurm.folder / "local")}
    site.slurm.sbatch("-N3", "--exclusive", "-o", "/dev/null", "job.sh", cwd=folder, env=env)
    there = [folder / f"at_{n}" for n in range(3)]
    log = folder / "log"
    until(
        lambda: (
            all(path.exists() and path.read_text() for path in there)
            or (log.exists() and log.read_text())
        ),
        "all tasks run",
    )
    assert log.read_text() == "" and {path.read_text().strip() for path in there} == {*"ABC"}
    (starter,) = (
        pid
        for pid, words in marked_processes().items()
        if "starter.py" in words and TEXTS[2] in words and "--there" not in words
    )
    os.kill(starter, signal.SIGKILL)
    until(lambda: "sleep 600" not in marked_processes().values(), "the step ends")
    assert f"/bin/sh -c {TEXTS[1]}" in marked_processes().values()
    (folder / "hold").unlink()
    site.slurm.wait()
    assert (folder / "code").read_text() == f"{128 + signal.SIGKILL}\n", log.read_text()
