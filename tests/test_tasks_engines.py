"""Tasks of real engines, recorded by the collector that needs no privileges."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.cli import TRACEHINT
from tests.support.patience import PATIENCE_S
from tracehint.adapters.engines.graphs import read_graph
from tracehint.analyzer.model import Segmentation
from tracehint.analyzer.roots import data_roots
from tracehint.analyzer.tasks.segmentation import segment_tasks
from tracehint.schemas.store import Bundle, read_bundle

pytestmark = [
    pytest.mark.engine,
    pytest.mark.slow,
    pytest.mark.skipif(not shutil.which("strace"), reason="strace is not installed"),
]

SCRIPT = """#!/bin/sh
echo start > log.txt
sort data.txt > sorted.txt
cat data.txt | tr a-z A-Z | wc -c > count.txt
( head -1 sorted.txt > h.txt; tail -1 sorted.txt > t.txt )
for i in 1 2; do cp sorted.txt c$i.txt & done
wait
env X=1 nice cat c1.txt c2.txt > both.txt
make -s -f rules all
seq 2 | xargs -P2 -n1 sh -c 'cp sorted.txt x$0.txt'
sh -c 'exit 3'
"""
RULES = """all: m1 m2
m1: data.txt
\tcp data.txt m1.tmp
\tsort m1.tmp > m1
m2: data.txt
\t@cat data.txt | tr a b > m2; wc m2 >> m2
\t$(MAKE) -f more
"""
MORE = "N := $(shell wc -l data.txt)\nall:\n\tcp data.txt sub1\n"
MAKEFLOW = """a.txt: data.txt
\tsort data.txt > a.txt
b.txt c.txt: a.txt
\tcat a.txt | tr a b > b.txt; cp b.txt c.txt
e.txt: c.txt
\tif [ -e tried ]; then cp c.txt e.txt; else touch tried; exit 3; fi
"""
SNAKEFILE = """rule all:
    input: "out/final.txt"
rule upper:
    input: "data.txt"
    output: "out/{n}.up"
    shell: "tr a-z A-Z < {input} > {output}"
rule script:
    input: "out/1.up"
    output: "out/s.txt"
    script: "s.py"
rule merge:
    input: "out/s.txt", "out/2.up"
    output: "out/final.txt"
    shell: "cat {input} | sort > {output}"
