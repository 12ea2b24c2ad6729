"""How wide the intervals of predictions are, and what the errors behind them are used for."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest

from tests.support.predicting import Task, need_engine, plain, workload
from tracehint.adapters.probe.derive import MODEL_ERROR, MODEL_SAID, Known
from tracehint.adapters.probe.write import cluster_text
from tracehint.analyzer.predict.cluster import Range
from tracehint.analyzer.predict.cluster_file import parse_cluster, read_cluster
from tracehint.analyzer.predict.placement import default
from tracehint.analyzer.predict.prediction import Configuration, predict
from tracehint.analyzer.predict.sampling import GUESS
from tracehint.commands._predict_output import _kept
from tracehint.hintgen.plan.judge import _unsure


def half(guessed: float) -> float:
    """Half of the interval of a run of one second, as a share of the time."""
    need_engine()
    work = replace(workload([Task("one", [("compute", 1.0)])], {}), guessed=guessed)
    found = predict(work, [Configuration("x", plain(), "default", default)])[0]
    return (found.high - found.low) / 2 / found.seconds


def test_what_calibrate_writes_is_what_was_measured() -> None:
    known = Known("model", "error", Range(MODEL_ERROR, MODEL_ERROR, MODEL_ERROR), MODEL_SAID)
    found = parse_cluster(cluster_text("mine", "moosefs", [known], []), "mine.toml")
    assert found.model["error"] == MODEL_ERROR < read_cluster("moosefs").model["error"]


@pytest.mark.parametrize("guessed", [0.0, 0.5, 1.0])
def test_what_is_guessed_widens_the_interval(guessed: float) -> None:
    assert half(guessed) == pytest.approx(GUESS * guessed)


def test_a_choice_asks_for_a_difference_that_was_measured() -> None:
    assert _unsure(MODEL_ERROR) == pytest.approx(0.12, abs=0.005)
    assert _unsure(0.4) == 0.2
    assert math.isclose(_unsure(0.0), 0.0)


@pytest.mark.parametrize(
    ("measured", "said"), [(12.0, "error = 0.20"), (10.0, "error = 0.01"), (50.0, "error = 1.00")]
)
def test_a_comparison_says_what_to_keep(measured: float, said: str) -> None:
    found: dict[str, Any] = {
        "measured_seconds": measured, "predicted_seconds": 10.0, "inside": measured < 14
    }  # fmt: skip  # a table
    text = _kept(found)
    assert text.endswith(said) and ("inside" if measured < 14 else "outside") in text
