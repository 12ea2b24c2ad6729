"""Jobs of a running workflow are submitted to a node, or unchanged."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.support.bundles import RunBuilder
from tests.support.needs import needs_preload
from tests.support.patience import PATIENCE_S, until
from tracehint.adapters.place import submissions
from tracehint.adapters.place.dispatch import PlacedTask
from tracehint.adapters.place.hosts import Host
from tracehint.adapters.place.job_commands import KnownJobs, known_jobs
from tracehint.adapters.place.submissions import Submissions, submitting
from tracehint.adapters.place.submitter import read_job, restricts_nodes
from tracehint.analyzer.model import Options
from tracehint.collectors.preload.library import LIBRARY
from tracehint.hintgen.inputs import load_run

NODES = tuple(Host(name=name, slots=1, link_mbit=8.0) for name in "ab")  # 1 MB/s
SORT, JOIN = PlacedTask(1, {}, (1,)), PlacedTask(None, {1: 500})
KNOWN = KnownJobs(
    {(b"sort", b"a"): {(b"sort", b"a"): SORT}, (b"join", b"a"): {(b"join", b"a", b"c"): JOIN}}
)


@pytest.mark.parametrize(
    "words",
    ["-w a", "-wa", "--nodelist=a", "--nodel=a", "-x a", "-Hx a", "-C gpu", "-N 2", "-N2-4", "-n 4",
     "--nodes 2", "--ntasks=3", "-a 1-3", "--arr=1", "-W", "-QW", "-d afterok:1", "-M other"],
)  # fmt: skip  # a table
def test_who_says_where_a_job_runs_is_left_alone(words: str, tmp_path: Path) -> None:
    assert restricts_nodes(words.split())
    script = tmp_path / "job.sh"
    script.write_text(f"#!/bin/sh\n#SBATCH -J x\n#SBATCH {words}  # why\nsort a\n")
    assert not read_job(["-J", "y", str(script)], {})
    script.write_text("#!/bin/sh\n#SBATCH -J x\nsort a\n")
    assert b"sort a" in read_job(["-J", "y", str(script), *words.split()], {})  # its arguments


def test_what_a_job_is_known_by(tmp_path: Path) -> None:
    words = "-N 1 -n 1 -c 1 -D . -o /dev/null -p long --mem=3G --export=ALL -J makeflow0"
    usual = words.split()
    assert not restricts_nodes(usual)
    assert read_job([*usual, "./slurm.wrapper"], {"BATCH_JOB_COMMAND": "sort a"}) == b"sort a"
    assert not read_job(usual, {"BATCH_JOB_COMMAND": "sort a", "SBATCH_CONSTRAINT": "gpu"})
    wrap = "--wrap=python -m snakemake --target-jobs 'count:s=a' x"
    assert KNOWN.find(read_job(["--wrap=(cd x && sort 'a')"], {})) is SORT
    assert wrap.encode() in read_job([wrap], {})
    for name, text in (
        (".command.run", "#!/bin/bash\nnxf_main\n"),
        (".command.sh", "#!/b\nsort a"),
    ):
        (tmp_path / name).write_text(text)
    assert KNOWN.find(read_job([str(tmp_path / ".command.run")], {})) is SORT


def test_a_job_is_the_one_that_ran_the_longest_command_alone(tmp_path: Path) -> None:
    run = RunBuilder()
    engine = run.process(["makeflow", "w.mf"])
    run.process(["sbatch", "x"], parent=engine)
    read = run.file("/data/in.txt", existed=True, size=10)
    for n, name in enumerate("ab"):
        job = run.process(["/bin/sh", "/spool/slurm_script"], start=n + 1, end=n + 2)
        run.process(["date", "+%s"], parent=job, start=n + 1, end=n + 2)
        work = run.process(["sort", "-k", "1", name], parent=job, start=n + 1, end=n + 2)
        again = ["snakemake", "-x", f"/tmp/{n}", "--target-jobs", f"r:{name}"]
        run.process(again, parent=job, start=n + 1, end=n + 2)
        file = run.file(f"/data/{name}.out", existed=False, size=10)
        run.access("read", work, read, 0, 10, at=n + 1.5)
        run.access("write", work, file, 0, 10, at=n + 1.5)
    run.save(tmp_path / "run")
    found = load_run(tmp_path / "run", Options())
    assert found.bundle is not None
    jobs = known_jobs(found.bundle, found.analysis, None)
    one, other = (jobs.find(f"(cd d && sort -k 1 '{n}') > {n}.out".encode()) for n in "ab")
    assert one is not None and other is not None
    assert one.inputs == other.inputs and set(one.outputs).isdisjoint(other.outputs)
    assert jobs.find(b"python snakemake --target-jobs 'r:b' --tmp /tmp/7") is other
    for text in (b"date +%s", b"sort -k 1 c", b"sort -k 1 a; sort -k 1 b", b"makeflow w.mf", b""):
        assert jobs.find(text) is None


def test_the_node_of_a_job_and_when_it_may_leave(monkeypatch: pytest.MonkeyPatch) -> None:
    said: dict[str, str] = {}
    asked: list[tuple[str, ...]] = []

    def ask(*words: str) -> str:
        asked.append(words)
        return said.get(words[0], "")

    monkeypatch.setattr(submissions, "_ask", ask)
    monkeypatch.setattr(submissions, "_MAX_AGE_S", 0.0)
    jobs = Submissions(NODES, KNOWN)
    assert jobs.answer(b"something else") == b""
    assert jobs.answer(b"join a c") == b"0\0"  # the location of its input is unknown
    assert jobs.answer(b"sort a") == b"1\0b"
    jobs.note_submission(b"1", b"77")
    said |= {
        "squeue": "77|PENDING|\n12|PENDING|\n",
        "sinfo": "a|idle|0/2/0/2\nb|allocated|2/0/0/2\n",
    }
    jobs.release()
    assert jobs.released == 0
    jobs.sent[1].since -= submissions.MIN_WAIT_S
    jobs.release()
    assert asked[-1] == ("scontrol", "update", "JobId=77", "ReqNodeList=") and jobs.released == 1
    said["squeue"] = "77|COMPLETED|a\n"
    assert jobs.answer(b"join a c") == b"2\0a"
    assert not [words for words in asked if "JobId=12" in words]
    jobs.steal = False
    assert jobs.answer(b"sort a") == b"3\0b"
    jobs.note_submission(b"3", b"78")
    jobs.sent[3].since -= submissions.MIN_WAIT_S
    said["squeue"] = "78|PENDING|\n"
    jobs.release()
    assert jobs.released == 1
    jobs.sent[3].since -= submissions.MAX_WAIT_S
    said["sinfo"] = ""
    jobs.release()
    assert jobs.released == 2


def answers(monkeypatch: pytest.MonkeyPatch, **said: str) -> dict[str, str]:
    """Replace the output of Slurm's commands by name; the returned table can be modified."""
    monkeypatch.setattr(submissions, "_ask", lambda *words: said.get(words[0], ""))
    return said


