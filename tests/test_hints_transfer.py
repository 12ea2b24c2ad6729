"""Rules learned on one run of a real workflow, scored on another (WfInstances)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.wfinstances import analysis_of, corpus, data_folder
from tracehint.hintgen.compare.score import score
from tracehint.hintgen.learn.rules import LearnOptions, learn
from tracehint.hintgen.learn.safety import NO_LIMITS

pytestmark = pytest.mark.slow

FREE = LearnOptions(limits=NO_LIMITS)

# (instance learned from, instance scored on, minimum of precision and recall)
PAIRS = [
    ("montage-chameleon-2mass-01d-001", "montage-chameleon-2mass-03d-001", 0.99),
    ("epigenomics-chameleon-hep-1seq-50k-001", "epigenomics-chameleon-ilmn-2seq-50k-001", 0.95),
    ("1000genome-chameleon-2ch-100k-001", "1000genome-chameleon-4ch-250k-001", 0.95),
    ("blast-chameleon-small-001", "blast-chameleon-large-002", 0.95),
    ("srasearch-chameleon-10a-001", "srasearch-chameleon-40a-005", 0.95),
    ("seismology-chameleon-100p-001", "seismology-chameleon-200p-001", 0.95),
]
# (instance learned from, instance scored on, what the rules know, minimum of precision and recall)
LESS = [
    ("1000genome-chameleon-2ch-100k-001", "1000genome-chameleon-4ch-250k-001", "names", 0.99),
    (
        "montage-chameleon-dss-05d-001",
        "montage-chameleon-2mass-01d-001",
        "names",
        0.86,
    ),  # copies depend on the cost model of each run
    (
        "epigenomics-chameleon-hep-1seq-50k-001",
        "epigenomics-chameleon-ilmn-2seq-50k-001",
        "path",
        0.95,
    ),
]
KINDS = ("names", "hashes", "hashes of each run")
CALLED = {name for pair in (*PAIRS, *LESS) for name in pair[:2]}


@pytest.fixture(scope="module")
def instances() -> dict[str, Any]:
    return {name: data for _, name, data in corpus(data_folder(), names=CALLED)}


def cases() -> list[Any]:
    """Return every pair with each kind of type names."""
    return [
        pytest.param(*pair, types, id=f"{pair[0].split('-')[0]}-{types}")
        for pair in PAIRS
        for types in KINDS
    ]


@pytest.mark.parametrize(("learned", "other", "least", "types"), cases())
def test_rules_hold_on_another_run(
    instances: dict[str, Any], learned: str, other: str, least: float, types: str
) -> None:
    salts = {"names": ("", ""), "hashes": ("s", "s"), "hashes of each run": ("s", "t")}[types]
    first = analysis_of(instances[learned], hash_types=salts[0])
    second = analysis_of(instances[other], hash_types=salts[1])
    data = score(learn([first], FREE), [first], second)
    assert data["given"] == "graph"
    assert data["units"] > 50
    assert min(data["precision"], data["recall"]) >= least, data["wrong"][:5]


@pytest.mark.parametrize(("learned", "other", "given", "least"), LESS)
def test_rules_hold_without_a_graph(
    instances: dict[str, Any], learned: str, other: str, given: str, least: float
) -> None:
    first, second = (analysis_of(instances[name]) for name in (learned, other))
    data = score(learn([first], FREE), [first], second, given=given)
    assert data["given"] == given
    assert min(data["precision"], data["recall"]) >= least, data["losses"]
