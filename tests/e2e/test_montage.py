"""Montage by Makeflow: the observed graph is the declared one; strace proves each difference."""

from __future__ import annotations

import subprocess

import pytest

from tests.e2e.real.compare import missing
from tests.e2e.real.workflows import montage
from tests.e2e.real.workflows.montage import WORKFLOW
from tests.e2e.support import Edge, Run, analyze, edges_of, one_task_per, strace_io
from tests.support.patience import PATIENCE_S
from tests.support.recordings import recorded

pytestmark = [pytest.mark.slow, pytest.mark.ebpf, pytest.mark.engine]

TRACED = (
    "read,pread64,readv,write,pwrite64,writev,copy_file_range,sendfile,mmap,splice,"
    "open,openat,creat,close"
)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    if absent := missing(WORKFLOW):
        pytest.skip(f"not installed: {', '.join(absent)}")
    found = recorded(tmp_path_factory, WORKFLOW.name, WORKFLOW.prepare, lambda: WORKFLOW.command)
    return analyze(found.bundle)


@pytest.fixture(scope="module")
def rules() -> list[tuple[list[str], list[str], str]]:
    return montage.rules()


@pytest.fixture(scope="module")
def truth(
    tmp_path_factory: pytest.TempPathFactory, rules: list[tuple[list[str], list[str], str]]
) -> dict[str, tuple[set[str], set[str]]]:
    """Files that strace recorded as read and written per rule, in a separate run."""
    work = tmp_path_factory.mktemp("montage_strace")
    WORKFLOW.prepare(work)
    logs = work.parent / "logs"
    logs.mkdir()
    wrapper = f"strace -f -y -o {logs}/%% -e trace={TRACED}"
    subprocess.run(
        ["makeflow", "--wrapper", wrapper, "montage.makeflow"],
        cwd=work,
        check=True,
        capture_output=True,
        timeout=PATIENCE_S,
    )
    return {rule[2]: strace_io(logs / str(k), work) for k, rule in enumerate(rules)}


def declared_edges(rules: list[tuple[list[str], list[str], str]]) -> set[Edge]:
    return edges_of({command: (set(src), set(dst)) for dst, src, command in rules})


def test_every_rule_is_one_task(run: Run, rules: list[tuple[list[str], list[str], str]]) -> None:
    one_task_per(run, [command for _, _, command in rules])


@pytest.mark.full  # test_real.py[montage]: the same graph, under strace and eBPF at once
def test_graph_is_what_strace_saw(
    run: Run,
    rules: list[tuple[list[str], list[str], str]],
    truth: dict[str, tuple[set[str], set[str]]],
) -> None:
    label = one_task_per(run, [command for _, _, command in rules])
    assert run.edges(label) == edges_of(truth)


@pytest.mark.full
def test_differences_from_the_declared_graph_are_proven(
    run: Run,
    rules: list[tuple[list[str], list[str], str]],
    truth: dict[str, tuple[set[str], set[str]]],
) -> None:
    label = one_task_per(run, [command for _, _, command in rules])
    observed, declared = run.edges(label), declared_edges(rules)
    for producer, path, consumer in observed - declared:
        pytest.fail(f"observed but not declared: {producer} -> {path} -> {consumer}")
    unused = declared - observed
    for _, path, consumer in unused:
        assert path not in truth[consumer][0], f"{consumer} does read {path}"
    # Known from the programs: mImgtbl reads no area file, mOverlaps's table orders mDiff only.
    assert {e for e in unused if e[2].startswith("mImgtbl") and e[1].endswith("_area.fits")}


def test_labels(run: Run) -> None:
    for path in {f["path"] for f in run.files.values()}:
        if path.startswith("fit/f_"):
            assert "reduce" in run.labels(path), path
        if path.startswith("diff/d_") and not path.endswith("_area.fits"):
            assert run.primary(path) == "pipeline", path
        if path.startswith("corr/c_"):
            assert run.primary(path) == "reduce", path
        if path.startswith("archive/"):
            assert "stage_in" in run.labels(path), path
    assert run.primary("corrections.tbl") in ("broadcast", None)


def test_header_peeks_decide_nothing(run: Run) -> None:
    """mImgtbl reads the headers of all projected images: that makes no reduce pattern."""
    projected = [f for f in run.files.values() if f["path"].startswith("proj/p_")]
    imgtbl = {t["id"] for t in run.tasks.values() if t["type"] == "mImgtbl"}
    peeks = [c for f in projected for c in f["consumers"] if c["task"] in imgtbl]
    assert len(peeks) == montage.COLUMNS * montage.ROWS
    assert all(c["peek"] for c in peeks)
    for file in projected:
        assert not [p for p in file["patterns"] if p["pattern"] == "reduce"]


def test_self_reads_are_no_edges(run: Run) -> None:
    assert all(e["producer"] != e["consumer"] for e in run.analysis["edges"])


def test_nothing_lost_and_small(run: Run) -> None:
    assert run.analysis["run"]["lost_events"] == 0
    size = sum(p.stat().st_size for p in run.bundle.rglob("*") if p.is_file())
    assert size <= 5_000_000, f"{size} bytes"
