"""Descriptions by columns are those that `describe` gives one by one."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.support.hostile import HOSTILE_NAMES
from tracehint.analyzer.tasks.describe import describe
from tracehint.analyzer.tasks.plain import plain_descriptions

WORDS = [
    b"prog", b"/opt/x/prog", b"/opt/x/", b"prog3.11", b"A=/b/c", b"-sh", b"sh", b"-c", b"env", b"",
    b"set", b"/", b"'/a/b", b"a b", b"a  b", b" ", b"x" * 90, b"/" + b"y" * 85, b"tracehint",
    "µ".encode(), b"\xff", b"a\tb", b"/usr/bin/python3", b"run.py", b"z" * 9000, b"-", b"//", b"7z",
    *HOSTILE_NAMES,
]  # fmt: skip  # a table


@settings(max_examples=60, deadline=None)
@given(st.lists(st.lists(st.sampled_from(WORDS), max_size=4), max_size=30))
@example([[b"prog", b"a", b"b"], [b"/opt/x/prog", b"x" * 75], [], [b"sh", b"-c", b"cat x"]])
def test_plain_commands_are_described_as_one_by_one(commands: list[list[bytes]]) -> None:
    columns, holds = plain_descriptions(pa.array(commands, pa.list_(pa.binary())))
    for i, words in enumerate(commands):
        if holds[i]:
            wanted = describe(words)
            found = tuple(columns[name][i].as_py() for name in ("name", "type", "command"))
            assert found == (wanted.name, wanted.type, wanted.command)


def test_ordinary_commands_are_plain() -> None:
    argv = pa.array(
        [[b"/opt/bin/prog", b"in"], [b"sh", b"-c", b"x"], [b"a b"]], pa.list_(pa.binary())
    )
    columns, holds = plain_descriptions(argv)
    assert holds.tolist() == [True, False, False]
    assert columns["name"][0].as_py() == "prog in"
