"""Cutting process trees into tasks. The trees were recorded from real runs by strace."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.bundles import RunBuilder
from tests.support.trees import SUB, P, grow, labelled
from tracehint.analyzer.model import TASKS, Segmentation
from tracehint.analyzer.tasks.segmentation import segment_tasks
from tracehint.schemas.store import Bundle, table_from_rows


def cut(tmp_path: Path, run: RunBuilder) -> Segmentation:
    result = segment_tasks(run.bundle(tmp_path))
    assert result.tasks.schema.equals(TASKS)
    procs = [r["proc"] for r in run.rows["processes"]]
    assert sorted(result.proc_task.column("proc").to_pylist()) == sorted(procs)
    known = set(result.tasks.column("task").to_pylist())
    assert set(result.proc_task.column("task").to_pylist()) == known
    return result


def jobs(result: Segmentation) -> list[dict[str, Any]]:
    return [t for t in result.tasks.to_pylist() if not t["engine"]]


def names(result: Segmentation) -> list[str]:
    return [t["name"] for t in jobs(result)]


def engines(result: Segmentation) -> list[str]:
    return [t["type"] for t in result.tasks.to_pylist() if t["engine"]]


def pipe(run: RunBuilder, writer: P, reader: P) -> None:
    file = run.file("pipe:[1]", kind="pipe")
    run.write(writer.procs[-1], file, 0, 10, at=1.0)
    run.read(reader.procs[-1], file, 0, 10, at=1.0)


def cut_tree(tmp_path: Path, tree: P, *pipes: tuple[str, str]) -> Segmentation:
    run = RunBuilder()
    found = labelled(grow(run, tree))
    for writer, reader in pipes:
        pipe(run, found[writer], found[reader])
    return cut(tmp_path, run)


def test_commands_of_a_script_are_tasks_and_the_shell_is_the_engine(tmp_path: Path) -> None:
    result = cut_tree(tmp_path, P(["sh", "wf.sh"], P(["sort", "a"]), P(["uniq", "b"])))
    assert names(result) == ["sort a", "uniq b"]
    assert engines(result) == ["wf.sh"]


def test_pipeline_is_one_task_with_the_status_of_its_last_command(tmp_path: Path) -> None:
    tree = P(
        ["sh", "wf.sh"],
        P(["cat", "a"], label="a", end=5.0, exit_code=1),
        P(["tr", "a", "b"], label="b", end=5.0),
        P(["wc", "-c"], label="c", end=5.0, exit_code=3),
        P(["sort", "z"]),
    )
    result = cut_tree(tmp_path, tree, ("a", "b"), ("b", "c"))
    first, second = jobs(result)
    assert first["command"] == "cat a | tr a b | wc -c"
    assert (first["type"], first["exit_status"], first["processes"]) == ("tr", 3, 3)
    assert second["name"] == "sort z"


def test_a_log_pipe_of_the_whole_script_joins_nothing(tmp_path: Path) -> None:
    run = RunBuilder()
    tree = grow(
        run,
        P(
            ["bash", "wf.sh"],
            P(["tee", "log"], label="tee"),
            P(["sort", "a"], label="s"),
            P(["uniq", "b"], label="u"),
        ),
    )
    found = labelled(tree)
    log = run.file("pipe:[9]", kind="pipe")
    for who in ("s", "u"):
        run.write(found[who].procs[-1], log, 0, 5, at=1.0)
    run.read(found["tee"].procs[-1], log, 0, 10, at=1.0)
    assert names(cut(tmp_path, run)) == ["tee log", "sort a", "uniq b"]


def test_subshell_is_one_task_even_when_its_last_command_takes_its_place(tmp_path: Path) -> None:
    tree = P(["sh", "wf.sh"], P(["sort", "z"]), P(SUB, P(["head", "a"]), then=["tail", "b"]))
    result = cut_tree(tmp_path, tree)
    assert names(result) == ["sort z", "( head a; tail b )"]
    assert jobs(result)[1]["processes"] == 2


def test_a_subshell_without_programs_or_data_is_the_shells_own_work(tmp_path: Path) -> None:
    result = cut_tree(tmp_path, P(["bash", "wf.sh"], P(SUB), P(["sort", "a"])))
    assert names(result) == ["sort a"]


def test_last_command_that_replaces_the_shell_is_a_task(tmp_path: Path) -> None:
    tree = P(["sh", "-c", "gen > a; sort a > b"], P(["gen"]), then=["sort", "a"])
    result = cut_tree(tmp_path, tree)
    assert names(result) == ["gen", "sort a"]
    assert len(engines(result)) == 1


@pytest.mark.parametrize(
    "tree",
    [
        P(["sort", "a"]),
        P(["sh", "-c", "sort a > b"], then=["sort", "a"]),
        P(["env", "A=1", "sort", "a"], then=["sort", "a"]),
        P(["sh", "-c", "echo hi > b"]),
        P(["gcc-12", "-o", "x", "x.c"], P(["cc1", "x.c"]), P(["as", "x.s"])),
        P(["mpirun", "-n", "2", "solver"], P(["solver"]), P(["solver"])),
    ],
)
def test_a_single_program_is_the_one_task(tmp_path: Path, tree: P) -> None:
    result = cut_tree(tmp_path, tree)
    assert len(jobs(result)) == 1
    assert engines(result) == []


def test_wrappers_belong_to_the_task_and_are_seen_through(tmp_path: Path) -> None:
    tree = P(
        ["sh", "wf.sh"],
        P(["env", "X=1", "nice", "cat", "a"], then=["cat", "a"]),
        P(
            ["timeout", "5", "python3", "-u", "/x/align.py", "f"],
            P(["python3", "-u", "/x/align.py"]),
        ),
    )
    assert [t["type"] for t in jobs(cut_tree(tmp_path, tree))] == ["cat", "align.py"]


def test_make_with_recursion_below_a_script(tmp_path: Path) -> None:
    tree = P(
        ["sh", "wf.sh"],
        P(["sort", "a"]),
        P(
            ["make", "-f", "mk"],
            P(["cp", "a", "b"]),
            P(["/bin/sh", "-c", "cat a | tr a b > c"], P(["cat", "a"]), P(["tr", "a", "b"])),
            P(["make", "-f", "mk2"], P(["cp", "c", "d"])),
            P(
                ["/bin/sh", "-c", "cd sub && make"],
                P(["make"], P(["cc", "x.c"], P(["cc1", "x.c"]))),
            ),
        ),
    )
    result = cut_tree(tmp_path, tree)
    assert names(result) == ["sort a", "cp a b", "cat a | tr a b > c", "cp c d", "cc x.c"]
    assert engines(result).count("make") == 4  # three makes, and the shell around the third


def test_shell_function_of_make_is_a_helper(tmp_path: Path) -> None:
    tree = P(["make"], P(["/bin/sh", "-c", "ls *.c"], label="ls"), P(["cc", "x.c"]), label="make")
    assert names(cut_tree(tmp_path, tree, ("ls", "make"))) == ["cc x.c"]


def test_makeflow_rules_helpers_and_retry(tmp_path: Path) -> None:
    rule = ["sh", "-c", "mAdd -p in list out.fits"]
    tree = P(
        ["makeflow", "wf.mf"],
        P(["orted", "--hnp"]),
        P(["sh", "-c", "sort a > b"], P(["sort", "a"])),
        P(rule, P(["mAdd"]), exit_code=3),
        P(rule, P(["mAdd"])),
        P(["sh", "-c", "ls | xargs -n1 rm"], P(["ls"]), P(["xargs", "-n1", "rm"], P(["rm", "x"]))),
        P(["sh", "-c", "makeflow sub.mf"], P(["makeflow", "sub.mf"], P(["sh", "-c", "uniq q"]))),
    )
    result = cut_tree(tmp_path, tree)
    assert [(t["type"], t["attempt"], t["exit_status"]) for t in jobs(result)] == [
        ("sort", 1, 0),
        ("mAdd", 1, 3),
        ("mAdd", 2, 0),
        ("xargs", 1, 0),
        ("uniq", 1, 0),
    ]
    assert engines(result).count("makeflow") == 3 and "orted" in engines(result)


def test_snakemake_jobs_scripts_and_run_rules(tmp_path: Path) -> None:
    prefix = "set -euo pipefail;  "
    copy = "/d/.snakemake/scripts/tmph08z7vbd.plot.py"
    child = ["python3", "-m", "snakemake", "--target-jobs", "count:n=1", "--mode", "subprocess"]
    tree = P(
        ["/venv/bin/python3", "/venv/bin/snakemake", "-c2"],
        P(["uname", "-p"]),
        P(["/usr/bin/bash", "-c", prefix + "tr a b < x > y"], P(["tr", "a", "b"])),
        P(["/usr/bin/bash", "-c", prefix + f"python3 {copy}"], then=["python3", copy]),
        P(
            ["/bin/sh", "-c", "cd /d && " + " ".join(child)],
            P(child, P(["uname", "-p"]), P(["/usr/bin/bash", "-c", prefix + "cat q >> r"])),
        ),
    )
    result = cut_tree(tmp_path, tree)
    assert [t["type"] for t in jobs(result)] == ["tr", "plot.py", "count"]
    assert jobs(result)[-1]["name"] == "count:n=1"
    assert engines(result) == ["snakemake", "uname"]


def test_parallel_and_xargs(tmp_path: Path) -> None:
    tree = P(
        ["sh", "wf.sh"],
        P(["seq", "2"], label="seq"),
        P(
            ["xargs", "-n1", "sh", "-c", "cp a x$0"],
            P(["sh", "-c", "cp a x$0", "1"], P(["cp", "a", "x1"])),
            P(["sh", "-c", "cp a x$0", "2"], P(["cp", "a", "x2"])),
            label="xargs",
        ),
        P(
            ["/usr/bin/perl", "/usr/bin/parallel", "cp", "a", "p{}"],
            P(["sh", "-c", "tput el"]),
            P(["hostname"]),
            P(SUB),
            P(["/usr/bin/sh", "-c", "cp a p1"], P(["cp", "a", "p1"])),
            P(["/usr/bin/sh", "-c", "cp a p2"]),
        ),
    )
    result = cut_tree(tmp_path, tree, ("seq", "xargs"))
    assert names(result) == ["seq 2", "sh -c cp a x$0 1", "sh -c cp a x$0 2", "cp a p1", "cp a p2"]
    assert {t["attempt"] for t in jobs(result)} == {1}


def test_a_runner_with_its_jobs_and_forked_copies_is_a_part_of_the_pipeline(tmp_path: Path) -> None:
    """A copy that parallel forked but that has not yet started a program is not a separate task."""
    words = ["/usr/bin/perl", "/usr/bin/parallel", "grep", "a"]
    job = P(["/bin/sh", "-c", "grep a x"], label="job")
    tree = P(
        ["sh", "wf.sh"],
        P(words, P(SUB), P(SUB, job), P(["/bin/sh", "-c", "grep a y"]), label="parallel"),
        P(["uniq"], label="uniq"),
    )
    result = cut_tree(tmp_path, tree, ("parallel", "uniq"), ("job", "uniq"))
    assert names(result) == ["/usr/bin/perl /usr/bin/parallel grep a | uniq"]
    assert engines(result) == ["wf.sh"]


@pytest.mark.parametrize(
    ("options", "jobs_of_its_own"),
    {
        "": False, "--": False, "-0": False, "-0r -d X": False,
        "-a l -t": False, "--null --arg-file=l": False,
        "-n1": True, "-0n 2": True, "-I{}": True, "-P 4": True, "-L1": True, "--max-procs=2": True,
        "-r -t -x -p -o -0": True,  # the command is beyond the examined words
    }.items(),
)  # fmt: skip  # a table
def test_an_xargs_is_an_engine_where_it_shares_arguments_out(
    tmp_path: Path, options: str, jobs_of_its_own: bool
) -> None:
    words = ["xargs", *options.split(), "wc"]
    tree = P(["sh", "wf.sh"], P(["sort", "a"]), P(words, P(["wc", "a"]), P(["wc", "b"])))
    found = names(cut_tree(tmp_path, tree))
    assert found == ["sort a", *(["wc a", "wc b"] if jobs_of_its_own else [" ".join(words)])]


def test_nextflow_task_is_its_wrapper_with_all_below(tmp_path: Path) -> None:
    work = "/w/work/ab/cdef"
    tree = P(
        [
            "java",
            *(f"-D{i}" for i in range(9)),
            "-jar",
            "/f/nextflow-24.10.0-one.jar",
            "run",
            "m.nf",
        ],
        P(["git", "status"]),
        P(
            ["/bin/bash", "-ue", ".command.run"],
            P(["ln", "-s", "x", "y"]),
            P(["/bin/bash", "-ue", ".command.sh"], P(["xargs", "rm"], P(["rm", "q"]))),
            cwd=work,
        ),
    )
    run = RunBuilder()
    grow(run, P(["bash", "/opt/nextflow", "run", "main.nf"], then=tree.argv))
    assert jobs(cut(tmp_path, run)) == []
    result = cut_tree(tmp_path / "b", tree)
    assert [(t["type"], t["processes"]) for t in jobs(result)] == [(".command.run", 5)]
    assert engines(result) == ["nextflow-24.10.0-one.jar", "git"]


def test_whole_script_in_one_pipeline_or_one_shell_is_cut_inside(tmp_path: Path) -> None:
    inner = P(SUB, P(["gen", "a"]), P(["sort", "a"], label="s"), label="main")
    tree = P(["bash", "wf.sh"], inner, P(["tee", "log"], label="tee"))
    run = RunBuilder()
    found = labelled(grow(run, tree))
    pipe(run, found["s"], found["tee"])
    for who in ("s", "tee"):
        run.write(found[who].procs[-1], run.file(f"/data/{who}"), 0, 5, at=2.0)
    assert names(cut(tmp_path, run)) == ["gen a", "sort a", "tee log"]
    nested = P(["sh", "-c", "sh wf.sh"], then=["sh", "wf.sh"])
    run = RunBuilder()
    grow(run, nested)
    step = grow(run, P(["gen", "a"]), nested.procs[-1])
    grow(run, P(["sort", "a"]), nested.procs[-1])
    run.write(step.procs[-1], run.file("/data/x"), 0, 5, at=2.0)
    assert names(cut(tmp_path / "b", run)) == ["gen a", "sort a"]


def test_unknown_driver(tmp_path: Path) -> None:
    def build(data: bool, own: bool) -> Segmentation:
        run = RunBuilder()
        kid = P(["sort", "a"], label="kid")
        far = P(["uniq", "b"])
        root = grow(
            run, P(["python3", "wf.py"], kid, P(SUB, far), P(["sbatch", "j"]), P(["uname"]))
        )
        if data:
            run.write(kid.procs[-1], run.file("/data/out"), 0, 5, at=1.0)
            run.read(far.procs[-1], run.file("/data/in", existed=True), 0, 5, at=1.0)
        if own:
            run.write(root.procs[-1], run.file("/data/config"), 0, 5, at=0.5)
        else:  # output to a destination of the user: an inherited descriptor
            run.write(root.procs[-1], run.file("/data/log"), 0, 5, at=0.5)
            run.rows["opens"][-1]["via"] = "inherited"
        return cut(tmp_path / f"{data}{own}", run)

    assert names(build(True, False)) == ["sort a", "uniq b"]
    # it writes data itself: a separate task, so that its output is not lost
    assert names(build(True, True)) == ["python3 wf.py", "sort a", "uniq b"]
    # its children access no data (uname, ldconfig): a program with helpers
    assert names(build(False, True)) == ["python3 wf.py"]


def test_times_status_and_host(tmp_path: Path) -> None:
    tree = P(["sh", "wf.sh"], P(["a"], start=1.0, end=2.5, signal=9), P(["b"], start=3.0, end=4.0))
    first, second = jobs(cut_tree(tmp_path, tree))
    assert (first["start_s"], first["end_s"], first["exit_status"]) == (1.0, 2.5, 137)
    assert (second["exit_status"], second["host"], second["source"]) == (0, "node1", "observed")


def test_a_status_of_a_damaged_recording_is_one_that_the_table_holds(tmp_path: Path) -> None:
    tree = P(["sh", "wf.sh"], P(["a"], signal=2**31 - 1))
    assert jobs(cut_tree(tmp_path, tree))[0]["exit_status"] == 2**31 - 1


def test_parsl_pool_its_workers_and_the_shells_around_it(tmp_path: Path) -> None:
    def spawn(*kids: P) -> P:
        text = "from multiprocessing.spawn import spawn_main; spawn_main(tracker_fd=13)"
        return P(["/v/bin/python3", "-B", "-c", text, "--multiprocessing-fork"], *kids)

    pool = P(
        ["/v/bin/python3", "/v/bin/process_worker_pool.py", "-a", "127.0.0.1"],
        spawn(),
        spawn(P(["/bin/bash", "-c", "tr a b < x > o0"], P(["tr", "a", "b"]), label="one")),
        spawn(P(["/bin/bash", "-c", "tr a b < x > o1"], P(["tr", "a", "b"]), label="two")),
    )
    block = P(["bash", "/r/parsl.block-0.sh"], P(["getconf", "N"]), P(["seq", "1"]), P(SUB, pool))
    tree = P(
        ["python3", "w.py"],
        P(["/v/bin/python3", "/v/bin/interchange.py"]),
        P(["/bin/sh", "-c", "bash -c '...'"], P(["/bin/bash", "-c", "..."], P(SUB, block))),
        P(["/bin/sh", "-c", "kill -- -$(ps)"], P(SUB, P(["ps"]))),
    )
    run = RunBuilder()
    found = labelled(grow(run, tree))
    for who, job in found.items():
        run.write(job.kids[0].procs[-1], run.file(f"/data/{who}"), 0, 5, at=1.0)
    result = cut(tmp_path, run)
    assert names(result) == ["tr a b < x > o0", "tr a b < x > o1"]
    assert "process_worker_pool.py" in engines(result)


def test_java_starts_programs_through_a_helper(tmp_path: Path) -> None:
    run = RunBuilder()
    root = grow(run, P(["nextflow", "run", "m.nf"]))
    fork = run.process([], parent=root.procs[-1], start=0.1)
    helper = run.process(["/usr/lib/jvm/java-17/lib/jspawnhelper", "17", "69:70:72"], prev=fork)
    run.process(["/bin/bash", "-ue", ".command.run"], prev=helper, start=0.3, cwd="/w/ab/cd")
    assert names(cut(tmp_path, run)) == ["bash -ue .command.run"]


def test_cwltool_runs_tools_and_asks_versions(tmp_path: Path) -> None:
    tree = P(
        ["/v/bin/python3", "/v/bin/cwltool", "--no-container", "w.cwl"],
        P(["nodejs", "--version"]), P(["docker", "--version"]), P(["tr", "a", "b"]),
        P(["sh", "-c", 'cat "$@" | sort', "sh", "x"], P(["cat", "x"]), P(["sort"])),
    )  # fmt: skip  # a table
    assert [t["type"] for t in jobs(cut_tree(tmp_path, tree))] == ["tr", "sort"]


WORDS = [
    *([], ["sh", "wf.sh"], ["sh", "-c", "a | b"], ["make"], ["makeflow", "w"], ["xargs", "x"]),
    *(["cp", "a"], ["env", "A=1", "cp"], ["python3", "w.py"], ["mpirun", "x"], ["sbatch", "j"]),
    *(["nextflow", "run"], ["python3", "-m", "snakemake", "--target-jobs", "r:"], [""], ["-"]),
    ["/usr/bin/parallel", "x"],
]


@pytest.mark.slow
@settings(
    deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_any_table_of_processes(tmp_path: Path, data: st.DataObject) -> None:
    """Arbitrary links: every epoch belongs to one task, and always to the same one."""
    number = data.draw(st.integers(0, 14))
    any_id = st.none() | st.integers(0, number + 2)
    run = RunBuilder()
    for _ in range(number):
        run.process(
            data.draw(st.sampled_from(WORDS)),
            parent=data.draw(any_id),
            prev=data.draw(any_id),
            start=data.draw(st.floats(0, 9)),
            end=data.draw(st.none() | st.floats(0, 9)),
            exit_code=data.draw(st.sampled_from([None, 0, 1])),
            env=data.draw(st.sampled_from([{}, {"TRACEHINT_TASK": "t1"}, {"SLURM_JOB_ID": "5"}])),
        )
    file = run.file("pipe:[1]", kind="pipe")
    for _ in range(data.draw(st.integers(0, 6)) if number else 0):
        use = data.draw(st.sampled_from([run.read, run.write]))
        use(data.draw(st.integers(0, number + 2)), file, 0, 5, at=1.0)
    tables = {name: table_from_rows(name, rows) for name, rows in run.rows.items()}
    bundle = Bundle(tmp_path, run.manifest, tables)
    first, second = segment_tasks(bundle), segment_tasks(bundle)
    assert first.proc_task.num_rows == number
    assert set(first.proc_task["task"].to_pylist()) == set(first.tasks["task"].to_pylist())
    assert first.tasks.equals(second.tasks) and first.proc_task.equals(second.proc_task)
    assert all(1 <= t["attempt"] <= max(number, 1) for t in first.tasks.to_pylist())
