"""The prediction reproduces the trends of the published comparison of metadata strategies."""

from __future__ import annotations

import pytest
from scripts.bench.papers.metadata import CASES, PAGE, outcomes, table

from tracehint.analyzer.predict.metadata.model import MetaOutcome

pytestmark = pytest.mark.slow

BY_NAME = {case.name: case for case in CASES}


def of(name: str) -> dict[str, MetaOutcome]:
    return outcomes(BY_NAME[name])


@pytest.mark.full  # the largest cases
def test_decentralised_is_ahead_where_the_central_registry_is_full() -> None:
    large = of("synthetic, 10,000 operations a node")
    assert large["decentralised"].seconds <= 0.5 * large["centralised"].seconds
    for name in ("near-pipeline, 1,000 and 1 s", "Montage, 1,000 and 1 s"):
        found = of(name)
        assert found["decentralised"].seconds < 0.85 * found["centralised"].seconds


@pytest.mark.full
def test_one_agent_falls_behind_above_32_nodes() -> None:
    at_32, at_64 = of("the same, 32 nodes"), of("the same, 64 nodes")
    assert at_32["replicated"].seconds < at_32["decentralised"].seconds
    assert at_64["replicated"].seconds > at_64["decentralised"].seconds


def test_throughput_of_the_decentralised_grows_with_the_nodes() -> None:
    few, many = of("synthetic, 5,000, 8 nodes"), of("the same, 32 nodes")
    grown = 4 * few["decentralised"].seconds / many["decentralised"].seconds
    assert grown > 0.85 * 4


def test_a_local_replica_ends_alike_and_is_ahead_on_the_way() -> None:
    alike = of("synthetic, 1,000, quick registries")
    assert alike["decentralised-replica"].seconds == pytest.approx(
        alike["decentralised"].seconds, rel=0.05
    )
    near = of("near-pipeline, 1,000, quick registries")
    ahead = near["decentralised"].tenths / near["decentralised-replica"].tenths
    assert (ahead[1:7] > 1.2).all()


@pytest.mark.full
def test_the_page_shows_what_the_command_prints() -> None:
    assert table() in PAGE.read_text(encoding="utf-8")
