"""A second `tracehint run`: jobs of a real Slurm start where their data was written."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from tests.e2e.test_run_slurm import TRACEHINT, afresh
from tests.support.needs import needs_preload
from tests.support.patience import PATIENCE_S, until
from tests.support.predicting import SLOW
from tests.support.slurm import Cluster

pytestmark = [pytest.mark.slow, pytest.mark.engine, needs_preload()]
CHAINS = 2 * (os.cpu_count() or 1)  # processors of two nodes
MB = 8
RUN = [*TRACEHINT, "run", "--cluster", "slow.toml", "--"]
FLOW = ["makeflow", "-T", "slurm", "w.mf"]
# All first jobs run at the same time, so that they occupy both nodes.
BOTH = f"until [ `ls at | grep -c make` = {CHAINS} ]; do sleep 0.1{{more}}; done"
MAKE = (
    f"mkdir -p at && hostname > at/make_{{n}} && {BOTH} && head -c {{size}} /dev/zero > made_{{n}}"
)
TURN = "hostname > at/turn_{n} && tail -c +{more} made_{n} > turned_{n}"


def workflow(folder: Path, more: int = 1) -> None:
    """Write chains of two jobs, each of which records its host. `more`: bytes, whose change makes
    all jobs different."""
    afresh(folder, "made_*", "turned_*", "at", "*.makeflowlog", "slurm.*", "out")
    (folder / "slow.toml").write_text(SLOW.format(mbit=10))
    rules = []
    for n in range(CHAINS):
        size = (MB << 20) + n + more  # a job is identified by the words of its commands
        rules.append(f"made_{n}:\n\t({MAKE.format(n=n, size=size, more=more)})\n")
        rules.append(f"turned_{n}: made_{n}\n\t({TURN.format(n=n, more=more)})\n")
    (folder / "w.mf").write_text("\n".join(rules))


def test_jobs_run_where_their_data_was_made(slurm: Cluster, tmp_path: Path) -> None:
    if not shutil.which("makeflow"):
        pytest.skip("makeflow is not installed")
    folder = tmp_path / "w"
    for number in (1, 2):
        workflow(folder)
        said = slurm.run(*RUN, *FLOW, cwd=folder).stderr
        assert ("each job is submitted to one of 2 nodes" in said) == (number == 2), said
    (count,) = re.findall(r"jobs: (\d+) for the node of their data", said)
    left = re.search(r"(\d+) released because it was full", said)
    away = int(left[1]) if left else 0
    assert int(count) >= CHAINS - away, said
    where = {path.name: path.read_text().strip() for path in (folder / "at").iterdir()}
    elsewhere = [n for n in range(CHAINS) if where[f"turn_{n}"] != where[f"make_{n}"]]
    assert len(elsewhere) <= away, f"{elsewhere}: {said}"
    assert set(where.values()) == {"node1", "node2"}
    assert "recordings of jobs" not in said and "unknown from" not in said


def test_other_jobs_than_those_that_were_recorded_are_recorded_again(
    slurm: Cluster, tmp_path: Path
) -> None:
    if not shutil.which("makeflow"):
        pytest.skip("makeflow is not installed")
    said = []
    for more in (1, 1000, 1000):
        workflow(tmp_path / "w", more)
        said.append(slurm.run(*RUN, *FLOW, cwd=tmp_path / "w").stderr)
    assert f"{2 * CHAINS} unknown from the last run" in said[1], said[1]
    assert "the next run is recorded again" in said[1]
    joined = f"{2 * CHAINS} recordings of jobs on 2 hosts joined"
    assert [joined in text for text in said] == [True, False, True]


# An engine that starts a second job after the first and ends according to their states.
SCRIPT = """
for text in 'head -c 8388608 /dev/zero > made' 'cat made > turned; touch waits; sleep $1'; do
    id=$(sbatch --parsable --wrap="$text") || exit 4
    while squeue -h -j "$id" -t PD,CF,R,CG -o %i | grep -q .; do sleep 0.3; done
    scontrol show job "$id" | grep -q JobState=COMPLETED || exit 3
done
"""


def test_cancelled_and_killed_it_is_as_without(slurm: Cluster, tmp_path: Path) -> None:
    """A cancelled job and a killed engine."""
    folder = tmp_path / "w"
    folder.mkdir()
    script = SCRIPT.replace("$1", "$SECONDS_LONG")
    (folder / "w.sh").write_text(script)
    (folder / "slow.toml").write_text(SLOW.format(mbit=10))
    slurm.run(*RUN, "sh", "w.sh", cwd=folder, env={"SECONDS_LONG": "0"})

    def begun(*words: str) -> subprocess.Popen[str]:
        afresh(folder, "made", "turned", "waits")
        process = subprocess.Popen(
            [*words, "sh", "w.sh"], cwd=folder, env={**slurm.env, "SECONDS_LONG": "600"},
            text=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True,
        )  # fmt: skip  # a table
        until((folder / "waits").exists, "the last job runs")
        return process

    # a run would wait for a recording whose recorder was cancelled too
    unrecorded = [*RUN[:-1], "--no-record", "--"]
    for words in ([], unrecorded):
        process = begun(*words)
        slurm.run("scancel", "--me")
        said = process.communicate(timeout=PATIENCE_S)[1]
        assert process.returncode == 3, said
        slurm.wait()
    assert re.search(r"jobs: [12] for the node of their data", said), said
    process = begun(*unrecorded)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate(timeout=PATIENCE_S)
    slurm.run("scancel", "--me")
    slurm.wait()
    until(lambda: not left_processes(folder), "nothing is left on a node")


def left_processes(folder: Path) -> list[str]:
    """Return the command lines of processes whose working directory is the folder."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if (entry / "cwd").readlink() == folder and int(entry.name) != os.getpid():
                found.append((entry / "cmdline").read_bytes().decode("utf-8", "replace"))
        except OSError:
            continue
    return found
