"""The chance that a lost access would change a label, against numbers worked out by hand."""

from __future__ import annotations

import pytest

from tests.support.flow_builder import FlowBuilder

MB = 1 << 20


def chains(count: int, outputs: int) -> FlowBuilder:
    """`count` files with a writer and a reader, `outputs` with a writer only."""
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
    """L = 1/5, r = 1/4: 10 of 39 + 1 pipelines, 1/16 of 0 + 1 with two; of 99 + 1 outputs."""
    flow = chains(39, 99)
    flow.gone = {1: (10.0, 40.0)}
    assert kept(flow, 40, "stage_out") == pytest.approx(1 - (10 + 1 / 16) / 100, abs=1e-4)


@pytest.mark.rule("P50")
def test_a_pipeline_can_be_a_file_with_a_second_reader() -> None:
    """2 r (0 + 1) + 3 r^2 (0 + 1) of 39 + 1 files, for readers and for writers."""
    flow = chains(39, 99)
    flow.gone = {1: (10.0, 40.0)}
    one = 1 - (2 / 4 + 3 / 16) / 40
    assert kept(flow, 1, "pipeline") == pytest.approx(one * one, abs=1e-4)


def test_a_small_run_is_not_too_sure() -> None:
    flow = chains(1, 1)
    flow.gone = {1: (10.0, 40.0)}
    assert kept(flow, 2, "stage_out") == pytest.approx(1 - (2 / 4 + 1 / 16) / 2, abs=1e-4)


@pytest.mark.rule("P50")
def test_lost_ranges_do_not_change_who_reads_what() -> None:
    flow = chains(3, 3)
    flow.lost = {1: (500, 10), 2: (500, 10)}
    assert kept(flow, 1, "pipeline") == 1
    assert kept(flow, 4, "stage_out") == 1


def test_more_losses_are_less_sure_and_never_below_nothing() -> None:
    flow = chains(20, 10)
    sure = []
    for gone in (0.0, 1.0, 5.0, 20.0, 1e9):
        flow.gone = {1: (gone, 50.0)}
        sure.append(kept(flow, 21, "stage_out"))
    assert sure == sorted(sure, reverse=True)
    assert sure[0] == 1
    assert sure[-1] == 0
