"""A driver is found behind any wrapper, and single tasks are not split. Process tables only.

`IO` below: bytes that a labelled process reads and writes of data files, in the order of `grow`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.support.bundles import RunBuilder
from tests.support.trees import SUB, P, grow
from tracehint.analyzer.model import Options, Segmentation
from tracehint.analyzer.tasks.segmentation import segment_tasks
from tracehint.errors import InputError
from tracehint.schemas.store import Bundle, table_from_rows

BIG = 1 << 20


def does(process: P, moved: int = BIG) -> P:
    """Label a process that reads one file and writes another, this many bytes in all."""
    process.label = f"{process.label}{moved}"
    return process


def step(n: int, moved: int = BIG) -> P:
    return does(P(["/opt/bin/step", f"in{n}", f"out{n}"]), moved)


def build(tree: P) -> RunBuilder:
    run = RunBuilder()
    grow(run, tree)
    todo = [tree]
    while todo:
        process = todo.pop()
        todo += process.kids
        if process.label and process.label != "0":
            moved, who = int(process.label), process.procs[-1]
            run.read(who, run.file(f"/data/i{who}", existed=True), 0, moved // 2, at=1.0)
            run.write(who, run.file(f"/data/o{who}"), 0, moved - moved // 2, at=2.0)
    return run


def cut(tree: P | RunBuilder, **options: Any) -> Segmentation:
    run = build(tree) if isinstance(tree, P) else tree
    tables = {name: table_from_rows(name, rows) for name, rows in run.rows.items()}
    return segment_tasks(Bundle(Path(), run.manifest, tables), Options(**options))


def types(result: Segmentation) -> list[str]:
    return [t["type"] for t in result.tasks.to_pylist() if not t["engine"]]


def driver(*kids: P) -> P:
    return P(["python3", "wf.py"], *(kids or (step(1), step(2), step(3))))


def sh(text: str, *kids: P) -> P:
    return P(["sh", "-c", text], *kids)


# wrapper -> its process tree around a process
WRAPPERS = {
    "none": lambda p: p,
    "bash file": lambda p: P(["bash", "w.sh"], p),
    "sh -c": lambda p: sh("cd x && python3 wf.py", p),
    "sh -c that forks a shell": lambda p: P(["bash", "w.sh"], P(SUB, p)),
    "make": lambda p: P(["make", "run"], p),
    "make, a shell": lambda p: P(["make", "run"], sh("cd x && python3 wf.py", p)),
    "make in make": lambda p: P(["make"], P(["make", "-C", "x"], p)),
    "env": lambda p: P(["env", "A=1", "python3", "wf.py"], p),
    "timeout": lambda p: P(["timeout", "60", "python3", "wf.py"], p),
    "timeout in bash": lambda p: P(["bash", "w.sh"], P(["timeout", "60", "python3", "wf.py"], p)),
    "nohup nice": lambda p: P(["nohup", "nice", "python3", "wf.py"], p),
    "conda run": lambda p: P(
        ["/c/bin/python", "/c/bin/conda", "run", "-n", "e", "python3", "wf.py"],
        P(["bash", "/tmp/tmpx1"], P(["conda", "shell.posix", "activate"]), p),
    ),
    "a launcher in Python": lambda p: P(["python3", "launch.py"], p),
    "launchers in Python, twice": lambda p: P(
        ["python3", "outer.py"], P(["python3", "launch.py"], p)
    ),
    "srun": lambda p: P(["srun", "-n1", "python3", "wf.py"], p),
    "bash, srun": lambda p: P(["bash", "w.sh"], P(["srun", "-n1", "python3", "wf.py"], p)),
    "singularity": lambda p: P(["singularity", "exec", "i.sif", "python3", "wf.py"], p),
    "bash, apptainer": lambda p: P(["bash", "w.sh"], P(["apptainer", "exec", "i.sif"], p)),
    "sudo strace": lambda p: P(["sudo", "-E"], P(["strace", "-f"], p)),
    "an unknown program": lambda p: P(["/opt/site/run-in-queue", "wf.py"], p),
    "with a log": lambda p: P(["bash", "w.sh"], P(["date"]), p, P(["ls", "-l"])),
    "with small things beside it": lambda p: P(
        ["bash", "w.sh"], does(P(["cp", "conf", "here"]), 100), p, does(P(["touch", "done"]), 10)
    ),
}


@pytest.mark.parametrize("wrapper", WRAPPERS)
def test_a_driver_is_found_behind_a_wrapper(wrapper: str) -> None:
    found = [t for t in types(cut(WRAPPERS[wrapper](driver()))) if t == "step"]
    assert found == ["step"] * 3


FOURTHS = [0, *(pytest.param(n, marks=pytest.mark.full) for n in (1, 2, 3))]  # of all pairs


@pytest.mark.slow
@pytest.mark.parametrize("fourth", FOURTHS)
@pytest.mark.parametrize("outer", WRAPPERS)
def test_a_driver_is_found_behind_two_wrappers(outer: str, fourth: int) -> None:
    chosen = list(WRAPPERS)[(list(WRAPPERS).index(outer) + fourth) % 4 :: 4]
    found = {name: cut(WRAPPERS[outer](WRAPPERS[name](driver()))) for name in chosen}
    steps = {name: types(result).count("step") for name, result in found.items()}
    assert steps == dict.fromkeys(chosen, 3)
    assert not any(result.notes for result in found.values())


def test_a_driver_that_writes_data_is_a_task_beside_its_programs() -> None:
    direct = does(driver(), 100)
    assert types(cut(direct)) == ["wf.py", "step", "step", "step"]
    wrapped = P(["bash", "w.sh"], does(driver(), 100))
    assert types(cut(wrapped)) == ["wf.py", "step", "step", "step"]


def test_engines_behind_programs_are_found_beside_other_steps() -> None:
    snakemake = P(
        ["python3", "/v/bin/snakemake"],
        P(["bash", "-c", "set -euo pipefail; tr a b"], does(P(["tr", "a", "b"]))),
        P(["bash", "-c", "set -euo pipefail; sort b"], does(P(["sort", "b"]))),
    )
    tree = P(["bash", "w.sh"], step(1), P(["python3", "launch.py"], snakemake), step(2))
    assert types(cut(tree)) == ["step", "tr", "sort", "step"]


def perl(*kids: P) -> P:
    """A script of a bioinformatics tool: programs in sequence that use temporary files."""
    return P(["perl", "/opt/bin/trinity.pl", "in"], *(kids or (step(1), step(2), step(3))))


CC = P(["cc", "-o", "x", "x.c"], does(P(["cc1", "x.c"])), does(P(["as", "x.s"])), does(P(["ld"])))
# name -> (tree, types of its tasks)
ONE_TASK = {
    "a compiler under make": (P(["make"], CC), ["cc"]),
    "two compilers under make": (P(["make"], CC, step(1)), ["cc", "step"]),
    "a compiler in a script": (P(["bash", "w.sh"], CC), ["cc"]),
    "a versioned compiler": (
        P(["bash", "w.sh"], P(["x86_64-linux-gnu-gcc-12"], does(P(["cc1"])), does(P(["as"])))),
        ["x86_64-linux-gnu-gcc-12"],
    ),
    "git": (P(["bash", "w.sh"], P(["git", "clone"], step(1), step(2))), ["git"]),
    "pip": (
        P(["bash", "w.sh"], P(["python3", "-m", "pip", "install", "x"], step(1), step(2))),
        ["pip"],
    ),
    "a program that calls gzip once": (
        P(["bash", "w.sh"], does(P(["python3", "a.py"], does(P(["gzip", "x"]))), 3 * BIG)),
        ["a.py"],
    ),
    "started directly": (does(P(["python3", "a.py"], does(P(["gzip", "x"]))), 3 * BIG), ["a.py"]),
    "a program that does nearly all itself": (
        P(["bash", "w.sh"], does(P(["python3", "a.py"], step(1), step(2)), 100 * BIG)),
        ["a.py"],
    ),
    "a pool of worker processes": (
        P(["bash", "w.sh"], does(P(["python3", "a.py"], does(P(SUB)), does(P(SUB))))),
        ["a.py"],
    ),
    "a pool of spawned processes": (
        P(
            ["bash", "w.sh"],
            P(
                ["python3", "a.py"],
                *(
                    does(P(["python3", "-c", "from multiprocessing.spawn import spawn_main; 1"]))
                    for _ in range(3)
                ),
            ),
        ),
        ["a.py"],
    ),
    "a cluster of R": (
        P(
            ["bash", "w.sh"],
            P(
                ["/usr/lib/R/bin/exec/R", "--no-echo", "--file=a.R"],
                *(
                    sh(
                        "'/usr/lib/R/bin/Rscript' -e 'parallel:::.workRSOCK()' MASTER=localhost",
                        does(P(["/usr/lib/R/bin/exec/R", "-e", "parallel:::.workRSOCK()"])),
                    )
                    for _ in range(3)
                ),
            ),
        ),
        ["R"],
    ),
    "ranks": (
        P(["bash", "w.sh"], P(["mpirun", "solve"], does(P(["solve"])), does(P(["solve"])))),
        ["solve"],
    ),
    "ranks directly": (
        P(["mpirun", "-n", "2", "solve"], does(P(["solve"])), does(P(["solve"]))), ["solve"],
    ),
    "a wrapper script beside another step": (
        P(["bash", "w.sh"], perl(), step(9)), ["trinity.pl", "step"],
    ),
    "wrapper scripts": (P(["bash", "w.sh"], perl(), perl()), ["trinity.pl"] * 2),
    "wrapper scripts of a driver": (driver(perl(), perl()), ["trinity.pl"] * 2),
    "wrapper scripts of a wrapped driver": (
        P(["bash", "w.sh"], driver(perl(), perl())), ["trinity.pl"] * 2,
    ),
    "a wrapper script, the line of a recipe": (
        P(["make"], perl(), step(1)), ["trinity.pl", "step"],
    ),
    "a shell line of a recipe": (
        P(["make"], sh("step 1; step 2", step(1), step(2))), ["step"],
    ),
    "a rule of Makeflow": (
        P(["makeflow", "w"], sh("./x.sh", P(["bash", "./x.sh"], *(step(n) for n in range(10))))),
        ["x.sh"],
    ),
    "a rule of Makeflow with a driver": (
        P(["makeflow", "w"], sh("python3 wf.py", driver())), ["wf.py"],
    ),
    "a job of GNU parallel": (
        P(["parallel", "bash", "job.sh"], P(["/bin/sh", "-c", "bash job.sh 1"],
          P(["bash", "job.sh", "1"], step(1), step(2)))), ["job.sh"],
    ),
    "a job of xargs": (P(["xargs", "-n1", "perl"], perl()), ["trinity.pl"]),
    "gcc of configure, beside make": (
        P(["bash", "b.sh"], P(["/bin/sh", "./configure"], CC, CC, step(1)), P(["make"], step(2))),
        ["configure", "step"],
    ),
}  # fmt: skip  # a table


@pytest.mark.parametrize("case", ONE_TASK)
def test_what_is_one_task_stays_one(case: str) -> None:
    tree, wanted = ONE_TASK[case]
    assert types(cut(tree)) == wanted


def test_a_pipe_of_programs_is_one_task_behind_a_wrapper() -> None:
    bwa, sort = does(P(["bwa", "mem"])), does(P(["samtools", "sort"]))
    for tree in (
        P(["bash", "w.sh"], bwa, sort),
        P(["bash", "w.sh"], P(["python3", "align.py"], bwa, sort)),
    ):
        for process in (bwa, sort):
            process.procs.clear()
        run = build(tree)
        file = run.file("pipe:[1]", kind="pipe")
        run.write(bwa.procs[-1], file, 0, 10, at=1.0)
        run.read(sort.procs[-1], file, 0, 10, at=1.0)
        assert len(types(cut(run))) == 1


NEARLY = P(
    ["bash", "w.sh"], does(P(["cp", "a", "b"]), 40_000), driver(), does(P(["wc", "b"]), 40_000)
)


def test_what_stays_undecided_is_said() -> None:
    result = cut(NEARLY)
    assert types(result) == ["cp", "wf.py", "wc"]
    assert result.notes == (
        "one task did 97 % of the I/O and started 3 programs: `--split wf.py` looks inside",
    )


def test_split_looks_inside() -> None:
    result = cut(NEARLY, split=("wf.py",))
    assert types(result) == ["cp", "step", "step", "step", "wc"]
    assert result.notes == ()


def test_a_root_that_did_nearly_all_itself_can_be_split() -> None:
    def tree() -> P:
        return does(P(["python3", "a.py"], step(1), step(2)), 100 * BIG)

    said = "one task did 100 % of the I/O and started 2 programs: `--split a.py` looks inside"
    assert (types(cut(tree())), cut(tree()).notes) == (["a.py"], (said,))
    assert types(cut(tree(), split=("a.py",))) == ["a.py", "step", "step"]


def test_of_ranks_it_is_said_how_to_see_them() -> None:
    ranks = [does(P(["solve"], env={"PMI_RANK": str(n)})) for n in range(3)]
    tree = P(["bash", "w.sh"], P(["mpirun", "-n", "3", "solve"], *ranks))
    said = "one task did 100 % of the I/O and started 3 programs: `--ranks` looks inside"
    assert cut(tree).notes == (said,)


def test_split_and_whole_win_over_engines() -> None:
    rule = P(["makeflow", "w"], sh("cd x; bash x.sh", P(["bash", "x.sh"], step(1), step(2))))
    assert types(cut(rule)) == ["x.sh"]
    rule = P(["makeflow", "w"], sh("cd x; bash x.sh", P(["bash", "x.sh"], step(1), step(2))))
    assert types(cut(rule, split=("x.sh",))) == ["step", "step"]
    rule = P(["bash", "w.sh"], step(1), P(["make"], step(2), step(3)))
    assert types(cut(rule, whole=("make",))) == ["step", "make"]


def test_whole_keeps_one_task_and_says_nothing() -> None:
    for tree in (driver(), P(["bash", "w.sh"], driver()), sh("x", driver())):
        result = cut(tree, whole=("wf.py",))
        assert types(result) == ["wf.py"]
        assert result.notes == ()


def test_a_name_that_the_run_does_not_have() -> None:
    for option in ("split", "whole"):
        with pytest.raises(InputError, match=f"--{option} nix"):
            cut(driver(), **{option: ("nix",)})
    with pytest.raises(InputError, match="split and whole"):
        cut(driver(), split=("wf.py",), whole=("wf.py",))
