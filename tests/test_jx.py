"""JX: values, bounds, and agreement with the evaluator of cctools."""

from __future__ import annotations

import contextlib
import json
import math
import os
import random
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.patience import PATIENCE_S
from tracehint.adapters.engines.jx import JxError, evaluate

FAILS = "fails"
EXAMPLES = Path(__file__).parent / "examples" / "jx_expressions.txt"


def ours(text: str) -> Any:
    try:
        return rounded(evaluate(text))
    except JxError:
        return FAILS


def theirs(text: str) -> Any:
    """What jx2json prints; doubles have 15 to 16 digits there."""
    done = subprocess.run(["jx2json"], input=text.encode(), capture_output=True, timeout=PATIENCE_S)
    out = done.stdout.strip()
    if not out or out.startswith(b"error(") or b"malformed" in done.stderr:
        return FAILS
    return rounded(json.loads(out.replace(b"\\'", b"'")))


def rounded(value: Any) -> Any:
    """Doubles by 15 digits; whole ones as integers, since jx2json writes no point."""
    if isinstance(value, float):
        short = float(f"{value:.15g}")
        return int(short) if math.isfinite(short) and short.is_integer() else short
    if isinstance(value, list):
        return [rounded(v) for v in value]
    if isinstance(value, dict):
        return {k: rounded(v) for k, v in value.items()}
    return value


@pytest.fixture(scope="module")
def jx2json() -> None:
    if shutil.which("jx2json") is None:
        pytest.skip("jx2json (coop-computing-tools) is not installed")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("10-3-2", 9),  # from the right, as cctools does
        ("true or true and false", False),  # `and` binds least
        ("-7/2", -3),
        ("-7%3", -1),
        ('"a" + 1 + 2', "a3"),
        ("[1,2,3][1:]", [2, 3]),
        (
            "[[x, y] for x in range(2) for y in range(3) if x != y]",
            [[0, 1], [0, 2], [1, 0], [1, 2]],
        ),
        (
            '{"define": {"a": b + 1, "b": 3}, "r": [a, b]}',
            {"define": {"a": 4, "b": 3}, "r": [4, 3]},
        ),
        ('format("%d %s %f %%", 1, "a", 1.5)', "1 a 1.500000 %"),
        ('template("{n}.txt", {"n": 7})', "7.txt"),
        ('{"a" + x: x for x in ["b"]}', {"ab": "b"}),
        ('basename("/a/b.txt", ".txt") + dirname("/a/b")', "b/a"),
        ("[] # the end\nanything", []),
    ],
)
def test_values(text: str, value: Any) -> None:
    assert evaluate(text) == value


@pytest.mark.engine
@pytest.mark.usefixtures("jx2json")
def test_agreement_on_a_list_of_expressions() -> None:
    different = [t for t in EXAMPLES.read_text().splitlines() if ours(t) != theirs(t)]
    assert different == []


_ATOMS = [
    "0",
    "1",
    "2",
    "-3",
    "7",
    "0.5",
    "2.0",
    '"a"',
    '"b1"',
    '""',
    "true",
    "false",
    "null",
    "x",
    "y",
    "undefined",
    "[]",
    "[1,2,3]",
    '["p","q"]',
    "{}",
    '{"k":1}',
]
_MARKS = ["+", "-", "*", "/", "%", "==", "!=", "<", "<=", ">", ">=", "and", "or", "&&", "||"]
_CALLS = [
    "range",
    "len",
    "join",
    "keys",
    "values",
    "items",
    "ceil",
    "floor",
    "basename",
    "dirname",
    "escape",
    "schema",
]
# @ is an expression, ~ an operator between two, ^ the name of a function
_SHAPES = [
    "@ ~ @", "@ ~ @", "@ ~ @ ~ @", "(@ ~ @) ~ @", "not @", "-@", "+ @", "!@", "(@)", "[@, @,]",
    "(@)[@]", "[1,2,3,4][@:@]", "[@ for x in [@, 1] if @]", "[@ for y in @ for x in [y, 2]]",
    "^(@)", "^(@)", 'format("%d-%s", @, @)', 'format("%s", @)', 'template("{x}{k}", {"k": @})',
    'join(["a", @], @)', 'select(@, [{"k": @}, {"k": 2}])', 'project(@, [{"k": @}, {"x": 2}])',
]  # fmt: skip  # a table


