"""Hint files: round trip, schema, and what a hostile one cannot do."""

from __future__ import annotations

import copy
import json
import unicodedata
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tests.support.flows import Flowing
from tests.support.hints import json_schema, parsed
from tests.support.hostile import HOSTILE_NAMES
from tests.support.learning import BIG, learned, mosaic
from tracehint.errors import InputError
from tracehint.hintgen.gain import Baseline, Gain
from tracehint.hintgen.hints.hintfile import dump, load, to_json
from tracehint.hintgen.hints.model import Hint, HintFile, Refusal, Rule
from tracehint.hintgen.hints.vocabulary import HINT_NAMES, valid
from tracehint.hintgen.learn.rules import LearnOptions, learn
from tracehint.hintgen.learn.safety import NO_LIMITS
from tracehint.hintgen.match.explain import summary_text
from tracehint.hintgen.match.match import match


@pytest.fixture(scope="module")
def hints() -> HintFile:
    run = mosaic()
    for k in range(4):
        task = run.task("cut")
        run.write(task, "cut.bin", 4 * BIG, k * BIG, (k + 1) * BIG)
        run.read(run.task("use"), "cut.bin", 4 * BIG, k * BIG, (k + 1) * BIG)
    return learned(run)


@pytest.fixture
def data(hints: HintFile) -> dict[str, Any]:
    return copy.deepcopy(json.loads(json.dumps(to_json(hints))))


def test_round_trip(hints: HintFile, tmp_path: Path) -> None:
    dump(hints, tmp_path / "h.json")
    assert load(tmp_path / "h.json") == hints
    with pytest.raises(InputError, match="exists"):
        dump(hints, tmp_path / "h.json")


def test_the_schema_describes_what_is_written(data: dict[str, Any]) -> None:
    schema = json_schema("hints")
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(data, schema)
    names = schema["$defs"]["Hint"]["properties"]["name"]["enum"]
    assert sorted(names) == sorted(HINT_NAMES)
    for rule in data["rules"]:
        assert set(rule) == set(schema["$defs"]["Rule"]["properties"])


def test_every_hint_that_is_learned_is_in_the_vocabulary(hints: HintFile) -> None:
    assert hints.rules
    for rule in hints.rules:
        for hint in (*rule.hints, *(h for v in rule.variants for h in v.hints)):
            assert valid(hint.name, hint.value), hint


def _spoil(data: dict[str, Any], *path: Any, value: Any) -> dict[str, Any]:
    at = data
    for key in path[:-1]:
        at = at[key]
    at[path[-1]] = value
    return data


BAD: list[tuple[tuple[Any, ...], Any]] = [
    (("schema",), "tracehint.hints/9"),
    (("rules",), "none"),
    (("rules", 0, "regex"), "(a+)+$"),
    (("rules", 0, "template"), "{any}"),
    (("rules", 0, "template"), "{name}{name}{name}{name}.x"),
    (("rules", 0, "exclude"), ["(x"] * 100),
    (("rules", 0, "exclude"), ["{nope}"]),
    (("rules", 0, "hints", 0, "name"), "security.capability"),
    (("rules", 0, "hints", 0, "value"), "local; rm -rf /"),
    (("rules", 0, "hints", 0, "value"), "local\n"),
    (("rules", 0, "hints", 0, "formula"), {"fn": "eval", "code": "1"}),
    (("rules", 0, "hints", 0, "formula"), {"fn": "replicas", "per": 0}),
    (("rules", 0, "hints", 0, "formula"), {"fn": "group", "captures": ["x"]}),
    (("rules", 0, "hints", 0, "formula"), {"fn": "group", "captures": [-1]}),
    (("rules", 0, "hints", 0, "formula"), {"fn": "replicas", "step": 1}),
    (("rules", 0, "hints"), [{}] * 17),
    (("rules", 0, "conditions"), {"needs": "magic"}),
    (("rules", 0, "hints", 0, "formula"), {"fn": "group", "letters": "yes"}),
    (("rules", 0, "hints", 0, "formula"), {"fn": "replicas", "counts": [["{n}", 1]]}),
    (("rules", 0, "hints", 0, "formula"), {"fn": "replicas", "counts": [["{nope}", 1, 1]]}),
    (("rules", 0, "hints", 0, "formula"), {"fn": "replicas", "counts": [["{n}", 0, 1]]}),
    (("rules", 0, "hints", 0, "formula"), {"fn": "replicas", "counts": [["x", 1, 1]] * 33}),
    (("rules", 0, "conditions"), {"beside": ["a{n}"]}),
    (("rules", 0, "conditions"), {"beside": ["{name}{name}"]}),
    (("rules", 0, "conditions"), {"beside": "{name}.x"}),
    (("rules", 0, "conditions"), {"per_pair": True}),
    (("rules", 0, "conditions"), {"when": "now"}),
    (("rules", 0, "confidence"), 7),
    (("rules", 0, "confidence"), float("nan")),
    (("rules", 0, "per_file"), {"x": {"DP": "`id`"}}),
    (("rules", 0, "id"), None),
    (("rules", 0, "producers"), [3]),
    (("rules", 0, "variants"), [{"use": "shared"}]),
    (("rules", 0, "evidence"), {"files": "many"}),
    (("rules", 0, "evidence"), {}),
]


