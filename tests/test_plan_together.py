"""Local-first with what is read together and copies of inputs, and what it must beat."""

from __future__ import annotations

from typing import cast

import numpy as np
import pytest

from tests.support.predicting import MB, Task, plain, workload
from tracehint.analyzer.model import Analysis
from tracehint.analyzer.predict.model import law
from tracehint.hintgen.plan.judge import choose
from tracehint.hintgen.plan.model import Draft, Estimate, Problem
from tracehint.hintgen.plan.parts import blank
from tracehint.hintgen.plan.strategies import together


def problem(*, staged: bool) -> Problem:
    """Eight makers read one input; pairs of what they write are joined, each by two tasks."""
    tasks = [Task(f"m{i}", [("read", "in"), ("write", f"a{i}")]) for i in range(8)]
    for i in range(4):
        both = [("read", f"a{2 * i}"), ("read", f"a{2 * i + 1}")]
        tasks += [Task(f"j{i}{k}", [*both, ("write", f"o{i}{k}")]) for k in "xy"]
    sizes = {"in": 50 * MB, **{f"a{i}": 10 * MB for i in range(8)}}
    sizes |= {f"o{i}{k}": MB for i in range(4) for k in "xy"}
    nothing = cast(Analysis, None)
    return Problem(nothing, workload(tasks, sizes), plain(4, 2), staged=staged)


def test_what_a_task_reads_together_lies_together() -> None:
    draft = together.make(problem(staged=False))[0].placement
    assert draft.law is not None and draft.target is not None and draft.copies is not None
    made = np.arange(1, 9)
    assert (draft.law[made] == law("group")).all()
    groups = draft.target[made].reshape(4, 2)
    assert (groups[:, 0] == groups[:, 1]).all() and len(set(groups[:, 0])) == draft.groups == 4
    assert (draft.law[9:] == law("local")).all() and draft.law[0] == -1
    assert not draft.copies.any(), "inputs lie where they are"


def test_inputs_that_are_brought_get_copies() -> None:
    found = [d.placement.copies for d in together.make(problem(staged=True))]
    assert {int(c[0]) for c in found if c is not None} == {0, 2, 4}
    assert all(not c[1:].any() for c in found if c is not None)


@pytest.mark.parametrize(
    ("scheduler", "share", "chosen"),
    [("most-input-bytes", 0.9, "other"), ("most-input-bytes", 0.97, "simple"),
     ("plan", 0.9, "simple"), ("plan", 0.8, "other")],
)  # fmt: skip  # a table
def test_of_equal_times_the_leaner_one_counts(scheduler: str, share: float, chosen: str) -> None:
    of = problem(staged=False)

    def estimate(name: str, seconds: float, moved: float, how: str | None) -> Estimate:
        draft = Draft(name, blank(of, name, how))
        return Estimate(name, "", seconds, 0, 99, moved, 0, (seconds,) * 5, draft, name != "other")

    every = [
        estimate("default", 20, 2000, None),
        estimate("simple", 10, 1000, "most-input-bytes"),
        estimate("other", 10, 1000 * share, scheduler),
    ]
    assert choose(every, 0.17)[1] == chosen
