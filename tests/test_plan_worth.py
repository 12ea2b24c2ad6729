"""Which of several strategies with near times is chosen: the leanest."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.support.planning import MB
from tests.support.predicting import Task, plain, workload
from tracehint.analyzer.predict.placement import local
from tracehint.hintgen.plan.judge import choose, leanest
from tracehint.hintgen.plan.model import Draft, Estimate
from tracehint.hintgen.plan.worth import BYTES, Worth


def estimate(name: str, seconds: float, moved: float, *, simple: bool = False) -> Estimate:
    work = workload([Task("a", [("read", "x")])], {"x": MB})
    draft = Draft(name, local(work, plain(2)))
    return Estimate(
        name, name, seconds, seconds, seconds, moved * MB, 0.0, (seconds,) * 5, draft, simple
    )


def bound(e: Estimate) -> Estimate:
    """The same with tasks in parts."""
    return replace(e, draft=replace(e.draft, part=np.zeros(1, np.int32)))


def test_a_tenth_of_the_bytes_is_as_good_as_a_hundredth_of_the_time() -> None:
    worth = Worth(1000.0)
    more, less = worth.of(10.0, 1000.0), worth.of(10.0, 900.0)
    assert less / more == pytest.approx(0.9**BYTES, rel=0.001)
    assert worth.of(10.0, 0.0) > 0.5 * more, "nothing moved is not everything"
    assert Worth(0.0).of(3.0, 7.0) == 3.0, "nothing to compare with"


def test_of_near_times_the_leanest_is_chosen_and_never_a_slow_one() -> None:
    default = estimate("default", 10.0, 100, simple=True)
    quick, lean = bound(estimate("quick", 6.25, 12)), bound(estimate("lean", 6.55, 4))
    every = [default, quick, lean, bound(estimate("slow", 6.9, 0))]
    slow = every[-1]
    assert leanest(every, every).name == "lean"
    assert choose([default, quick, lean, slow], 0.1)[1] == "lean"
    assert choose([default, quick, replace(lean, seconds=6.7, runs=(6.7,) * 5)], 0.1)[1] == "quick"


def test_a_plan_gives_little_of_the_time_of_what_needs_none() -> None:
    default = estimate("default", 10.0, 100, simple=True)
    every = [default, estimate("quick", 6.0, 30), bound(estimate("lean", 6.3, 4))]
    assert leanest(every, every).name == "quick"
    assert leanest([default, every[2]], every).name == "lean", "nothing else is left"
    every[2] = bound(estimate("lean", 6.1, 4))
    assert leanest(every, every).name == "lean"


def test_time_beyond_the_most_weighs_more_than_any_bytes() -> None:
    worth = Worth(1000.0, most=10.0)
    assert worth.of(10.0, 500.0) == Worth(1000.0).of(10.0, 500.0)
    assert worth.of(11.0, 100.0) > worth.of(10.0, 500.0)


def test_of_equal_times_the_one_that_chance_moves_less_counts() -> None:
    default = estimate("default", 10.0, 100, simple=True)
    loose = replace(estimate("loose", 6.0, 8), runs=(5.4, 6.0, 6.0, 6.0, 6.6))
    every = [default, loose, bound(estimate("sure", 6.1, 7))]
    assert every[2].sure == pytest.approx(6.1) and loose.sure > 6.3
    assert leanest(every, every).name == "sure"
    every[1] = replace(loose, runs=(6.0,) * 5)
    every[2] = bound(estimate("sure", 6.2, 7))
    assert leanest(every, every).name == "loose"


def test_bytes_beyond_those_of_what_needs_no_plan_weigh_more() -> None:
    worth = Worth(1000.0, room=200.0)
    assert worth.of(10.0, 150.0) == Worth(1000.0).of(10.0, 150.0)
    assert worth.of(9.4, 300.0) > worth.of(10.0, 200.0) > Worth(1000.0).of(9.4, 300.0)
