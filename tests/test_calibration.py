"""Confidence is the probability that a label is right when records were lost.

The curve: docs/reference/confidence.md.
"""

from __future__ import annotations

import pytest

from tests.support.calibration import Given, collect, error
from tests.support.losses import LOSSES

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def given() -> list[Given]:
    return collect((11,), 150, (0.05, 0.2, 0.5))


def test_calibration_error_is_small(given: list[Given]) -> None:
    assert len(given) > 3000
    assert error(given) <= 0.03


@pytest.mark.parametrize("kind", LOSSES)
def test_for_every_kind_of_loss(given: list[Given], kind: str) -> None:
    assert error([g for g in given if g.kind == kind]) <= 0.05


@pytest.mark.parametrize("share", [0.05, 0.2, 0.5])
def test_for_every_share_of_losses(given: list[Given], share: float) -> None:
    assert error([g for g in given if g.share == share]) <= 0.08


def test_what_is_said_to_be_doubtful_is(given: list[Given]) -> None:
    """Confidence below 0.95 is calibrated, 98 % of the other labels are right, errors score low."""
    doubtful = [g for g in given if g.confidence < 0.95]
    assert len(doubtful) > 300
    assert error(doubtful) <= 0.15
    sure = [g for g in given if g.confidence >= 0.95]
    assert sum(g.right for g in sure) >= 0.98 * len(sure)
    wrong = [g for g in given if not g.right]
    assert sum(g.confidence < 0.7 for g in wrong) >= 0.7 * len(wrong)


def test_more_confidence_is_more_often_right(given: list[Given]) -> None:
    """Halves of the scale are compared, so that chance does not decide."""
    low, high = ([g for g in given if (g.confidence >= 0.5) == side] for side in (False, True))
    assert sum(g.right for g in low) / len(low) < sum(g.right for g in high) / len(high) - 0.2
