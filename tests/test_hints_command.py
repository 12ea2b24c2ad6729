"""`tracehint hints` from the command line."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

from tests.support.hints import json_schema
from tests.test_hints_rules import mosaic
from tracehint.analyzer.output.json import to_json
from tracehint.cli import main

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    tmp_path = tmp_path_factory.mktemp("runs")
    for name, tiles in (("small", 4), ("large", 9)):
        (tmp_path / f"{name}.json").write_text(json.dumps(to_json(mosaic(tiles).analysis())))
    return str(tmp_path / "small.json"), str(tmp_path / "large.json")


def test_learn_then_explain(
    runs: tuple[str, str], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    target = str(tmp_path / "h.json")
    assert main(["hints", runs[0], "-o", target]) == 0
    out, err = capfd.readouterr()
    assert out == ""
    assert "tracehint emit" in err
    assert main(["hints", runs[0], "-o", target]) == 2
    assert "--force" in capfd.readouterr().err
    assert main(["hints", target, "--explain", "out/p_900.fits"]) == 0
    text = capfd.readouterr().out
    assert "out/p_{n}.fits" in text
    assert "DP=local" in text
    assert main(["hints", target, "--explain", "out/nothing", "--format", "json"]) == 0
    data = json.loads(capfd.readouterr().out)
    assert (data["rule"], data["reason"]) == (None, "no_rule")


def test_score(runs: tuple[str, str], capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["hints", runs[0], "--score", runs[1], "--format", "json"]) == 0
    data = json.loads(capfd.readouterr().out)
    assert data["given"] == "path"
    assert 0 < data["recall"] < 1  # the number of readers of the header is unknown
    assert {w["hint"] for w in data["wrong"]} == {"Replication"}
    assert {"precision", "recall", "per_pattern", "by_bytes", "baseline"} <= set(data)
    assert main(["hints", runs[0], "--score", runs[1], "--given", "graph"]) == 0
    assert " 1.0000    1.0000" in capfd.readouterr().out.splitlines()[1]


@pytest.mark.parametrize("given", ["auto", "path", "names", "graph"])
def test_the_score_is_what_its_schema_says(
    given: str, runs: tuple[str, str], capfd: pytest.CaptureFixture[str]
) -> None:
    schema = json_schema("score")
    jsonschema.Draft202012Validator.check_schema(schema)
    command = ["hints", runs[0], "--score", runs[1], "--format", "json", "--given", given]
    assert main(command) == 0
    data = json.loads(capfd.readouterr().out)
    jsonschema.validate(data, schema)
    assert set(data) == set(schema["$defs"]["ScoreDocument"]["properties"])
    assert data["given"] == (given if given != "auto" else "path")
    same = {"path": "by_path_alone", "names": "by_names"}.get(data["given"])
    if same:
        assert data[same] == {key: data[key] for key in data[same]}
    assert sum(data["losses"].values()) == len(data["wrong"])
    assert {row["why"] for row in data["wrong"]} == set(data["losses"])
    assert data["hits"] + data["missed"] == data["units"]


def test_hint_file_to_stdout(runs: tuple[str, str], capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["hints", *runs, "--format", "json"]) == 0
    data = json.loads(capfd.readouterr().out)
    assert data["schema"] == "tracehint.hints/1"
    assert len(data["learned_from"]) == 2


@pytest.mark.parametrize(
    "args",
    [
        [],
        ["missing.trace"],
        ["{h}", "--score", "{small}"],
        ["{small}", "--score", "missing"],
        ["{small}", "--score", "{small}", "--explain", "x"],
        ["{bad}"],
    ],
)
def test_what_cannot_be_done_is_said(
    args: list[str], runs: tuple[str, str], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    hints, bad = tmp_path / "h.json", tmp_path / "bad.json"
    hints.write_text('{"schema": "tracehint.hints/1", "learned_from": [], "parameters": {}}')
    bad.write_text('{"schema": "tracehint.hints/1", "rules": 3}')
    capfd.readouterr()
    filled = [a.format(h=hints, small=runs[0], bad=bad) for a in args]
    assert main(["hints", *filled]) == 2
    out, err = capfd.readouterr()
    assert out == ""
    assert err
    assert "Traceback" not in err


def test_a_call_that_costs_more_than_it_saves_is_refused_and_explained(
    runs: tuple[str, str], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "h.json"
    cost = ["--call-ms", "30000", "--link-mbit", "200"]
    assert main(["hints", runs[0], "-o", str(target), *cost]) == 0
    made = json.loads(target.read_text())
    assert made["rules"] == []
    assert (made["parameters"]["call_ms"], made["parameters"]["link_mbit"]) == (30_000, 200)
    capfd.readouterr()
    assert main(["hints", str(target), "--explain", "out/p_2.fits", "--format", "json"]) == 0
    data = json.loads(capfd.readouterr().out)
    assert data["reason"] == "held_back"
    assert [r["reason"] for r in data["refused"]] == ["call_cost"]
    assert "200 Mbit/s" in data["refused"][0]["text"]
    assert main(["hints", runs[0], "--call-ms", "0.1", "--link-mbit", "200"]) == 0
    assert "DP=local" in capfd.readouterr().out
