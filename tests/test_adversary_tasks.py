"""Runs in which the wrong processes are easily identified as a task."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.answers import ENGINES, answer

pytestmark = [pytest.mark.ebpf, pytest.mark.slow]

PIPES = """seq 100 > a
cat a | while read l; do echo "$l"; done | sort > b
echo hello | tr a-z A-Z > c
cat b c | while read l; do echo "$l"; done > d
x=$(echo hi)
sort d | { read x; echo "$x"; } > e
"""


@pytest.mark.parametrize("collector", ENGINES)
def test_a_loop_of_builtins_in_a_pipeline_is_a_part_of_it(tmp_path: Path, collector: str) -> None:
    found = answer(tmp_path, PIPES, collector)
    assert found.tasks == ["seq 100", "cat a | sort", "tr a-z A-Z", "cat b c", "sort d"]
    assert found.edges == [
        ("cat a | sort", "b", "cat b c", 292),
        ("cat b c", "d", "sort d", 298),
        ("seq 100", "a", "cat a | sort", 292),
        ("tr a-z A-Z", "c", "cat b c", 6),
    ]
    assert [t["name"] for t in found.data["tasks"] if t["engine"]][1:] == ["worker"]  # $( )
