"""Names set by users, attempts, batch jobs, declared tasks, damaged and hostile input."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.support.bundles import RunBuilder, ns
from tests.support.hostile import HOSTILE_NAMES
from tests.support.trees import SUB, P, grow
from tests.test_tasks import cut, engines, jobs, names
from tracehint.adapters.engines.graphs import load_reader
from tracehint.adapters.engines.registry import READERS
from tracehint.analyzer.model import TASKS, Segmentation
from tracehint.analyzer.run import find_requests
from tracehint.analyzer.tasks.declared import _row, declared_only
from tracehint.analyzer.tasks.describe import describe, plain_descriptions
from tracehint.analyzer.tasks.engine_processes import ENGINES
from tracehint.analyzer.tasks.segmentation import segment_tasks
from tracehint.schemas.manifest import Manifest, RecordingHost
from tracehint.schemas.store import Bundle, read_bundle
from tracehint.schemas.tables import TABLES


def build(tmp_path: Path, *roots: P) -> Segmentation:
    run = RunBuilder()
    for root in roots:
        grow(run, root)
    return cut(tmp_path, run)


def test_named_tasks_win_and_take_the_shell_around_them(tmp_path: Path) -> None:
    tree = P(
        ["makeflow", "wf.mf"],
        P(
            ["sh", "-c", "./w 1 prog"],
            P(["./w", "1", "prog"], P(["prog"], env={"TRACEHINT_TASK": "align_1"})),
        ),
        P(["sh", "-c", "plain"]),
    )
    result = build(tmp_path, tree)
    assert [(t["name"], t["type"], t["processes"]) for t in jobs(result)] == [
        ("align_1", "align", 3),
        ("plain", "plain", 1),
    ]


def test_a_worker_of_several_named_tasks_is_an_engine(tmp_path: Path) -> None:
    def named(name: str, **more: Any) -> P:
        return P(["prog"], env={"TRACEHINT_TASK": name}, **more)

    result = build(tmp_path, P(["sh", "wf.sh"], P(["worker"], named("a"), named("b"), named("a"))))
    assert names(result) == ["a", "b"]
    assert engines(result) == ["wf.sh", "worker"]


def test_a_named_task_that_failed_before_gets_a_new_attempt(tmp_path: Path) -> None:
    def named(code: int) -> P:
        return P(["prog"], env={"TRACEHINT_TASK": "a"}, exit_code=code)

    result = build(tmp_path, P(["sh", "wf.sh"], named(1), named(0), named(0)))
    assert [(t["name"], t["attempt"], t["exit_status"]) for t in jobs(result)] == [
        ("a", 1, 1),
        ("a", 2, 0),
    ]


def test_marks_name_the_children_of_a_worker_by_time(tmp_path: Path) -> None:
    run = RunBuilder()
    kids = [P(["p"], start=t, end=t + 0.5) for t in (1.0, 3.0, 5.0)]
    root = grow(run, P(["python3", "worker.py"], *kids, start=0.0, end=9.0))
    for at, kind, name in (
        (0.9, "task_begin", "x"),
        (2.0, "task_end", "x"),
        (2.9, "task_begin", "y"),
        (4.0, "task_end", "y"),
    ):
        run._add("marks", t_ns=ns(at), proc=root.procs[-1], pid=1, kind=kind, name=name, source="t")
    result = cut(tmp_path, run)
    by_name = {t["name"]: t for t in result.tasks.to_pylist()}
    assert (by_name["x"]["start_s"], by_name["y"]["start_s"]) == (1.0, 3.0)
    assert len(by_name) == 4  # plus the worker, and the child outside both


def test_each_job_of_a_batch_system_is_a_task(tmp_path: Path) -> None:
    def job(number: int) -> P:
        env = {"SLURM_JOB_ID": str(number), "SLURM_ARRAY_TASK_ID": str(number - 7)}
        script = ["/bin/bash", "/var/spool/slurmd/job00007/slurm_script"]
        return P(script, P(["sort", "a"], env=env), P(["uniq"], env=env), env=env)

    driver = P(["makeflow", "-T", "slurm", "wf.mf"], P(["sh", "-c", "sbatch x"], P(["sbatch"])))
    result = build(tmp_path, driver, job(7), job(8))
    assert [(t["name"], t["processes"]) for t in jobs(result)] == [("job 7_0", 3), ("job 8_1", 3)]


def batch(tmp_path: Path, *envs: dict[str, str]) -> list[str]:
    """Return the task names of one recording per environment, each of a shell and a program."""
    folder = tmp_path / str(len(list(tmp_path.iterdir())))
    folder.mkdir()
    result = build(folder, *(P(["bash", "s"], P(["sort"], env=e), env=e) for e in envs))
    return [str(t["name"]) for t in jobs(result)]


def slurm(job: int, **more: int | str) -> dict[str, str]:
    return {"SLURM_JOB_ID": str(job), **{f"SLURM_{k}": str(v) for k, v in more.items()}}


def test_an_array_is_named_as_slurm_names_it(tmp_path: Path) -> None:
    elements = [slurm(7 + i, ARRAY_JOB_ID=7, ARRAY_TASK_ID=i, PROCID=0) for i in (1, 2)]
    assert batch(tmp_path, *elements, slurm(12, PROCID=0)) == ["job 7_1", "job 7_2", "job 12"]


def test_steps_of_a_job_and_their_processes_are_tasks(tmp_path: Path) -> None:
    steps = [slurm(7, STEP_ID=0, PROCID=0), slurm(7, STEP_ID=1, PROCID=0)]
    assert batch(tmp_path, *steps) == ["job 7.0", "job 7.1"]
    farm = [slurm(7, STEP_ID=0, PROCID=n) for n in range(3)]
    assert batch(tmp_path, *farm, slurm(7, STEP_ID=1, PROCID=0), slurm(8, PROCID=0)) == [
        "job 7.0 task 0",
        "job 7.0 task 1",
        "job 7.0 task 2",
        "job 7.1",
        "job 8",
    ]


@pytest.mark.parametrize("variable", ["PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK"])
def test_ranks_of_an_mpi_step_are_one_task(tmp_path: Path, variable: str) -> None:
    ranks = [slurm(7, STEP_ID=0, PROCID=n) | {variable: str(n)} for n in range(3)]
    assert batch(tmp_path, *ranks, slurm(8)) == ["job 7.0", "job 8"]


def test_jobs_of_pbs_and_lsf_are_tasks(tmp_path: Path) -> None:
    array = [{"PBS_JOBID": f"12[{i}].head", "PBS_ARRAY_INDEX": str(i)} for i in (1, 2)]
    assert batch(tmp_path, *array, {"PBS_JOBID": "13.head"}) == [
        "job 12[1].head",
        "job 12[2].head",
        "job 13.head",
    ]
    lsf = [{"LSB_JOBID": "7", "LSB_JOBINDEX": str(i)} for i in (1, 2)]
    assert batch(tmp_path, *lsf, {"LSB_JOBID": "8", "LSB_JOBINDEX": "0"}) == [
        "job 7[1]",
        "job 7[2]",
        "job 8",
    ]


def test_a_whole_run_inside_one_batch_job_is_cut_as_ever(tmp_path: Path) -> None:
    env = {"SLURM_JOB_ID": "7"}
    tree = P(["sh", "wf.sh"], P(["a"], env=env), P(["b"], env=env), env=env)
    assert names(build(tmp_path, tree)) == ["a", "b"]


@pytest.mark.parametrize(
    ("envs", "cores", "memory"),
    [
        ([slurm(7, CPUS_ON_NODE=4, MEM_PER_NODE=2000), slurm(8, CPUS_ON_NODE=1)], 4, 2000),
        ([slurm(n, CPUS_ON_NODE=4, MEM_PER_CPU=500, MEM_PER_NODE=0) for n in (7, 8)], 4, 2000),
        ([slurm(7, STEP_ID=0, PROCID=n, CPUS_ON_NODE=6) for n in range(3)], 2, None),
        ([slurm(n, CPUS_ON_NODE=text) for n, text in ((7, "9" * 99), (8, "4(x2)"))], None, None),
        ([slurm(7), slurm(8)], None, None),
    ],
)
def test_what_slurm_gave_a_job_is_what_its_task_requested(
    envs: list[dict[str, str]], cores: int | None, memory: int | None, tmp_path: Path
) -> None:
    run = RunBuilder()
    for env in envs:
        grow(run, P(["bash", "s"], P(["sort"], env=env), env=env))
    bundle = run.bundle(tmp_path)
    found = find_requests(bundle, segment_tasks(bundle))
    wanted = {"cores": cores, "memory_bytes": memory and memory << 20}
    stated = {name: value for name, value in wanted.items() if value is not None}
    assert list(found.values()) == [stated] * bool(stated)


def test_what_an_engine_starts_inside_a_job_requested_nothing(tmp_path: Path) -> None:
    run, env = RunBuilder(), slurm(7, CPUS_ON_NODE=16)
    grow(run, P(["make"], P(["sort", "a"], env=env), P(["sort", "b"], env=env), env=env))
    bundle = run.bundle(tmp_path)
    assert find_requests(bundle, segment_tasks(bundle)) == {}


def test_declared_tasks_join_by_pid_text_and_folder(tmp_path: Path) -> None:
    run = RunBuilder()
    kids = (
        P(["sh", "-c", "gen > x"]),
        P(["sh", "-c", "cp  a b"]),
        P(["sh", "-c", "run it"], cwd="/data/w1"),
        P(["sh", "-c", "other"]),
    )
    grow(run, P(["makeflow", "wf.mf"], *kids))
    pid = next(r["pid"] for r in run.rows["processes"] if r["proc"] == kids[0].procs[0])
    run.declared(task="n0", name="x", type="gen", pid=pid, start_ns=ns(0.02))
    run.declared(task="n1", name="b", type="copy", command=b"cp a b")
    run.declared(task="n2", name="c", type="w", workdir=b"/data/w1")
    run.declared(task="n3", name="never", type="z", command=b"not run")
    run.declared(task="n4", name="elsewhere", type="z", command=b"far", exit_status=0)
    result = segment_tasks(run.bundle(tmp_path))
    assert [(t["name"], t["type"], t["source"]) for t in jobs(result)] == [
        ("x", "gen", "both"),
        ("b", "copy", "both"),
        ("c", "w", "both"),
        ("other", "other", "observed"),
        ("elsewhere", "z", "declared"),
    ]
    assert result.declared_task.to_pylist() == [
        {"declared": d, "task": t} for d, t in (("n0", 1), ("n1", 2), ("n2", 3), ("n4", 5))
    ]


def test_recipe_lines_of_one_target_become_one_task(tmp_path: Path) -> None:
    run = RunBuilder()
    lines = (P(["cp", "a", "a.tmp"]), P(["/bin/sh", "-c", "sort a.tmp > x"], exit_code=2), P(["z"]))
    grow(run, P(["make"], *lines))
    run.declared(task="x", name="x", type="x", command=b"@cp a a.tmp\nsort a.tmp > x")
    result = cut(tmp_path, run)
    first, second = jobs(result)
    assert (first["name"], first["processes"], first["exit_status"]) == ("x", 2, 2)
    assert first["command"] == "cp a a.tmp; sort a.tmp > x"
    assert second["name"] == "z"


def test_a_bundle_without_processes_yields_the_declared_tasks(tmp_path: Path) -> None:
    run = RunBuilder()
    run.declared(task="T1", name="", type="", command=b"sort a > b", start_ns=ns(1), end_ns=ns(3))
    result = segment_tasks(run.bundle(tmp_path))
    (task,) = result.tasks.to_pylist()
    assert (task["name"], task["type"], task["source"]) == ("sort a > b", "sort", "declared")
    assert (task["start_s"], task["end_s"]) == (1.0, 3.0)


def test_lost_and_impossible_links_do_not_stop_it(tmp_path: Path) -> None:
    run = RunBuilder()
    a, b, c = (run.process(["sh", "x"], start=float(i)) for i in range(3))
    d = run.process(["sh", "-c", "q"], parent=9999)
    rows = {r["proc"]: r for r in run.rows["processes"]}
    rows[a]["parent"], rows[b]["parent"] = b, a  # each is the other's parent
    rows[c]["prev"] = c
    rows[d]["end_ns"] = None
    result = cut(tmp_path, run)
    assert len(result.tasks) == 4
    assert [t["end_s"] for t in jobs(result) if t["name"] == "q"] == [None]


def test_deep_chains_are_not_recursed_into(tmp_path: Path) -> None:
    run = RunBuilder()
    last = run.process(["sh", "wf.sh"])
    for i in range(3000):
        last = run.process(["sh", f"s{i}.sh"], parent=last, start=float(i))
    assert len(jobs(cut(tmp_path, run))) == 1


def test_empty_bundle(tmp_path: Path) -> None:
    result = segment_tasks(RunBuilder().bundle(tmp_path))
    assert (len(result.tasks), len(result.proc_task)) == (0, 0)


def test_names_from_a_trace_are_safe_to_print(tmp_path: Path) -> None:
    from tests.support.hostile import HOSTILE_NAMES

    run = RunBuilder()
    texts = [n.decode("utf-8", "surrogateescape") for n in HOSTILE_NAMES]
    grow(
        run,
        P(
            ["sh", "wf.sh"],
            *(P(["cat", t]) for t in texts),
            *(P(["sh", "-c", t]) for t in texts),
            P(SUB, *(P([t]) for t in texts)),
        ),
    )
    result = cut(tmp_path, run)
    for task in result.tasks.to_pylist():
        for column in ("name", "type", "command"):
            task[column].encode("utf-8")
            assert all(c.isprintable() for c in task[column]), task


@pytest.mark.parametrize(
    ("argv", "kind"),
    [
        ("sh¦-c¦cat a | tr a b > b", "tr"),
        ("sh¦-c¦/bin/sh /usr/bin/zcat a | wc -l", "wc"),
        ("sh¦-c¦nice zcat a | wc -l", "wc"),
        ("sh¦-c¦nice zcat a", "zcat"),
        ("bash¦-euo¦pipefail¦-c¦cd /x && FOO='a b' ./bin/mProject -X > log 2>&1", "mProject"),
        ("env¦-u¦A¦B=1¦nice¦-n¦5¦python3.11¦-W¦ignore¦/x/align.py¦q", "align.py"),
        ("sh¦-c¦for i in 1 2; do mAdd $i; done", "mAdd"),
        ("sh¦-c¦if [ -e x ]; then sort x; fi", "sort"),
        ("sh¦-c¦'/opt/my tool/run' \"a;b\" # cat", "run"),
        ("java¦-Xmx4g¦-jar¦/opt/gatk.jar¦Call", "gatk.jar"),
        ("mpirun¦-np¦4¦--host¦a,b¦./solver", "solver"),
        ("bash¦-c¦bash -c 'exec /usr/bin/time -v sort q'", "sort"),
        ("tracehint¦task¦n¦--¦uniq", "uniq"),
        ("perl¦-e¦print", "perl"),
        ("Rscript¦--vanilla¦plot.R", "plot.R"),
        ("sh¦-c¦", "sh"),
        ("timeout", "timeout"),
    ],
)
def test_type_of_a_command(argv: str, kind: str) -> None:
    assert describe([w.encode() for w in argv.split("¦")]).type == kind


def test_read_back_from_disk(tmp_path: Path) -> None:
    run = RunBuilder()
    grow(run, P(["sh", "wf.sh"], P(["sort", "a"])))
    assert names(segment_tasks(read_bundle(run.save(tmp_path / "r.trace")))) == ["sort a"]


def test_named_epochs_in_a_cycle(tmp_path: Path) -> None:
    """Regression from random tables: a name without a first process."""
    run = RunBuilder()
    a = run.process(["sh", "x"], env={"TRACEHINT_TASK": "t"})
    b = run.process(["sh", "y"], parent=a, env={"TRACEHINT_TASK": "t"})
    run.rows["processes"][0]["parent"] = b
    assert len(cut(tmp_path, run).tasks) == 2


# -- The reference page lists every engine and every reader


PAGE = (Path(__file__).parent.parent / "docs/reference/tasks.md").read_text()


@pytest.mark.parametrize("engine", [e.name for e in ENGINES if e.name not in ("plumbing", "shell")])
def test_each_engine_is_described(engine: str) -> None:
    assert f"\n| {engine} " in PAGE


@pytest.mark.parametrize("engine", list(READERS))
def test_each_reader_is_described_and_exists(engine: str) -> None:
    assert f"\n| {engine} | {READERS[engine].reads} |\n" in PAGE
    assert callable(load_reader(engine).sniff) and callable(load_reader(engine).read)


# -- Shims of version managers are skipped; forked shells without a program have a name


@pytest.mark.parametrize(
    ("argv", "kind", "command"),
    [
        ("/usr/bin/env bash /root/.pyenv/shims/python3 fit.py 3", "fit.py", "python3 fit.py 3"),
        ("/bin/sh /home/me/.asdf/shims/Rscript plot.R", "plot.R", "Rscript plot.R"),
        ("bash /data/shims/x", "x", "x"),
        ("bash run.sh /root/shims/python3", "run.sh", "bash run.sh /root/shims/python3"),
    ],
)
def test_shims_are_looked_through(argv: str, kind: str, command: str) -> None:
    found = describe([word.encode() for word in argv.split()])
    assert (found.type, found.command) == (kind, command)


def test_a_shell_without_a_program_is_a_subshell() -> None:
    assert describe([]).type == "subshell"


# -- Descriptions of whole columns equal those of `describe` for single commands


WORDS = [
    b"prog", b"/opt/x/prog", b"/opt/x/", b"prog3.11", b"A=/b/c", b"-sh", b"sh", b"-c", b"env", b"",
    b"set", b"/", b"'/a/b", b"a b", b"a  b", b" ", b"x" * 90, b"/" + b"y" * 85, b"tracehint",
    "µ".encode(), b"\xff", b"a\tb", b"/usr/bin/python3", b"run.py", b"z" * 9000, b"-", b"//", b"7z",
    *HOSTILE_NAMES,
]  # fmt: skip  # a table


@settings(max_examples=60, deadline=None)
@given(st.lists(st.lists(st.sampled_from(WORDS), max_size=4), max_size=30))
@example([[b"prog", b"a", b"b"], [b"/opt/x/prog", b"x" * 75], [], [b"sh", b"-c", b"cat x"]])
def test_plain_commands_are_described_as_one_by_one(commands: list[list[bytes]]) -> None:
    columns, holds = plain_descriptions(pa.array(commands, pa.list_(pa.binary())))
    for i, words in enumerate(commands):
        if holds[i]:
            wanted = describe(words)
            found = tuple(columns[name][i].as_py() for name in ("name", "type", "command"))
            assert found == (wanted.name, wanted.type, wanted.command)


def test_ordinary_commands_are_plain() -> None:
    argv = pa.array(
        [[b"/opt/bin/prog", b"in"], [b"sh", b"-c", b"x"], [b"a b"]], pa.list_(pa.binary())
    )
    columns, holds = plain_descriptions(argv)
    assert holds.tolist() == [True, False, False]
    assert columns["name"][0].as_py() == "prog in"


# -- Declared tasks in columns equal those built row by row, for any graph


TEXT = st.text(st.sampled_from("ab é\n\x1b/"), max_size=4)


TIME = st.none() | st.integers(-(1 << 63), (1 << 63) - 1)


ROW = st.fixed_dictionaries(
    {
        "task": st.sampled_from(["a", "b", "c", "d"]),
        "name": TEXT,
        "type": TEXT,
        "command": TEXT.map(str.encode) | st.just(b"\xff x") | st.just(b"cd /a; sort b"),
        "host": st.sampled_from(["", "n1", "n2"]),
        "start_ns": TIME,
        "end_ns": TIME,
        "exit_status": st.none() | st.integers(0, 255),
        "attempt": st.integers(0, 3),
        "parents": st.just([]),
        "engine": st.just(""),
    }
)


def _one_by_one(rows: list[dict[str, Any]], started: int) -> list[dict[str, Any]]:
    rows = list({row["task"]: row for row in reversed(rows)}.values())[::-1]
    known = [row["start_ns"] for row in rows if row["start_ns"] is not None]
    origin = started or (min(known) if known else 0)
    made = [_row(row, number, origin, {"n1": "s"}) for number, row in enumerate(rows)]
    return pa.Table.from_pylist(made, TASKS).to_pylist()


@pytest.mark.slow
@settings(deadline=None, max_examples=200)
@given(rows=st.lists(ROW, max_size=6), started=st.sampled_from([0, 5, 1_700_000_000 * 10**9]))
def test_columns_say_what_rows_say(rows: list[dict[str, Any]], started: int) -> None:
    manifest = Manifest(collector="test", started_ns=started, hosts=[RecordingHost("n1", site="s")])
    tables = {name: schema.empty_table() for name, schema in TABLES.items()}
    tables["declared_tasks"] = pa.Table.from_pylist(rows, TABLES["declared_tasks"])
    cut = declared_only(Bundle(None, manifest, tables))  # type: ignore[arg-type]
    assert cut.tasks.to_pylist() == _one_by_one(rows, started)
    assert cut.declared_task.column("task").to_pylist() == list(range(cut.tasks.num_rows))