@pytest.mark.parametrize(("path", "value"), BAD, ids=lambda item: str(item)[:40])
def test_what_is_wrong_is_refused_without_a_traceback(
    data: dict[str, Any], path: tuple[Any, ...], value: Any
) -> None:
    with pytest.raises(InputError):
        parsed(_spoil(data, *path, value=value))


@pytest.mark.parametrize("text", ["", "[]", "{", "null", "[" * 100_000, '"\ud800"'])
def test_not_a_hint_file(text: str, tmp_path: Path) -> None:
    path = tmp_path / "h.json"
    path.write_text(text, errors="surrogatepass")
    with pytest.raises(InputError):
        load(path)


def test_the_same_rule_twice_is_refused(data: dict[str, Any]) -> None:
    data["rules"].append(data["rules"][0])
    with pytest.raises(InputError, match="twice"):
        parsed(data)


def test_hostile_names_go_through_learning_and_files(tmp_path: Path) -> None:
    run = Flowing()
    names = [name for name in HOSTILE_NAMES if name not in (b".", b"..")]
    for name in names:
        run.write(run.task("make"), name, BIG)
        run.read(run.task("use"), name, BIG)
    hints = learn([run.analysis()], LearnOptions(limits=NO_LIMITS, fallbacks=False))
    dump(hints, tmp_path / "h.json")
    text = (tmp_path / "h.json").read_text()
    assert all(char == "\n" or char.isprintable() for char in text)
    found = match(load(tmp_path / "h.json"), names)
    assert all(m.values["DP"] == "local" for m in found)


def test_group_values_from_hostile_names_stay_harmless() -> None:
    run = Flowing()
    for group in (b"$(id)", b"a\nb", "ü".encode(), b"\xff|x"):
        add = run.task("add")
        for k in range(3):
            name = group + b"_%d.part" % k
            run.write(run.task("make"), name, BIG)
            run.read(add, name, BIG)
    analysis = run.analysis()
    hints = learn([analysis], LearnOptions(limits=NO_LIMITS))
    for m in match(hints, analysis.files["path"].to_pylist()):
        assert all(valid(name, value) for name, value in m.values.items())


# -- The text output of `hints`


def rule(template: str, files: int, **more: object) -> Rule:
    values = {
        "id": "r", "template": template, "regex": "x", "directory": "", "producer": "a",
        "consumers": ("b",), "pattern": "stage_in", "hints": (Hint("DP", "local", "create"),),
        "confidence": 0.5, "evidence": {"files": files, "bytes": 3 << 20, "level": 0},
    }  # fmt: skip  # a table
    return Rule(**(values | more))  # type: ignore[arg-type]


def test_a_table_with_units_and_the_refused_by_reason() -> None:
    rules = (
        rule("a_{n}.bin", 8, gain=Gain(0.1, -0.2, 0.4, 1 << 20)),
        rule("b", 1, evidence={"files": 1, "bytes": 10}),
        rule("{name}", 1, evidence={"level": 2}),
    )
    refused = [Refusal(f"x{i}", "reduce", "no_gain", f"too little in x{i}", 1, 1) for i in range(6)]
    refused.append(Refusal("y", "reduce", "capacity", "too much", 1, 1))
    base = Baseline("mine", 3, 9.0, 4 << 20)
    hints = HintFile((), {}, rules, tuple(refused), baseline=base, all=Gain(2.0, 1.0, 3.0, 0, True))
    assert summary_text(hints).splitlines() == [
        "pattern   files                seen  confidence  hints     saves",
        "stage in  a_{n}.bin  8 files, 3 MiB        0.50  DP=local  1 MiB network traffic",
        "stage in  b            1 file, 10 B        0.50  DP=local  -",
        "2 rules for the names of this run, 1 more general one for other names",
        "All of them together: 2.00 s (1.00 s to 3.00 s) (simulated: mine, 3 nodes)",
        "No hint for x0, x1, x2, x3 and 2 more:",
        "  the first: too little in x0",
        "No hint for y:",
        "  too much",
    ]


def test_no_rules_no_table() -> None:
    text = summary_text(HintFile((), {}, ()))
    assert text == "0 rules for the names of this run, 0 more general ones for other names\n"


def test_hostile_names_stay_on_their_line() -> None:
    for raw in HOSTILE_NAMES:
        name = raw.decode("utf-8", "surrogateescape")
        refusal = Refusal(name, "reduce", "no_gain", f"nothing in {name}", 1, 1)
        text = summary_text(HintFile((), {}, (rule(name, 1),), (refusal,)))
        odd = {c for c in text if unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zl")}
        assert odd == {"\n"}
        assert len(text.splitlines()) == text.count("\n") == 5
