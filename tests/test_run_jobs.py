"""The first program of a batch system's job becomes its recorder (collectors/preload/job).

The environment of a batch system is simulated; tests/e2e/test_run_slurm.py uses a real one.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import zlib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.cli import TRACEHINT
from tests.support.needs import needs_preload
from tests.support.patience import PATIENCE_S
from tracehint.app.jobs import _join_jobs, join_late
from tracehint.collectors.preload import jobs
from tracehint.collectors.preload.jobs import (
    JOB,
    JOBS,
    VARIABLES,
    find_unfinished,
    identity,
    jobs_environment,
    jobs_of,
    recordings_in,
    wait_for_jobs,
)
from tracehint.collectors.preload.library import LIBRARY
from tracehint.errors import TracehintError
from tracehint.schemas.spool.convert import convert_arena
from tracehint.schemas.spool.packed import read_packed
from tracehint.schemas.store import read_bundle

pytestmark = [pytest.mark.slow, needs_preload()]
SLURM = {"SLURM_JOB_ID": "7", "SLURM_PROCID": "0", "SLURMD_NODENAME": "node1"}
TELL = "import json, os, sys; print(json.dumps([sys.argv, dict(os.environ)]))\n"


def clean() -> dict[str, str]:
    """Return the environment without variables of batch jobs."""
    left_out = {*VARIABLES, "SLURM_ARRAY_JOB_ID", JOB, JOBS, "LD_PRELOAD"}
    return {k: v for k, v in os.environ.items() if k not in left_out}


def run(
    folder: Path, *command: str, env: Mapping[str, str], cwd: Path | None = None
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, env=dict(env), cwd=cwd or folder, capture_output=True, text=True)


def job(tmp_path: Path) -> tuple[Path, dict[str, str]]:
    """Return a folder for recordings, and the environment of a job that refers to it."""
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


STEPS = {  # changed variables of a process in a job -> whether it uses the job's recorder
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
    (bundle,) = recordings_in(folder)
    assert jobs_of([bundle]) == {"7"} and not find_unfinished([bundle])
    assert bundle.is_file() and bundle.stat().st_mode & 0o777 == 0o600
    rows = read_bundle(bundle).tables["opens"].to_pylist()
    wrote = {r["path"]: r["write_bytes"] for r in rows if r["write_bytes"]}
    assert wrote[os.fsencode(tmp_path / "made")] == wrote[os.fsencode(tmp_path / "more")] == 4
    assert read_bundle(bundle).manifest.exit_status == 3


def test_a_job_without_standard_streams_ends_as_ever(tmp_path: Path) -> None:
    folder, env = job(tmp_path)
    done = subprocess.run(
        ["sh", "-c", "echo out >made; exit 3"], env=env, cwd=tmp_path,
        preexec_fn=lambda: os.closerange(0, 3),
    )  # fmt: skip  # a table
    assert done.returncode == 3 and (tmp_path / "made").is_file()
    (recording,) = recordings_in(folder)
    assert not find_unfinished([recording])


def test_a_step_of_a_job_is_a_recording_of_its_own(tmp_path: Path) -> None:
    folder, env = job(tmp_path)
    for step in ("0", "1"):
        run(tmp_path, "sh", "-c", f"echo {step} >s{step}", env={**env, "SLURM_STEP_ID": step})
    assert len(recordings_in(folder)) == 2 and jobs_of(recordings_in(folder)) == {"7"}


def test_a_job_that_is_killed_with_its_recorder_leaves_nothing_on_the_node(tmp_path: Path) -> None:
    """Its recording is known to be missing; its file remains empty."""
    folder, env = job(tmp_path)
    local = tmp_path / "local"
    local.mkdir()
    env |= {"TMPDIR": str(local)}
    shell = "echo begun >begun; kill -9 $PPID $$"
    run(tmp_path, "sh", "-c", shell, env=env)
    assert (tmp_path / "begun").is_file()
    assert [path.stat().st_size for path in find_unfinished(recordings_in(folder))] == [0]
    assert not list(local.iterdir())


def test_a_job_writes_to_the_shared_directory_at_its_ends_only(tmp_path: Path) -> None:
    folder, env = job(tmp_path)
    shell = f"ls -s {folder} >during; sort during"
    run(tmp_path, "sh", "-c", shell, env=env)
    sizes = {line.split()[1]: int(line.split()[0]) for line in
             (tmp_path / "during").read_text().splitlines()[1:]}  # fmt: skip  # a table
    assert [size for name, size in sizes.items() if name.endswith(".job")] == [0]
    (recording,) = recordings_in(folder)
    assert recording.stat().st_size < 64 << 10


def test_the_recorder_of_a_job_loads_neither_numpy_nor_arrow() -> None:
    """Loading them would take longer than the rest of recording a small job."""
    script = (
        "import sys, tracehint.collectors.preload.job_recorder\n"
        "print({'numpy', 'pyarrow', 'duckdb', 'click'} & sys.modules.keys())"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stdout == "set()\n", done.stderr


def test_links_of_the_node_are_resolved_there(tmp_path: Path) -> None:
    """Where recordings are joined, the links may be gone or have other targets."""
    folder, env = job(tmp_path)
    (tmp_path / "store").mkdir()
    (tmp_path / "store/in").write_text("1\n")
    scratch = tmp_path / "scratch"
    shell = (
        f"ln -s {tmp_path}/store {scratch}; ln -s {tmp_path}/store/in staged; cat staged; "
        f"cp {scratch}/in {scratch}/out; cd {scratch}; cat ../staged"
    )
    run(tmp_path, "sh", "-c", shell, env=env)
    scratch.unlink()
    (tmp_path / "staged").unlink()
    (recording,) = recordings_in(folder)
    packed = read_packed(recording)
    elsewhere = replace(packed, start={**packed.start, "boot_id": "another"})
    tables = convert_arena(
        elsewhere.arena, elsewhere.start, elsewhere.end, elsewhere.manifest, "x", elsewhere.links
    )
    opened = {row["path"] for row in tables["opens"].to_pylist()}
    store = os.fsencode(tmp_path / "store")
    assert {store + b"/in", store + b"/out"} <= opened
    assert not [path for path in opened if b"scratch" in path or b"staged" in path]


@pytest.mark.parametrize("how", ["empty", "cut", "no recording", "more behind it", "a bomb"])
def test_a_damaged_recording_of_a_job_is_named(tmp_path: Path, how: str) -> None:
    folder, env = job(tmp_path)
    run(tmp_path, "sh", "-c", "cat /etc/passwd >x", env=env)
    (recording,) = recordings_in(folder)
    data = recording.read_bytes()
    head, _, packed = data.partition(b"\n")
    recording.write_bytes({
        "empty": b"", "cut": data[:-9], "no recording": b"{}\n" + packed,
        "more behind it": data + b"more", "a bomb": head + b"\n" + zlib.compress(bytes(1 << 28)),
    }[how])  # fmt: skip  # a table
    with pytest.raises(TracehintError) as caught:
        read_bundle(recording)
    assert recording.name in str(caught.value)


def recorded_run(tmp_path: Path) -> tuple[Path, Path]:
    """Return the bundle of a run, and the folder with the recordings of its two jobs."""
    state = tmp_path / ".tracehint/runs"
    state.mkdir(parents=True)
    state.parent.chmod(0o700)
    folder, bundle = state / "jobs-x", state / "0001.trace"
    folder.mkdir()
    env = {**clean(), **jobs_environment(folder), **SLURM}
    for step in ("0", "1"):
        run(tmp_path, "sh", "-c", f"echo {step} >s{step}", env={**env, "SLURM_STEP_ID": step})
    record = [*TRACEHINT, "record", "--collector", "preload", "-o"]
    run(tmp_path, *record, str(bundle), "--", "sh", "-c", "echo own >own", env=clean())
    return bundle, folder


def written(bundle: Path) -> set[bytes]:
    """Return the names of the files that were written."""
    rows = read_bundle(bundle).tables["opens"].to_pylist()
    return {row["path"].rpartition(b"/")[2] for row in rows if row["write_bytes"]}


def test_a_recording_that_cannot_be_read_is_kept(tmp_path: Path) -> None:
    bundle, folder = recorded_run(tmp_path)
    bad, good = recordings_in(folder)
    bad.write_bytes(bad.read_bytes()[:-20])
    said = _join_jobs(bundle, [bad, good])
    assert said[0] == "1 recording of jobs on 1 host joined"
    assert bad.name in said[1] and said[2] == f"1 recording with problems: kept in {folder}"
    assert recordings_in(folder) == [bad]
    assert written(bundle) == {b"own", b"s1"}


def test_recordings_of_a_damaged_run_are_kept(tmp_path: Path) -> None:
    bundle, folder = recorded_run(tmp_path)
    next((bundle / "opens").rglob("*.parquet")).write_bytes(b"damaged")
    before = recordings_in(folder)
    (said,) = _join_jobs(bundle, before)
    assert "were not joined" in said and str(folder) in said
    assert recordings_in(folder) == before


def test_late_recordings_are_joined_by_the_next_run(tmp_path: Path) -> None:
    bundle, folder = recorded_run(tmp_path)
    join_late(tmp_path, quiet=True)
    assert len(recordings_in(folder)) == 2  # the run has not ended
    (folder / "run").write_text(bundle.name)
    (folder / "9.vm.1.job").touch()  # of a running job
    join_late(tmp_path, quiet=True)
    assert [path.name for path in recordings_in(folder)] == ["9.vm.1.job"]
    assert written(bundle) == {b"own", b"s0", b"s1"}
    (folder / "9.vm.1.job").unlink()
    join_late(tmp_path, quiet=True)
    assert not folder.exists()


@pytest.mark.parametrize(("queue", "seconds"), [("8", 0.0), ("7\n8", 1.0), ("", 0.0)])
def test_a_recording_of_a_job_that_is_gone_is_not_waited_for(
    queue: str, seconds: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "squeue").write_text(f"#!/bin/sh\necho '{queue}'\n")
    (tmp_path / "squeue").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.setattr(jobs, "_VISIBLE_S", 0.5)
    (tmp_path / "7.node1.1.job").touch()
    begin = time.monotonic()
    assert len(wait_for_jobs(tmp_path, 1.0 if seconds else PATIENCE_S)) == 1
    assert seconds <= time.monotonic() - begin < PATIENCE_S


def test_a_signal_ends_a_job_as_ever(tmp_path: Path) -> None:
    folder, env = job(tmp_path)
    assert run(tmp_path, "sh", "-c", "kill -9 $$", env=env).returncode == -9
    assert not find_unfinished(recordings_in(folder))


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
        script.write_text(text.replace("from tracehint.collectors", "from tracehint.nothing"))
    elif how == "gone":
        script.unlink()
    else:
        name = "-sh"
    done = subprocess.run(
        [name, "-c", "echo yes; exit 6"], executable="/bin/sh", env=env, cwd=tmp_path,
        capture_output=True, text=True,
    )  # fmt: skip  # a table
    assert (done.returncode, done.stdout, done.stderr) == (6, "yes\n", "")
    assert not recordings_in(folder)


def test_a_program_of_a_virtual_environment_stays_in_it(tmp_path: Path) -> None:
    folder, env = job(tmp_path)
    done = run(tmp_path, sys.executable, "-c", "import sys; print(sys.prefix)", env=env)
    assert done.stdout.strip() == sys.prefix
    assert len(recordings_in(folder)) == 1


def test_a_program_that_breaks_below_a_library_runs_beside_jobs(tmp_path: Path) -> None:
    """On the submitting node, where no other part of the library is active."""
    folder, env = job(tmp_path)
    outside = {k: v for k, v in env.items() if k not in SLURM}
    (tmp_path / "p.c").write_text("int main(void) { return 5; }\n")
    built = run(tmp_path, "gcc", "-fsanitize=address", "-o", "p", "p.c", env=clean())
    if built.returncode:
        pytest.skip("no AddressSanitizer")
    done = run(tmp_path, "sh", "-c", "./p", env=outside)
    assert (done.returncode, done.stderr) == (5, "")
    assert not recordings_in(folder)


LEAVES = """
import os
from pathlib import Path
from tracehint.collectors.preload import record

lingered = []
def wait(seconds, own):
    lingered.append(seconds)
    return len(record._children() - own)
record._wait_for_orphans = wait
try:
    print(record.record_job(("sh", "-c", "sleep 600 & exit 3"), Path("1.node.1.job")).status)
    print(max(lingered) < 0.1)
finally:
    for pid in record._children():
        os.kill(pid, 9)
"""


def test_what_a_job_leaves_behind_does_not_keep_its_slot(tmp_path: Path) -> None:
    (tmp_path / "1.node.1.job").touch()
    done = run(tmp_path, sys.executable, "-c", LEAVES, env=clean())
    assert (done.stdout, done.stderr) == ("3\nTrue\n", "")
    assert read_packed(tmp_path / "1.node.1.job").end["outlived"] == 1
