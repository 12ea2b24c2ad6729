"""The check of `make lint` on the size of functions and files finds what it is for."""

from __future__ import annotations

from pathlib import Path

import pytest
from scripts import house


def test_the_rooms_are_looked_at_once() -> None:
    found = [str(path.relative_to(house.ROOT)) for path in house.files(house.ROOT)]
    assert len(found) > 600 and len(found) == len({Path(name).resolve() for name in found})
    assert {"src/tracehint/cli.py", "src/tracehint/commands/run.py", "analyzer/analyze.py"} <= {
        *found
    }


def test_a_long_function_a_long_file_and_an_unformatted_line_are_named(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_text("def f():\n" + "    a = 1\n" * house.FUNCTION)
    assert house.breaches(tmp_path, [path]) == ["a.py:1: f has 41 lines (at most 40): divide it"]
    path.write_text("def f():\n" + "    a = 1\n" * (house.FUNCTION - 1))
    assert not house.breaches(tmp_path, [path])
    path.write_text("a = 1\n" * (house.FILE + 1))
    assert house.breaches(tmp_path, [path]) == ["a.py:1: 251 lines (at most 250): divide it"]
    skip = "# fmt: " + "skip"  # in two: this line is formatted
    path.write_text(f"a = [1,\n 2]  {skip}\nb = [1,\n 2]  {skip}  # a table\n")
    assert [text.partition(": ")[0] for text in house.breaches(tmp_path, [path])] == ["a.py:2"]


def test_a_class_name_with_two_meanings_is_named(tmp_path: Path) -> None:
    one, two = tmp_path / "one.py", tmp_path / "two.py"
    one.write_text("class Asked: ...\nclass Old: ...\n")
    two.write_text("class Asked: ...\n")
    assert house.repeated([one, two]) == [f"Asked: one meaning each: {one}:1, {two}:1"]
    assert not house.repeated([one])


@pytest.mark.slow
def test_the_rooms_are_of_a_readable_size() -> None:
    assert not house.breaches(house.ROOT, house.files(house.ROOT))
