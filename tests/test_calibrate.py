"""calibrate: every figure is measured, and what cannot be measured is null with a reason."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tracehint.cli import main


def calibrate(folder: Path, capsys: pytest.CaptureFixture[str], *more: str) -> dict[str, dict]:  # type: ignore[type-arg]
    """The JSON of a short measurement."""
    assert main(["calibrate", str(folder), "--seconds", "1.5", "--size-mb", "8", *more]) == 0
    result: dict[str, dict] = json.loads(capsys.readouterr().out)  # type: ignore[type-arg]
    return result


def test_measures_calls_and_rates_and_cleans_up(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = calibrate(tmp_path, capsys)
    assert found["schema"] == "tracehint.calibration/1"
    for call in ("create", "open", "set", "get"):
        row = found["calls"][call]
        assert 0 < row["low"] <= row["seconds"] <= row["high"] < 1
        assert row["samples"] >= 5
    assert found["write"]["bytes"] == 8 << 20
    assert found["write"]["bytes_per_s"] > 0
    assert list(tmp_path.iterdir()) == []


def test_a_store_in_memory_has_no_read_rate(capsys: pytest.CaptureFixture[str]) -> None:
    memory = Path("/dev/shm")
    if not os.access(memory, os.W_OK):
        pytest.skip("no /dev/shm")
    found = calibrate(memory, capsys)
    assert found["read"]["bytes_per_s"] is None
    assert "memory" in found["read"]["reason"]


def test_a_store_that_refuses_its_attributes_says_why(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = calibrate(tmp_path, capsys, "--store", "woss")
    assert found["calls"]["set"]["seconds"] is None
    assert found["calls"]["set"]["reason"] == "Operation not supported"


@pytest.mark.parametrize("place", ["missing", "/proc"])
def test_a_place_that_cannot_be_written(
    tmp_path: Path, place: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["calibrate", str(tmp_path / place)]) == 2
    assert "Name" in capsys.readouterr().err
