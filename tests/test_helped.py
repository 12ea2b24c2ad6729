"""Rules that did not bring what is read nearer, told from two runs with locations."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.bundles import RunBuilder
from tests.support.hints import rule, save
from tracehint.adapters.project.state import KnownRun, add_run, claim
from tracehint.analyzer.model import Options
from tracehint.commands._loop import learned
from tracehint.hintgen.hints.hintfile import dump, load
from tracehint.hintgen.inputs import Input, load_run
from tracehint.hintgen.proof.helped import ENOUGH, not_helped
from tracehint.hintgen.proof.located import located_bytes

SIZE = 2 * ENOUGH
# file -> rule that it was hinted by, where it lay before and after (reader: node1)
FILES = {
    "near.dat": ("helped", "node2", "node1"),
    "far.dat": ("useless", "node2", "node2"),
    "half.dat": ("some", "node2=1", "node1=0.5,node2=0.5"),
    "lost.dat": ("worse", "node1", "node2"),
    "plain.dat": ("", "node2", "node2"),
}


def run_of(place: Path, which: int, size: int = SIZE) -> Path:
    """A recording; `which`: 1 before, 2 after."""
    run = RunBuilder()
    driver = run.process(["sh", "w.sh"])
    made = run.process(["make"], parent=driver, start=1, end=2)
    used = run.process(["use"], parent=driver, start=3, end=4)
    for name, row in FILES.items():
        file = run.file(f"/data/{name}", existed=False, size=size)
        run.access("write", made, file, 0, size, at=1.5)
        run.access("read", used, file, 0, size, at=3.5)
        run._add("attributes", file=file, name="location", value=row[which])
        if which == 2 and row[0]:
            run._add(
                "settings", t_ns=1, pid=1, path=f"/data/{name}".encode(), rule=row[0], pattern="",
                hint="DP=local", key="user.DP", value=b"local", state="set", error=None, why="",
            )  # fmt: skip  # a table
    run.save(place)
    return place


def loaded(place: Path) -> Input:
    return load_run(place, Options())


def test_a_rule_is_judged_by_where_its_files_were_read_from(tmp_path: Path) -> None:
    first, second = (loaded(run_of(tmp_path / str(n), n)) for n in (1, 2))
    assert located_bytes(first.analysis, first.bundle) == (SIZE, 4 * SIZE)
    assert located_bytes(second.analysis, second.bundle) == (1.5 * SIZE, 3.5 * SIZE)
    assert not_helped(first, second) == ["useless", "worse"]


def test_little_and_what_nobody_knows_decides_nothing(tmp_path: Path) -> None:
    small = [loaded(run_of(tmp_path / f"s{n}", n, ENOUGH // 2)) for n in (1, 2)]
    assert not_helped(*small) == []
    run = RunBuilder()
    run.process(["sh", "w.sh"])
    run.save(tmp_path / "unknown")
    unknown, second = loaded(tmp_path / "unknown"), loaded(run_of(tmp_path / "b", 2))
    assert not_helped(unknown, second) == [] == not_helped(second, unknown)


@pytest.mark.parametrize("number", [2, 3])
def test_the_loop_leaves_them_out_from_then_on(tmp_path: Path, number: int) -> None:
    """Rules that did not help in run 2 are in no later hints."""
    save(tmp_path, *(rule(n, id=row[0], DP="local") for n, row in FILES.items() if row[0]))
    for n in range(1, number + 1):
        _, place = claim(tmp_path)
        place.rmdir()
        run_of(place, min(n, 2))
        if n > 1:
            dump(load(tmp_path / "hints.json"), place / "hints.json", force=True)
        state = add_run(tmp_path, KnownRun(n, ("sh", "w.sh"), 0, 1.0, n > 1))
    found = learned(state, ("sh", "w.sh"), None)
    assert found is not None
    assert set(found.left_out) == {"far.dat", "lost.dat"}
    names = {r.template for r in found.hints.rules}
    assert names and not names & set(found.left_out)
