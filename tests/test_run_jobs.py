"""The first program of a batch system's job becomes its recorder (collectors/preload/job).

Without a batch system: what it would set is set here; tests/e2e/test_run_slurm.py has a real one.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from tracehint.collectors.preload import PreloadCollector
from tracehint.collectors.preload.blind import LIBRARY
from tracehint.collectors.preload.jobs import (
    JOB,
    JOBS,
    VARIABLES,
    bundles_in,
    identity,
    jobs_environment,
    jobs_of,
    unfinished,
)
from tracehint.schemas.store import read_bundle

_CHECK = PreloadCollector().check()
pytestmark = [pytest.mark.slow, pytest.mark.skipif(not _CHECK.usable, reason=_CHECK.reason)]
SLURM = {"SLURM_JOB_ID": "7", "SLURM_PROCID": "0", "SLURMD_NODENAME": "node1"}
TELL = "import json, os, sys; print(json.dumps([sys.argv, dict(os.environ)]))\n"


def clean() -> dict[str, str]:
    """The environment without a batch system's job."""
    left_out = {*VARIABLES, "SLURM_ARRAY_JOB_ID", JOB, JOBS, "LD_PRELOAD"}
    return {k: v for k, v in os.environ.items() if k not in left_out}


def run(
    folder: Path, *command: str, env: Mapping[str, str], cwd: Path | None = None
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, env=dict(env), cwd=cwd or folder, capture_output=True, text=True)


def job(tmp_path: Path) -> tuple[Path, dict[str, str]]:
    """A folder for recordings, and the environment of a job that knows it."""
    folder = tmp_path / "jobs"
    folder.mkdir()
    return folder, {**clean(), **jobs_environment(folder), **SLURM}


@pytest.mark.parametrize(
    "more",
    [
        SLURM,
        {**SLURM, "SLURM_STEP_ID": "0"},
        {"PBS_JOBID": "12[3].host"},
        {"LSB_JOBID": "4", "LSB_JOBINDEX": "2", "SLURMD_NODENAME": "ü"},
        {"LSB_JOBID": "4" * 400},
    ],
)
def test_both_name_a_job_alike(tmp_path: Path, more: dict[str, str]) -> None:
    (tmp_path / "tell.py").write_text(TELL)
    jobs = f"{sys.executable}:{tmp_path}/tell.py"
    env = {**clean(), "LD_PRELOAD": str(LIBRARY), JOBS: jobs, "TRACEHINT_RECORD": "/x", **more}
    words, got = json.loads(run(tmp_path, "sh", "-c", "echo no", "a b", env=env).stdout)
    assert got[JOB] == identity(more)
    assert words[0] == f"{tmp_path}/tell.py" and Path(words[1]).samefile("/bin/sh")
    assert words[2:] == ["sh", "-c", "echo no", "a b"]
    assert "TRACEHINT_RECORD" not in got
    again = run(tmp_path, "sh", "-c", "echo no", env={**env, JOB: identity(more)})
    assert again.stdout == "no\n"


STEPS = {  # what differs of a process in a job -> whether it goes to the job's recorder
    "a step": ({"SLURM_STEP_ID": "0", "SLURM_PROCID": "3"}, True),
    "another node": ({"SLURM_STEP_ID": "0", "SLURMD_NODENAME": "node2"}, False),
    "another job": ({"SLURM_JOB_ID": "8"}, False),
    "nothing records above": ({"SLURM_STEP_ID": "0", "TRACEHINT_RECORD": None}, False),
    "who is above is not known": ({"SLURM_STEP_ID": "0", JOB: "7"}, False),
    "it has more": ({"SLURM_STEP_ID": "0", "LSB_JOBID": "1"}, False),
}


@pytest.mark.parametrize("what", STEPS)
def test_a_step_goes_to_the_recorder_of_its_job(tmp_path: Path, what: str) -> None:
    more, goes = STEPS[what]
    (tmp_path / "tell.py").write_text("print('records')\n")
    jobs = f"{sys.executable}:{tmp_path}/tell.py"
    env = {**clean(), **SLURM, "LD_PRELOAD": str(LIBRARY), JOBS: jobs, JOB: identity(SLURM)}
    changed = {**env, "TRACEHINT_RECORD": "/x", **more}
    kept = {name: value for name, value in changed.items() if value is not None}
    assert run(tmp_path, "sh", "-c", "echo runs", env=kept).stdout.split() == [
        "runs" if goes else "records"
    ]


def test_without_a_node_s_name_a_step_is_its_own(tmp_path: Path) -> None:
    (tmp_path / "tell.py").write_text("print('records')\n")
    jobs = f"{sys.executable}:{tmp_path}/tell.py"
    own = {"SLURM_JOB_ID": "7"}
    env = {**clean(), **own, "LD_PRELOAD": str(LIBRARY), JOBS: jobs, JOB: identity(own)}
    env |= {"TRACEHINT_RECORD": "/x", "SLURM_STEP_ID": "0"}
    assert run(tmp_path, "sh", "-c", "echo runs", env=env).stdout == "records\n"