def expression(dice: random.Random, depth: int) -> str:
    """A random expression, mostly with types that fit nowhere."""
    if depth == 0 or dice.random() < 0.2:
        return dice.choice(_ATOMS)
    out = []
    for char in dice.choice(_SHAPES):
        match char:
            case "@":
                out.append(expression(dice, depth - 1))
            case "~":
                out.append(dice.choice(_MARKS))
            case "^":
                out.append(dice.choice(_CALLS))
            case _:
                out.append(char)
    return "".join(out)


def _compare_random(seed: int, count: int) -> None:
    dice = random.Random(seed)
    values = 0
    for _ in range(count):
        text = f'{{"define": {{"x": 2, "y": "b"}}, "v": {expression(dice, dice.randrange(1, 4))}}}'
        expected = theirs(text)
        assert ours(text) == expected, text
        values += expected != FAILS
    assert values > count / 8  # the others fail in both


@pytest.mark.engine
@pytest.mark.usefixtures("jx2json")
def test_agreement_on_random_expressions() -> None:
    _compare_random(1, 400)


@pytest.mark.engine
@pytest.mark.full
@pytest.mark.usefixtures("jx2json")
def test_agreement_on_many_random_expressions() -> None:
    _compare_random(random.randrange(1 << 30), 5_000)


@pytest.mark.parametrize(
    "text",
    [
        '{"define": {"a": a}, "r": [a]}',
        '{"define": {"a": [b, b], "b": [a, a]}, "r": [a]}',
        "[" * 5000,
        "(" * 5000 + "1" + ")" * 5000,
        "-" * 5000 + "1",
        "[1]" + "[0]" * 5000,
        "not " * 5000 + "true",
        "[1 " + "for x in [1] " * 5000 + "]",
    ],
)
def test_depth_is_bounded(text: str) -> None:
    with pytest.raises(JxError, match=r"nested|more than|itself"):
        evaluate(text)


def _doubling(how: str) -> str:
    pairs = ", ".join(f'"a{i + 1}": {how.replace("A", f"a{i}")}' for i in range(60))
    return f'{{"define": {{"a0": [1, 1], {pairs}}}, "r": a60}}'


@pytest.mark.parametrize(
    "text",
    [
        "range(1000000000000)",
        "range(-9223372036854775807, 9223372036854775807)",
        "[x for x in range(100) for x in range(100) for x in range(100) for x in range(100)]",
        _doubling("A + A"),
        _doubling("[A, A]"),
        _doubling("[x for y in [1, 1] for x in A]"),
        '{"define": {"a": join([format("%s", "' + "x" * 1000 + '") for i in range(10000)])}, '
        '"r": [a for i in range(1000)]}',
        "[[x, x] for x in [[x, x] for x in [[x, x] for x in [[x, x] for x in range(90000)]]]]",
    ],
)
def test_work_is_bounded(text: str) -> None:
    with pytest.raises(JxError, match=r"more evaluation steps|nested"):
        evaluate(text, steps=1_000_000)


def test_long_sums_are_not_deep() -> None:
    assert evaluate("+".join(["1"] * 20_000)) == 20_000
    assert len(evaluate("+".join(['"ab"'] * 2_000))) == 4_000


def test_nothing_outside_the_folder_is_read(tmp_path: Path) -> None:
    inside = tmp_path / "w"
    (inside / "data").mkdir(parents=True)
    (inside / "data" / "one").touch()
    (tmp_path / "secret").mkdir()
    (inside / "link").symlink_to(tmp_path / "secret")
    assert evaluate('listdir("data")', inside) == ["one"]
    for path in ("..", "/", "link", "data/../..", os.fspath(tmp_path), "a\\u0001", "none"):
        with pytest.raises(JxError):
            evaluate(f'listdir("{path}")', inside)
    with pytest.raises(JxError, match="not read here"):
        evaluate('listdir("data")')
    (inside / "f.json").write_text("{}")
    with pytest.raises(JxError, match="fetch"):
        evaluate('fetch("f.json")', inside)


@given(text=st.text(alphabet='[]{}(),:;"\\#+-*/%=!<>&|.19eaxfor in\n', max_size=60))
def test_any_text_is_a_value_or_an_error(text: str) -> None:
    with contextlib.suppress(JxError):
        json.dumps(evaluate(text, steps=10_000))