def test_a_job_that_ended_a_moment_ago_is_where_its_reader_goes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Regardless of when the queue was last queried, although the job was pending then."""
    said = answers(monkeypatch, squeue="77|PENDING|\n")
    jobs = Submissions((NODES[0], NODES[1]), KNOWN)
    jobs.answer(b"sort a")
    jobs.note_submission(b"0", b"77")
    assert jobs.answer(b"join a c") == b"1\0"
    said["squeue"] = "77|COMPLETED|a\n"
    assert jobs.answer(b"join a c") == b"2\0a"


def test_a_requeued_job_gets_rid_of_a_node_that_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    said = answers(monkeypatch, squeue="77|RUNNING|b\n")
    jobs = Submissions(NODES, KNOWN)
    jobs.answer(b"sort a")
    jobs.note_submission(b"0", b"77")
    jobs.release()
    assert jobs.pause and not jobs.sent[0].waits
    said["squeue"] = "77|PENDING|\n"
    jobs.sent[0].since -= submissions.MAX_WAIT_S
    jobs.release()
    assert jobs.released == 1 and jobs.sent[0].node is None
    said["squeue"] = "77|RUNNING|a\n"
    assert jobs.answer(b"join a c") == b"1\0a"


@pytest.mark.parametrize("answered", [True, False])
def test_jobs_that_slurm_does_not_free_are_tried_again(
    monkeypatch: pytest.MonkeyPatch, *, answered: bool
) -> None:
    """Other jobs are released first; if retries fail, the command to type is printed."""
    asked: list[str] = []

    def ask(*words: str) -> str | None:
        if words[0] != "scontrol":
            return "77|PENDING|\n78|PENDING|\n"
        asked.append(words[2])
        busy = words[2] == "JobId=77" and not (answered and len(asked) > 2)
        return None if busy else ""

    monkeypatch.setattr(submissions, "_ask", ask)
    monkeypatch.setattr(submissions, "_CHECK_S", 0.0)
    monkeypatch.setattr(submissions, "_RELEASE_S", PATIENCE_S if answered else 0.0)
    jobs = Submissions(NODES, KNOWN)
    for number in (b"77", b"78"):
        jobs.note_submission(jobs.answer(b"sort a").partition(b"\0")[0], number)
    jobs.release(every=True)
    assert asked == ["JobId=77"] and not jobs.released and len(jobs.bound) == 2
    jobs.release_all()
    assert asked[1] == "JobId=78" and asked[2:3] == ["JobId=77"]
    assert jobs.released == 2 - (not answered) and bool(jobs.problem) is not answered
    assert answered or jobs.problem.endswith(": scontrol update JobId=77 ReqNodeList=")


def test_what_was_not_submitted_waits_for_no_node(monkeypatch: pytest.MonkeyPatch) -> None:
    """An sbatch that failed, and one that was killed."""
    answers(monkeypatch, squeue="12|PENDING|\n")
    jobs = Submissions(NODES, KNOWN)
    for ticket in range(submissions.PER_SLOT):
        jobs.answer(b"sort a")
        jobs.note_submission(b"%d" % ticket, b"")
    assert jobs.pause is None and not str(jobs)
    for _ in range(submissions.PER_SLOT):
        assert jobs.answer(b"sort a").endswith(b"b")
        jobs.sent[-1].since -= submissions.MAX_WAIT_S + 1
    assert jobs.answer(b"sort a").endswith(b"b")


def test_no_more_jobs_wait_for_a_node_than_it_starts_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(submissions, "_ask", lambda *_: "")
    jobs = Submissions(NODES, KNOWN)
    found = [jobs.answer(b"sort a").partition(b"\0")[2] for _ in range(submissions.PER_SLOT + 2)]
    assert found == [b"b"] * submissions.PER_SLOT + [b"", b""]


SBATCH = """#!/bin/sh
echo "$@" >> calls
case "$1" in
--nodelist=*) [ -e refuse ] && { cat refuse >&2; exit 1; } ;;
esac
[ -e fail ] && { echo "sbatch: error: Socket timed out" >&2; exit 3; }
echo warning >&2
echo "Submitted batch job 4711"
"""


def submit(folder: Path, env: Mapping[str, str], *words: str) -> subprocess.CompletedProcess[str]:
    """Run sbatch as an engine does, which looks for it in PATH."""
    path = f"/no-such-folder:{folder}/empty:{folder}/bin:{os.environ['PATH']}"
    env = {**os.environ, "LD_PRELOAD": str(LIBRARY), **env, "PATH": path}
    return subprocess.run(
        ["sh", "-c", 'sbatch "$@"; exit $?', "sh", *words], cwd=folder, env=env, text=True,
        capture_output=True, timeout=PATIENCE_S, stdin=subprocess.DEVNULL,
    )  # fmt: skip  # a table


@pytest.mark.slow
@needs_preload()
def test_sbatch_is_what_it_is_without(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Words, output and exit code are unchanged. Known jobs get a node; if Slurm rejects it, the
    job is submitted without one."""
    monkeypatch.setattr(submissions, "_ask", lambda *_: "")
    (tmp_path / "empty").mkdir()
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/sbatch").write_text(SBATCH)
    (tmp_path / "bin/sbatch").chmod(0o755)
    calls = tmp_path / "calls"

    def called() -> list[str]:
        lines = calls.read_text().splitlines()
        calls.unlink()
        return lines

    with submitting(NODES, KNOWN, steal=True) as jobs:
        sort, other = (["-J", "x y", f"--wrap={text}"] for text in ("sort a", "cut b"))
        done = submit(tmp_path, jobs.environment, *sort)
        plain = "-J x y --wrap=sort a"
        assert (done.returncode, done.stdout) == (0, "Submitted batch job 4711\n"), done
        assert done.stderr == "warning\n"
        assert called() == [f"--nodelist=b {plain}"]
        until(lambda: [job.number for job in jobs.sent] == [b"4711"], "its number is reported")
        for left in (other, ["-w", "a", *sort], ["--array=1-2", *sort]):
            assert submit(tmp_path, jobs.environment, *left).stdout == done.stdout
            assert called() == [" ".join(left)]
        (tmp_path / "refuse").write_text("sbatch: error: Batch job submission failed: no such node")
        assert submit(tmp_path, jobs.environment, *sort).stdout == done.stdout
        assert called() == [f"--nodelist=b {plain}", plain]
        (tmp_path / "refuse").write_text("sbatch: error: Batch job submission failed: timed out")
        assert submit(tmp_path, jobs.environment, *sort).returncode == 1
        assert called() == [f"--nodelist=b {plain}"]
        (tmp_path / "fail").touch()
        assert submit(tmp_path, jobs.environment, *other).returncode == 3
        (tmp_path / "fail").unlink()
        calls.unlink()
        monkeypatch.setattr(jobs, "answer", lambda _: b"9")
        assert submit(tmp_path, jobs.environment, *sort).stdout == done.stdout
        assert called() == [plain]
    assert submit(tmp_path, jobs.environment, *sort).stdout == done.stdout  # no dispatcher
    assert called() == [plain]
    monkeypatch.setattr(sys, "path", [])
    with submitting(NODES, KNOWN, steal=True) as jobs:  # the program's modules cannot be imported
        assert submit(tmp_path, jobs.environment, *sort).stdout == done.stdout
    assert called() == [plain]


