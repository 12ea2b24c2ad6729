"""What `hints` prints for people."""

from __future__ import annotations

import unicodedata

from tests.support.hostile import HOSTILE_NAMES
from tracehint.hintgen.hints.model import Hint, HintFile, Refusal, Rule
from tracehint.hintgen.match.explain import summary_text


def rule(template: str, files: int, **more: object) -> Rule:
    values = {
        "id": "r", "template": template, "regex": "x", "directory": "", "producer": "a",
        "consumers": ("b",), "pattern": "stage_in", "hints": (Hint("DP", "local", "create"),),
        "confidence": 0.5, "evidence": {"files": files, "bytes": 3 << 20, "saves_bytes": 1 << 20},
    }  # fmt: skip  # a table
    return Rule(**(values | more))  # type: ignore[arg-type]


def test_a_table_with_units_and_the_refused_by_reason() -> None:
    rules = (
        rule("a_{n}.bin", 8),
        rule("b", 1, evidence={"files": 1, "bytes": 10}),
        rule("{name}", 1, evidence={"level": 2}),
    )
    refused = [Refusal(f"x{i}", "reduce", "no_gain", f"too little in x{i}", 1, 1) for i in range(6)]
    refused.append(Refusal("y", "reduce", "capacity", "too much", 1, 1))
    assert summary_text(HintFile((), {}, rules, tuple(refused))).splitlines() == [
        "pattern   files                seen  saves  sure  hints",
        "stage in  a_{n}.bin  8 files, 3 MiB  1 MiB  0.50  DP=local",
        "stage in  b            1 file, 10 B      -  0.50  DP=local",
        "2 rules for the names of this run, 1 more general one for other names",
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
