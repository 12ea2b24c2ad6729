"""Matching: as with a regex per rule, and in bounded work for any rules and names."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.hints import hint_file, rule
from tests.support.regex_match import reference_matcher
from tracehint.hintgen.hints.model import Conditions, Formula, HintFile
from tracehint.hintgen.hints.template import HOLES, Subject, Template, parse
from tracehint.hintgen.match.explain import explain
from tracehint.hintgen.match.match import Declared, Matcher
from tracehint.hintgen.match.ruleindex import readers_by_rule
from tracehint.limits import limit

pytestmark = pytest.mark.slow

_HOLES = st.sampled_from(["{" + name + "}" for name in sorted(set(HOLES) - {"name", "dirs"})])
_LITERALS = st.sampled_from(["a", "b", "a/", "_", "-b", ".fits", "x_", "in/"])
_TEMPLATES = st.builds(
    lambda head, middle, tail: head + "_".join(middle) + tail,
    st.sampled_from(["", "{dirs}", "a/", "in/x_", "{name}", "in/{dirs}"]),
    st.lists(st.one_of(_HOLES, _LITERALS), max_size=3),
    st.sampled_from(["", ".fits", "b", "{n}", ".txt"]),
)
_NAMES = st.lists(
    st.sampled_from(["a", "b", "7", "12", "in/", "x_", "_", ".fits", ".txt", "a/", "-", "ff"]),
    min_size=1,
    max_size=7,
).map(lambda parts: "".join(parts).encode())


def _rules(texts: list[str], excludes: list[str]) -> HintFile:
    hints = []
    for at, text in enumerate(texts):
        try:
            parse(text)
        except Exception:
            continue
        exclude = tuple(excludes[at : at + 1])
        needs = {"conditions": Conditions(needs="types")} if at % 5 == 4 else {}
        hints.append(
            rule(text, id=f"r{at}", DP=("local", "scatter")[at % 2], exclude=exclude, **needs)
        )
    return hint_file(*hints)


@given(
    st.lists(_TEMPLATES, min_size=1, max_size=12),
    st.lists(st.sampled_from(["a{n}", "{dirs}{name}.txt", "in/{word}"]), max_size=12),
    st.lists(_NAMES, min_size=1, max_size=12),
)
@settings(max_examples=150, deadline=None)
def test_rules_match_as_without_an_index(
    texts: list[str], excludes: list[str], names: list[bytes]
) -> None:
    hints = _rules(texts, excludes)
    typed = Declared(producer_types=["make"] * len(names), consumer_types=[["use"]] * len(names))
    for known in (Declared(), typed):
        expected = reference_matcher(hints).match(names, known)
        assert Matcher(hints).match(names, known) == expected


HOSTILE_RULES = {
    "one empty suffix": lambda k: f"{{name}}a{{n}}b{k}{{word}}_{{n}}",
    "many placeholders": lambda k: f"{k}".join(["{n}a"] * 24) + "{name}",
    "directories": lambda k: "{dirs}" + f"{{name}}a{k}b{{n}}",
    "the same template": lambda k: "{dirs}{name}",
    "long literals": lambda k: "{name}" + "a" * (k % 2000 + 1) + "{n}",
}
HOSTILE_NAMES = (b"a" * 4096, b"a/" * 2048, b"a1" * 2048, b"1a" * 127 + b"b" * 3000, b"a1b2c_3")


@pytest.mark.parametrize("kind", HOSTILE_RULES)
def test_hostile_rules_cost_a_name_its_limit_at_most(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Counted in steps per name."""

    class Counted(Subject):
        def __init__(self, name: bytes, most: int) -> None:
            super().__init__(name, most)
            subjects.append(self)

    subjects: list[Subject] = []
    monkeypatch.setattr("tracehint.hintgen.match.match.Subject", Counted)
    made = HOSTILE_RULES[kind]
    hints = hint_file(*(rule(made(k), id=f"r{k}", DP="local") for k in range(3000)))
    found = Matcher(hints).match(HOSTILE_NAMES)
    spent = [subject.work for subject in subjects]
    assert len(spent) == len(HOSTILE_NAMES)
    assert max(spent) <= limit("match-work")
    assert {match.reason for match in found} <= {"costly", "no_rule", "fired", "conflict"}
    assert not [match for match in found if match.reason == "costly" and match.hints]


def test_templates_that_cannot_fit_are_not_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    """Names without the text that the rules or their exclusions need; and too many rules."""
    looked: list[str] = []
    real = Template.fit

    def fit(template: Template, subject: Subject) -> tuple[bytes, ...] | None:
        looked.append(template.text)
        return real(template, subject)

    monkeypatch.setattr(Template, "fit", fit)
    names = [b"d/a1b7x%d" % k for k in range(10)]
    for count, reason in ((limit("match-work") // 2, "fired"), (limit("match-work"), "costly")):
        looked.clear()
        left_out = tuple(f"{{dirs}}{{name}}y{k}b{{n}}" for k in range(20))
        hints = hint_file(
            *(rule(f"{{dirs}}{{name}}z{k}b{{n}}", id=f"r{k}", DP="local") for k in range(count)),
            rule("d/{name}x{n}", DP="local", exclude=left_out),
        )
        assert {match.reason for match in Matcher(hints).match(names)} == {reason}
        assert len(looked) <= len(names)


def test_work_follows_the_rules_that_may_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counted in steps: at most twice as many for 4,000 rules, most of other names, as for 40."""
    looked: list[int] = []
    real = Subject.spend

    def spend(subject: Subject, steps: int) -> None:
        looked[-1] += steps
        real(subject, steps)

    monkeypatch.setattr(Subject, "spend", spend)
    for count in (40, 4000):
        looked.append(0)
        hints = hint_file(
            *(rule(f"run{k}/part_{{n}}_{k}.dat", id=f"r{k}", DP="local") for k in range(count))
        )
        names = [f"run{k}/part_7_{k}.dat".encode() for k in range(20)]
        assert [m.reason for m in Matcher(hints).match(names)] == ["fired"] * 20
    assert 0 < looked[1] <= 2 * looked[0]


def test_a_costly_name_is_told_and_the_limit_can_be_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    hints = hint_file(*(rule(f"{{name}}_{k}_{{n}}", id=f"r{k}", DP="local") for k in range(4000)))
    name = b"x_77_8"
    data = explain(hints, name)
    assert data["reason"] == "costly" and "match-work" in data["text"]
    monkeypatch.setenv("TRACEHINT_LIMITS", "match-work=1_000_000")
    assert explain(hints, name)["reason"] == "fired"


def test_readers_are_not_counted_where_a_name_is_too_costly(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    formula = Formula(fn="replicas", per=3, counts=(("in_{n}", 2, 1),))
    one = rule("b", DP="local")
    counted = rule("b", hints=(one.hints[0].__class__("Replication", "2", "create", formula),))
    names = [b"b", *(b"in_%d" % k for k in range(5))]
    assert readers_by_rule([(counted, 1)], names) == {counted.id: 10.0}
    monkeypatch.setenv("TRACEHINT_LIMITS", "match-work=1")
    assert readers_by_rule([(counted, 1)], names) == {}
