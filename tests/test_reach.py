"""Whether a graph orders two tasks: the result equals a plain search, in bounded work."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tracehint.analyzer.arrays import ints
from tracehint.hintgen import reach
from tracehint.hintgen.reach import Reach

NODES = st.integers(-4, 12)
PAIRS = st.lists(st.tuples(NODES, NODES), max_size=30)


def _columns(pairs: list[tuple[int, int]]) -> tuple[reach.Ints, reach.Ints]:
    return ints([a for a, _ in pairs]), ints([b for _, b in pairs])


def _leads(links: list[tuple[int, int]], start: int, end: int) -> bool:
    """Whether a path of at least one link leads from one node to another."""
    seen, stack = {start}, [start]
    while stack:
        here = stack.pop()
        for node in {b for a, b in links if a == here} - seen:
            seen.add(node)
            stack.append(node)
    return end in seen - {start}


@pytest.mark.slow
@settings(deadline=None, max_examples=300)
@given(links=PAIRS, pairs=PAIRS)
def test_equals_a_plain_search(links: list[tuple[int, int]], pairs: list[tuple[int, int]]) -> None:
    unordered, unknown = Reach(*_columns(links)).split(*_columns(pairs))
    assert unordered.tolist() == [not _leads(links, a, b) for a, b in pairs]
    assert not unknown.any()


@settings(deadline=None, max_examples=100)
@given(links=PAIRS, pairs=PAIRS, steps=st.integers(0, 20))
def test_few_steps_leave_what_is_unknown(
    links: list[tuple[int, int]], pairs: list[tuple[int, int]], steps: int
) -> None:
    """Definite answers are correct; searches that were cut off are reported as unknown."""
    unordered, unknown = Reach(*_columns(links), steps=steps).split(*_columns(pairs))
    for (a, b), free, open_ in zip(pairs, unordered, unknown, strict=True):
        assert free + open_ <= 1
        assert open_ or free == (not _leads(links, a, b))


def test_starts_are_walked_in_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    chain = np.arange(200)
    starts, ends = np.divmod(np.arange(40_000), 200)
    whole, _ = Reach(chain[:-1], chain[1:]).split(starts, ends)
    monkeypatch.setattr(reach, "CELLS", 1_000)
    parts, unknown = Reach(chain[:-1], chain[1:]).split(starts, ends)
    assert np.array_equal(whole, starts >= ends)
    assert np.array_equal(whole, parts)
    assert not unknown.any()
