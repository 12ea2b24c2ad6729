"""Snakemake and `make -j` on small real jobs: tasks, edges and labels."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from tests.e2e.support import Run, analyze, record
from tests.support.recordings import Recording, recorded

pytestmark = [pytest.mark.slow, pytest.mark.ebpf, pytest.mark.engine]

SNAKEFILE = """
PARTS = ["a", "b", "c"]

rule all:
    input: "total.txt"

rule split:
    output: expand("part_{p}.txt", p=PARTS)
    shell: "seq 1 60000 > all.txt && split -n l/3 --additional-suffix=.txt all.txt x && "
           "mv xaa.txt part_a.txt && mv xab.txt part_b.txt && mv xac.txt part_c.txt"

rule count:
    input: "part_{p}.txt", "table.bin"
    output: "count_{p}.txt"
    shell: "cat table.bin > /dev/null && sort -rn {input[0]} > {output}"

rule total:
    input: expand("count_{p}.txt", p=PARTS)
    output: "total.txt"
    shell: "cat {input} | wc -l > {output}"
"""

MAIN_C = '#include "api.h"\nint main(void) { return alpha() + beta() - 3; }\n'
MAKEFILE = """
OBJ = main.o alpha.o beta.o
prog: $(OBJ)
\tcc -o prog $(OBJ)
%.o: %.c api.h
\tcc -c -o $@ $<
"""


def prepare(folder: Path) -> None:
    (folder / "Snakefile").write_text(SNAKEFILE)
    (folder / "table.bin").write_bytes(bytes(range(256)) * 1024)


def snakemake() -> list[str]:
    return [str(Path(sys.executable).parent / "snakemake"), "--cores", "2", "--quiet", "all"]


def recording(factory: pytest.TempPathFactory) -> Recording:
    return recorded(factory, "snakemake", prepare, snakemake)


@pytest.fixture(scope="module")
def snakemake_run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    if not Path(snakemake()[0]).exists():
        pytest.skip("snakemake is not installed")
    return analyze(recording(tmp_path_factory).bundle)


def test_snakemake_jobs_are_the_tasks(snakemake_run: Run) -> None:
    tasks = [t for t in snakemake_run.tasks.values() if not t["engine"]]
    assert len(tasks) == 5, [t["command"] for t in tasks]


def test_snakemake_patterns(snakemake_run: Run) -> None:
    for part in "abc":
        assert "distribute" in snakemake_run.labels(f"part_{part}.txt")
        assert snakemake_run.primary(f"count_{part}.txt") == "reduce"
    assert snakemake_run.primary("table.bin") == "broadcast"


def test_snakemake_renamed_parts_keep_their_producer(snakemake_run: Run) -> None:
    (file,) = [f for f in snakemake_run.files.values() if f["path"] == "part_a.txt"]
    assert "xaa.txt" in file["other_paths"]
    assert len(file["producers"]) == 1


def test_snakemake_itself_makes_no_edges(snakemake_run: Run) -> None:
    engines = {t["id"] for t in snakemake_run.tasks.values() if t["engine"]}
    assert engines
    for edge in snakemake_run.analysis["edges"]:
        assert edge["producer"] not in engines
        assert edge["consumer"] not in engines


@pytest.fixture(scope="module")
def make_run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    for program in ("make", "cc"):
        if not shutil.which(program):
            pytest.skip(f"{program} is not installed")
    work = tmp_path_factory.mktemp("make")
    (work / "Makefile").write_text(MAKEFILE)
    (work / "main.c").write_text(MAIN_C)
    (work / "api.h").write_text("int alpha(void);\nint beta(void);\n")
    (work / "alpha.c").write_text('#include "api.h"\nint alpha(void) { return 1; }\n')
    (work / "beta.c").write_text('#include "api.h"\nint beta(void) { return 2; }\n')
    return record(["make", "-j2"], work, work.parent / "make.trace", "--collector", "ebpf")


def test_make_recipes_are_the_tasks(make_run: Run) -> None:
    tasks = [t for t in make_run.tasks.values() if not t["engine"]]
    assert len(tasks) == 4, [t["command"] for t in tasks]


def test_make_objects_reach_the_link_and_nothing_else(make_run: Run) -> None:
    label = {
        t["id"]: next((w for w in ("main.c", "alpha.c", "beta.c") if w in t["command"]), "link")
        for t in make_run.tasks.values()
    }
    edges = {e for e in make_run.edges(label) if not e[1].startswith("/tmp/cc")}
    assert edges == {
        ("main.c", "main.o", "link"),
        ("alpha.c", "alpha.o", "link"),
        ("beta.c", "beta.o", "link"),
    }
    assert make_run.primary("api.h") in ("broadcast", None)
    assert "broadcast" in make_run.labels("api.h")