@pytest.mark.parametrize(
    "more", [{}, {"SLURM_JOB_ID": ""}, {"SLURM_JOB_ID": "9" * 600}, {**SLURM, JOBS: "nothing"},
             {**SLURM, JOBS: "/nowhere/python:/etc/passwd"},
             {**SLURM, JOBS: f"{sys.executable}:/nowhere"}, {**SLURM, JOBS: ":"},
             {**SLURM, JOBS: "x" * 5000 + ":y"}],
)  # fmt: skip  # a table
def test_other_programs_run_as_ever(tmp_path: Path, more: dict[str, str]) -> None:
    (tmp_path / "tell.py").write_text(TELL)
    jobs = f"{sys.executable}:{tmp_path}/tell.py"
    env = {**clean(), "LD_PRELOAD": str(LIBRARY), JOBS: jobs, **more}
    done = run(tmp_path, "sh", "-c", "echo yes; exit 4", env=env)
    assert (done.returncode, done.stdout, done.stderr) == (4, "yes\n", "")


def test_a_job_is_recorded_once_and_ends_as_ever(tmp_path: Path) -> None:
    folder, env = job(tmp_path)
    script = "cat; echo out >made; sh -c 'cat made >more'; echo said >&2; exit 3"
    done = subprocess.run(
        ["sh", "-c", script], env=env, cwd=tmp_path, input="in\n", capture_output=True, text=True
    )
    assert (done.returncode, done.stdout, done.stderr) == (3, "in\n", "said\n")
    (bundle,) = bundles_in(folder)
    assert jobs_of([bundle]) == {"7"} and not unfinished([bundle])
    assert len([p for p in bundle.rglob("*") if p.is_file()]) <= 15
    rows = read_bundle(bundle).tables["opens"].to_pylist()
    wrote = {r["path"]: r["write_bytes"] for r in rows if r["write_bytes"]}
    assert wrote[os.fsencode(tmp_path / "made")] == wrote[os.fsencode(tmp_path / "more")] == 4
    assert read_bundle(bundle).manifest.exit_status == 3


def test_a_step_of_a_job_is_a_recording_of_its_own(tmp_path: Path) -> None:
    folder, env = job(tmp_path)
    for step in ("0", "1"):
        run(tmp_path, "sh", "-c", f"echo {step} >s{step}", env={**env, "SLURM_STEP_ID": step})
    assert len(bundles_in(folder)) == 2 and jobs_of(bundles_in(folder)) == {"7"}


def test_a_signal_ends_a_job_as_ever(tmp_path: Path) -> None:
    folder, env = job(tmp_path)
    assert run(tmp_path, "sh", "-c", "kill -9 $$", env=env).returncode == -9
    assert not unfinished(bundles_in(folder))


@pytest.mark.parametrize("how", ["no room", "no tracehint", "login shell", "gone"])
def test_a_job_that_cannot_be_recorded_runs(tmp_path: Path, how: str) -> None:
    folder, env = job(tmp_path)
    script, name = folder / "recorder.py", "sh"
    if how == "no room":
        (folder / "recorder.py").write_text(
            script.read_text().replace("os.path.dirname(os.path.abspath(__file__))", "'/dev/full'")
        )
    elif how == "no tracehint":
        text = script.read_text()
        script.write_text(text.replace("from tracehint.commands", "from tracehint.nothing"))
    elif how == "gone":
        script.unlink()
    else:
        name = "-sh"
    done = subprocess.run(
        [name, "-c", "echo yes; exit 6"], executable="/bin/sh", env=env, cwd=tmp_path,
        capture_output=True, text=True,
    )  # fmt: skip  # a table
    assert (done.returncode, done.stdout, done.stderr) == (6, "yes\n", "")
    assert not bundles_in(folder)


def test_a_program_of_a_virtual_environment_stays_in_it(tmp_path: Path) -> None:
    folder, env = job(tmp_path)
    done = run(tmp_path, sys.executable, "-c", "import sys; print(sys.prefix)", env=env)
    assert done.stdout.strip() == sys.prefix
    assert len(bundles_in(folder)) == 1


def test_a_program_that_breaks_below_a_library_runs_beside_jobs(tmp_path: Path) -> None:
    """On the submitting node, where nothing else of the library is on."""
    folder, env = job(tmp_path)
    outside = {k: v for k, v in env.items() if k not in SLURM}
    (tmp_path / "p.c").write_text("int main(void) { return 5; }\n")
    built = run(tmp_path, "gcc", "-fsanitize=address", "-o", "p", "p.c", env=clean())
    if built.returncode:
        pytest.skip("no AddressSanitizer")
    done = run(tmp_path, "sh", "-c", "./p", env=outside)
    assert (done.returncode, done.stderr) == (5, "")
    assert not bundles_in(folder)