"""
COPY = 'open(snakemake.output[0], "w").write(open(snakemake.input[0]).read())\n'


def record(folder: Path, *command: str, stdout: Path | None = None) -> Bundle:
    """Run the command in the folder under strace and return its recording."""
    bundle = folder.parent / f"{folder.name}.trace"
    words = [*TRACEHINT, "record", "--quiet", "--collector", "strace"]
    with (stdout or folder.parent / "stdout").open("w") as out:
        done = subprocess.run(
            [*words, "-o", str(bundle), "--", *command],
            cwd=folder, stdout=out, stderr=subprocess.PIPE, check=False, timeout=PATIENCE_S,
        )  # fmt: skip  # a table
    assert done.returncode < 100, done.stderr.decode()
    return read_bundle(bundle)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    run = tmp_path / "run"
    run.mkdir()
    files = {
        "data.txt": "b\na\n",
        "wf.sh": SCRIPT,
        "rules": RULES,
        "more": MORE,
        "wf.mf": MAKEFLOW,
        "Snakefile": SNAKEFILE,
        "s.py": COPY,
    }
    for name, text in files.items():
        (run / name).write_text(text)
    return run


def jobs(cut: Segmentation) -> list[dict[str, Any]]:
    return [t for t in cut.tasks.to_pylist() if not t["engine"]]


def declare(bundle: Bundle, path: Path) -> Bundle:
    graph = read_graph(path)
    bundle.tables["declared_tasks"], bundle.tables["declared_io"] = graph.tasks, graph.io
    return bundle


def test_script_with_make_and_xargs(folder: Path) -> None:
    bundle = record(folder, "sh", "wf.sh")
    cut = segment_tasks(bundle)
    found = [(t["command"], t["processes"], t["exit_status"]) for t in jobs(cut)]
    parallel = {found.pop(3), found.pop(3)}
    assert parallel == {("cp sorted.txt c1.txt", 1, 0), ("cp sorted.txt c2.txt", 1, 0)}
    copies = {found.pop(-3), found.pop(-2)}
    assert copies == {(f"sh -c cp sorted.txt x$0.txt {i}", 2, 0) for i in (1, 2)}
    assert found == [
        ("sort data.txt", 1, 0),
        ("cat data.txt | tr a-z A-Z | wc -c", 3, 0),
        ("( head -1 sorted.txt; tail -1 sorted.txt )", 2, 0),
        ("env X=1 nice cat c1.txt c2.txt", 1, 0),
        ("cp data.txt m1.tmp", 1, 0),
        ("sort m1.tmp > m1", 2, 0),
        ("cat data.txt | tr a b > m2; wc m2 >> m2", 4, 0),
        ("cp data.txt sub1", 1, 0),
        ("seq 2", 1, 0),
        ("exit 3", 1, 3),
    ]
    engines = sorted(t["type"] for t in cut.tasks.to_pylist() if t["engine"])
    assert engines == ["make", "make", "wc", "wf.sh", "xargs"]
    assert data_roots(bundle, (), cut) == [str(folder).encode()]


PIPED = """sort data.txt > sorted.txt
ls *.txt | xargs cat | sort > all
ls *.txt | xargs -n1 -P2 grep a | wc -l > n
ls *.txt | xargs -n1 -P2 sh -c 'cp $0 $0.copy; echo $0' | tee log
ls *.txt | xargs -n1 basename | xargs -n1 cksum
parallel -k cat ::: data.txt sorted.txt | uniq > u
parallel -k 'tr a b < {} > {}.b; echo {}' ::: data.txt sorted.txt | tee log2
"""


@pytest.mark.skipif(not shutil.which("parallel"), reason="GNU parallel is not installed")
def test_what_xargs_and_parallel_print_into_a_pipe_is_one_task_with_its_reader(
    folder: Path,
) -> None:
    """Jobs that make files stay separate tasks, whatever they print."""
    (folder / "piped.sh").write_text(PIPED)
    cut = segment_tasks(record(folder, "bash", "piped.sh"))
    found = sorted(t["command"].rpartition("parallel ")[2] for t in jobs(cut))
    texts, job = "data.txt sorted.txt", "sh -c cp $0 $0.copy; echo $0"
    assert found == sorted(
        [
            "sort data.txt",
            f"ls {texts} | xargs cat | sort",
            f"ls {texts} | xargs -n1 -P2 grep a | wc -l",
            f"ls {texts}", "basename data.txt", "basename sorted.txt", "cksum data.txt",
            "cksum sorted.txt",
            f"ls {texts}", f"{job} data.txt", f"{job} sorted.txt", "tee log",
            f"-k cat ::: {texts} | uniq",
            "tr a b < data.txt > data.txt.b; echo data.txt",
            "tr a b < sorted.txt > sorted.txt.b; echo sorted.txt", "tee log2",
        ]
    )  # fmt: skip  # a table


def test_make_with_the_pids_that_it_states(folder: Path) -> None:
    log = folder.parent / "make.log"
    bundle = record(folder, "make", "-f", "rules", "--debug=j", stdout=log)
    found = {t["name"]: t for t in jobs(segment_tasks(declare(bundle, log)))}
    assert set(found) == {"m1", "m2", "all"}
    assert found["m1"]["command"] == "cp data.txt m1.tmp; sort m1.tmp > m1"
    assert {t["source"] for t in found.values()} == {"both"}


@pytest.mark.skipif(not shutil.which("makeflow"), reason="makeflow is not installed")
def test_makeflow_with_its_log(folder: Path) -> None:
    bundle = record(folder, "makeflow", "--log-verbose", "--retry-count=2", "wf.mf")
    alone = [(t["type"], t["attempt"], t["exit_status"]) for t in jobs(segment_tasks(bundle))]
    assert alone == [("sort", 1, 0), ("tr", 1, 0), ("cp", 1, 3), ("cp", 2, 0)]
    cut = segment_tasks(declare(bundle, folder / "wf.mf"))
    joined = [(t["name"], t["attempt"], t["source"]) for t in jobs(cut)]
    assert joined == [
        ("a.txt", 1, "both"),
        ("b.txt", 1, "both"),
        ("e.txt", 1, "both"),
        ("e.txt", 2, "both"),
    ]
    assert data_roots(bundle, (), cut) == [str(folder).encode()]


@pytest.mark.skipif(not shutil.which("parallel"), reason="GNU parallel is not installed")
def test_parallel_with_its_job_log(folder: Path) -> None:
    words = ("parallel", "--joblog", "jobs", "cp data.txt {}.out; test {} != 2", ":::", "1", "2")
    bundle = record(folder, *words)
    found = jobs(segment_tasks(declare(bundle, folder / "jobs")))
    assert sorted((t["command"], t["exit_status"], t["source"]) for t in found) == [
        ("cp data.txt 1.out; test 1 != 2", 0, "both"),
        ("cp data.txt 2.out; test 2 != 2", 1, "both"),
    ]


def test_snakemake_with_its_metadata(folder: Path) -> None:
    pytest.importorskip("snakemake", reason="snakemake is not installed")
    bundle = record(folder, sys.executable, "-m", "snakemake", "-c2", "-q")
    found = jobs(segment_tasks(declare(bundle, folder)))
    assert sorted((t["type"], t["name"], t["source"]) for t in found) == [
        ("merge", "out/final.txt", "both"),
        ("script", "out/s.txt", "both"),
        ("upper", "out/1.up", "both"),
        ("upper", "out/2.up", "both"),
    ]


def test_mpi_ranks_are_one_task(folder: Path) -> None:
    if not shutil.which("mpirun"):
        pytest.skip("mpirun is not installed")
    words = "mpirun --allow-run-as-root --oversubscribe -n 2 sort data.txt"
    (folder / "mpi.sh").write_text(f"cp data.txt a\n{words} > sorted\n")
    found = jobs(segment_tasks(record(folder, "sh", "mpi.sh")))
    assert [(t["type"], t["exit_status"]) for t in found] == [("cp", 0), ("sort", 0)]
    assert found[1]["processes"] >= 3
