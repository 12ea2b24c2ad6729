"""The probability that a lost access would change a label, against values computed by hand."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.flow_builder import FlowBuilder
from tracehint.analyzer.patterns.confidence import estimate_complete_share

MB = 1 << 20


def chains(count: int, outputs: int) -> FlowBuilder:
    """Build `count` files with a writer and a reader, and `outputs` files with a writer only."""
    flow = FlowBuilder()
    for k in range(count + outputs):
        file = flow.file(f"f{k}", MB)
        flow.write(flow.task(f"make {k}", start=0), file, 0, MB)
        if k < count:
            flow.read(flow.task(f"use {k}", start=10), file, 0, MB)
    return flow


def kept(flow: FlowBuilder, file: int, pattern: str) -> float:
    found: float = flow.labels().evidence(file, pattern)["factors"]["kept"]
    return found


@pytest.mark.rule("P50")
def test_an_output_can_be_a_file_whose_reader_was_lost() -> None:
    """With a fifth of the uses lost, 40 of 50 pipelines appear; 10 of 100 outputs are false."""
    flow = chains(40, 100)
    flow.gone = {1: (10.0, 40.0)}
    assert kept(flow, 41, "stage_out") == pytest.approx(0.9, abs=0.01)


@pytest.mark.rule("P50")
def test_a_pipeline_can_be_a_file_with_a_second_reader() -> None:
    """Unlikely if all files are pipelines, likely if many files have two readers."""
    flow = chains(40, 100)
    flow.gone = {1: (10.0, 40.0)}
    plain = kept(flow, 1, "pipeline")
    for k in range(20, 40):
        flow.read(flow.task(f"second {k}", start=10), k + 1, 0, MB)
    assert plain > 0.97
    assert kept(flow, 1, "pipeline") < plain - 0.2


@pytest.mark.parametrize(
    ("seen", "share", "expected"),
    [
        ([10_000, 4_000], 0.2, [0.9, 1]),  # 5,000 files with one reader
        ([4_500, 5_000, 2_500], 0.5, [0.4444, 0, 1]),  # 10,000 with two, and 2,000 without
        ([1_000, 4_000, 4_000], 0.5, None),  # impossible counts: still probabilities
        ([0, 0, 0], 0.5, None),
    ],
)
def test_the_numbers_of_users_are_found(
    seen: list[int], share: float, expected: list[float] | None
) -> None:
    found = estimate_complete_share(np.array([*seen, *[0] * 10]), share)
    assert ((found >= 0) & (found <= 1)).all()
    if expected:
        assert found[: len(seen)] == pytest.approx(expected, abs=0.03)


def test_files_that_nobody_was_seen_with_are_not_counted() -> None:
    """Inputs: 10,000 with two readers, half of the uses lost; 2,500 do not appear at all."""
    found = estimate_complete_share(np.array([0, 5_000, 2_500, *[0] * 10]), 0.5, first=1)
    assert found[1] < 0.03
    found = estimate_complete_share(np.array([0, 5_000, *[0] * 11]), 0.5, first=1)
    assert found[1] > 0.97


def test_a_small_run_is_not_too_sure() -> None:
    small, large = chains(1, 2), chains(50, 100)
    for flow in (small, large):
        flow.gone = {1: (10.0, 90.0)}
    assert 0.5 < kept(small, 2, "stage_out") < kept(large, 51, "stage_out")


@pytest.mark.rule("P50")
def test_lost_ranges_do_not_change_who_reads_what() -> None:
    flow = chains(3, 3)
    flow.lost = {1: (500, 10), 2: (500, 10)}
    assert kept(flow, 1, "pipeline") == 1
    assert kept(flow, 4, "stage_out") == 1


def test_more_losses_are_less_sure_and_never_below_nothing() -> None:
    flow = chains(20, 10)
    found = []
    for gone in (0.0, 1.0, 5.0, 20.0, 1e9):
        flow.gone = {1: (gone, 50.0)}
        found.append(kept(flow, 21, "stage_out"))
    assert found == sorted(found, reverse=True)
    assert found[0] == 1
    assert found[-1] < 0.2