KILLED = """
import sys, time
from tests.test_place_submissions import KNOWN, NODES
from tracehint.adapters.place.submissions import submitting
with submitting(NODES, KNOWN, steal=True) as jobs:
    for number in (b"4711", b"4712", b"4713"):
        jobs.note_submission(jobs.answer(b"sort a").partition(bytes(1))[0], number)
    print("submitted", flush=True)
    sys.stdin.read()
"""


def test_waiting_jobs_of_a_run_that_is_killed_get_rid_of_their_node(tmp_path: Path) -> None:
    """The waiting jobs of the run are released from their node."""
    programs = {"squeue": "printf '%s\\n' 4700 4711 4713", "scontrol": 'echo "$@" >>calls'}
    for name, text in programs.items():
        (tmp_path / name).write_text(f"#!/bin/sh\ncd {tmp_path}; {text}\n")
        (tmp_path / name).chmod(0o755)
    process = subprocess.Popen(
        [sys.executable, "-c", KILLED], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        cwd=Path(__file__).parents[1], start_new_session=True,
        env={**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"},
    )  # fmt: skip  # a table
    assert process.stdout and process.stdout.readline() == b"submitted\n"
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate(timeout=PATIENCE_S)
    calls = tmp_path / "calls"
    until(lambda: calls.exists() and len(calls.read_text().splitlines()) == 2, "both are free")
    updates = [f"update JobId={number} ReqNodeList=" for number in (4711, 4713)]
    assert calls.read_text().splitlines() == updates


def test_nodes_with_free_processors(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = "a|idle|0/4/0/4\nb|completing|3/1/0/4\nc|allocated|4/0/0/4\n"
    lines += "d|down*|0/0/4/4\ne|drained|0/4/0/4\n"
    monkeypatch.setattr(submissions, "_ask", lambda *_: lines)
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)
    assert [(host.name, host.slots) for host in submissions.batch_nodes()] == [("a", 4), ("b", 1)]
    monkeypatch.setenv("SLURM_JOB_ID", "1")
    assert submissions.batch_nodes() == ()
