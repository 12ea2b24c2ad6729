"""Readers that only look into a file are no readers of it in the next run's graph either."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.flows import Flowing
from tests.support.learning import BIG, learned
from tracehint.adapters.engines.makeflow_emit import targets_by_task
from tracehint.adapters.engines.workflow import read_workflow
from tracehint.errors import InputError
from tracehint.hintgen.hints.hintcheck import from_json
from tracehint.hintgen.hints.hintfile import to_json
from tracehint.hintgen.hints.model import HintFile
from tracehint.hintgen.learn.peeks import agreed


def run(tiles: int, *, peeks: bool) -> HintFile:
    """`fit` x tiles -> `add`; `table` reads headers of all, or all of them."""
    flow = Flowing()
    fits = [flow.task("fit") for _ in range(tiles)]
    table, add = flow.task("table"), flow.task("add")
    for k, fit in enumerate(fits):
        flow.write(fit, f"f_{k}.dat", BIG)
        flow.read(table, f"f_{k}.dat", BIG, 0, 2880 if peeks else None)
        flow.used[-1]["peek"] = peeks
        flow.read(add, f"f_{k}.dat", BIG)
    flow.write(add, "sum.dat", BIG)
    return learned(flow)


def workflow(folder: Path, tiles: int) -> Path:
    names = " ".join(f"f_{k}.dat" for k in range(tiles))
    rules = [f"f_{k}.dat: in_{k}.dat\n\tfit in_{k}.dat f_{k}.dat\n" for k in range(tiles)]
    rules += [f"all.tbl: {names}\n\ttable all.tbl\n", f"sum.dat: {names} all.tbl\n\tadd sum.dat\n"]
    path = folder / "w.mf"
    path.write_text("".join(rules))
    return path


@pytest.mark.parametrize(("peeks", "name"), [(True, "DP"), (False, "Replication")])
def test_a_declared_reader_that_only_peeked_leaves_a_reduce_a_reduce(
    tmp_path: Path, peeks: bool, name: str
) -> None:
    hints = run(5, peeks=peeks)
    assert hints.peeks == ((("fit", "table"),) if peeks else ())
    targets, _ = targets_by_task(hints, read_workflow(workflow(tmp_path, 7)), nodes=4)
    made = {t.path: dict(t.hints) for tags in targets for t in tags if t.kind == "A"}
    for k in range(7):
        assert name in made[b"f_%d.dat" % k]


def test_runs_that_disagree_know_no_peeks() -> None:
    one, other = (run(5, peeks=p).peeks for p in (True, False))
    assert agreed([frozenset(one), frozenset(one)]) == (("fit", "table"),)
    assert agreed([frozenset(one), frozenset(other)]) == agreed([]) == ()


def test_peeks_are_kept_in_the_hint_file_and_checked() -> None:
    hints = run(5, peeks=True)
    data = json.loads(json.dumps(to_json(hints)))
    assert from_json(data).peeks == hints.peeks
    del data["peeks"]
    assert from_json(data).peeks == ()  # files written before there was such a field
    for wrong in (["fit"], ["fit", 1], ["fit", "x" * 20_000]):
        with pytest.raises(InputError, match="peeks"):
            from_json({**data, "peeks": [wrong]})
