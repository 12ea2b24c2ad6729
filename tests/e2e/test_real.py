"""Real workflows recorded by eBPF, compared with what strace and their definitions prove.

Each workflow runs once under both: the same processes make the same accesses for both.
"""

from __future__ import annotations

import pytest

from tests.e2e.real.compare import Result, missing, trace
from tests.e2e.real.score import score
from tests.e2e.real.workflows import WORKFLOWS
from tests.support.calibration import error, of_bundle
from tracehint.schemas.store import read_bundle

pytestmark = [pytest.mark.slow, pytest.mark.ebpf, pytest.mark.engine]


# Takes as long as all the others; test_montage.py records it in the usual run, without strace.
LONGEST = "montage"
USUAL = [
    pytest.param(w, id=w.name, marks=[pytest.mark.full] * (w.name == LONGEST)) for w in WORKFLOWS
]


@pytest.fixture(scope="module", params=USUAL)
def result(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Result:
    workflow = request.param
    if absent := missing(workflow):
        pytest.skip(f"not installed: {', '.join(absent)}")
    return trace(workflow, tmp_path_factory.mktemp(workflow.name))


def test_the_truth_is_the_definition(result: Result) -> None:
    """Every job ran; it wrote and read what it declares, except inputs known to be unused."""
    jobs, uses = result.workflow.jobs(), result.truth.uses
    assert result.truth.jobs == {job.name for job in jobs}
    for job in jobs:
        for path in job.writes:
            assert (job.name, path, "write") in uses, (job.name, path)
        unused = {p for p in job.reads if (job.name, p, "read") not in uses}
        assert unused == {p for name, p in result.workflow.not_used() if name == job.name}


def test_every_job_is_one_task(result: Result) -> None:
    assert sorted(result.observed.jobs.values()) == sorted(j.name for j in result.workflow.jobs())
    others = {t for t, task in result.run.tasks.items() if not task["engine"]}
    assert others == set(result.observed.jobs)


def test_accesses(result: Result) -> None:
    found = score(result)
    assert found.precision >= 0.99, result.observed.uses.keys() - result.truth.uses.keys()
    assert found.recall >= 0.99, result.truth.uses.keys() - result.observed.uses.keys()
    assert found.accesses >= 2 * found.jobs - 1
    assert found.byte_error <= 0.02
    assert found.worst_bytes <= 0.02 or result.truth.mapped


def test_edges(result: Result) -> None:
    """No edge is false, not even through an engine; none is missed."""
    assert set(result.observed.edges) == set(result.truth.edges)
    assert result.truth.edges
    engines = {t for t, task in result.run.tasks.items() if task["engine"]}
    for edge in result.run.analysis["edges"]:
        assert not engines & {edge["producer"], edge["consumer"]}


def test_edges_are_declared(result: Result) -> None:
    """Every observed reader of another job's file declares that file as input."""
    jobs = result.workflow.jobs()
    made = {path: job.name for job in jobs for path in job.writes}
    declared = {(job.name, path) for job in jobs for path in job.reads if path in made}
    assert {(reader, path) for _, path, reader in result.observed.edges} <= declared


def test_labels(result: Result) -> None:
    found = score(result)
    assert found.label_agreement >= 0.97
    assert found.wrong_primaries <= 0.03 * found.primaries
    for path, pattern in result.workflow.shows:
        names = [name for (p, _), name in result.observed.primary.items() if p == path]
        assert names == [pattern], path


def test_confidence_is_worth_what_it_says(result: Result) -> None:
    """If records are lost, about a share x of the labels with confidence x is correct."""
    given = of_bundle(read_bundle(result.run.bundle), (0.1, 0.3))
    assert error(given) <= 0.2
    assert sum(g.right for g in given if g.confidence >= 0.95) >= 0.97 * sum(
        g.confidence >= 0.95 for g in given
    )


def test_nothing_was_lost(result: Result) -> None:
    assert result.run.analysis["run"]["lost_events"] == 0
