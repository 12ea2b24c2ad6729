"""What is found out for one name holds for those that differ from it in digits alone."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.hints import fitted_names, hint_file, rule
from tracehint.hintgen.hints.holes import HOLES
from tracehint.hintgen.hints.model import Hint, Rule
from tracehint.hintgen.hints.template import parse
from tracehint.hintgen.match.known import Declared
from tracehint.hintgen.match.match import Matcher
from tracehint.hintgen.match.skeleton import Skeletons, skeleton_of
from tracehint.hintgen.match.templateindex import TemplateIndex

_TEMPLATES = st.lists(
    st.sampled_from(["a", "7", "12_", "x_", "/", ".f", "_"] + ["{" + n + "}" for n in HOLES]),
    min_size=1, max_size=4,
).map("".join)  # fmt: skip  # a table
_NAMES = st.lists(
    st.sampled_from(["a", "7", "8", "12_", "13_", "x_", "b/", ".f", "_", "0"]),
    min_size=1, max_size=6,
).map(lambda parts: "".join(parts).encode())  # fmt: skip  # a table


def _fine(text: str) -> bool:
    try:
        parse(text)
    except Exception:
        return False
    return True


_GROUP = (Hint("DP", "collocation|g", "create", {"fn": "group", "captures": [0], "prefix": "g"}),)
_COPIES = (Hint("Replication", "3", "create", {"fn": "replicas", "per": 3}),)


@st.composite
def _rules(draw: st.DrawFn) -> list[Rule]:
    texts = draw(st.lists(_TEMPLATES.filter(_fine), min_size=1, max_size=5))
    made = []
    for number, text in enumerate(texts):
        more: dict[str, Any] = {
            "producer": draw(st.sampled_from(["make", "cut"])),
            "hints": draw(st.sampled_from([_GROUP, _COPIES, (Hint("DP", "local", "create"),)])),
            "exclude": tuple(draw(st.lists(_TEMPLATES.filter(_fine), max_size=1))),
            "conditions": draw(
                st.sampled_from(
                    [{}, {"needs": "types"}, {"per_pair": 1}, {"beside": ["{name}12_"]}]
                )
            ),
        }
        made.append(rule(text, id=f"r{number}", **more))
    return made


@given(_rules(), st.lists(_NAMES, min_size=1, max_size=8), st.booleans(), st.data())
def test_together_as_one_by_one(
    rules: list[Rule], names: list[bytes], declared: bool, data: st.DataObject
) -> None:
    known = Declared()
    if declared:
        types = st.sampled_from(["make", "cut", "other", None])
        made = [data.draw(types) for _ in names]
        read = [data.draw(st.sampled_from([(), ("cut",), ("a", "b")])) for _ in names]
        known = Declared(made, read, [[str(m)] if m else [] for m in made], [list(r) for r in read])
    hints = hint_file(*rules)
    shared = Matcher(hints)
    for everything in ((), frozenset(names)):
        found = shared.match(names, known, 4, everything)
        # each from a matcher of its own that has seen no other name
        for i, match in enumerate(found):
            fresh = Matcher(hints)
            fresh.picker.remembered = _Forgetful()
            assert match == fresh.match(names, known, 4, everything)[i]


class _Forgetful(dict[Any, Any]):
    """Remembers nothing."""

    def __setitem__(self, key: Any, value: Any) -> None:
        pass


def test_names_of_one_skeleton_are_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    looked = fitted_names(monkeypatch, TemplateIndex)
    names = [b"run%03d/part_%04d.f" % (n % 7, n) for n in range(5_000)]
    found = Matcher(hint_file(rule("{dirs}part_{n}.f", hints=_GROUP))).match(names)
    assert len(looked) == 1
    assert found[4321].hints[0].value.startswith("collocation|g-run002")


@pytest.mark.parametrize(
    ("template", "alike"),
    [("part_{n}", True), ("chr21_{n}", False), ("chr{n}_{n}", True), ("other3", True)],
)
def test_digits_in_a_rule_tell_names_apart(template: str, alike: bool) -> None:
    assert Skeletons([parse(template)]).alike(skeleton_of(b"chr22_7"), 1000) == alike


def test_files_of_one_task_have_one_outcome_whatever_their_names() -> None:
    """A group that a task names: neither digits nor letters of its files make another hint."""
    names = [b"%s/part_%d.f" % (bytes([97 + n % 26]) * (n % 5 + 1), n) for n in range(500)]
    makers = [[f"m{n}"] for n in range(500)]
    readers = [[f"r{n % 3}"] for n in range(500)]
    known = Declared(["make"] * 500, [["cut"]] * 500, makers, readers)
    grouped = rule("{dirs}part_{n}.f", consumers=("cut",), hints=_GROUP)
    codes, found = Matcher(hint_file(grouped)).outcomes(names, known)
    assert len(found) == 3
    values = [found[code].hints[0].value for code in codes.tolist()]
    assert values == [f"collocation|{read[0]}" for read in readers]
