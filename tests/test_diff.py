"""diff: no changes for a repeated run; each kind of change is found and named."""

from __future__ import annotations

import pytest

from tests.support.runs import parse_run
from tracehint.hintgen.compare.diff import CHANGES, Tolerances, diff
from tracehint.hintgen.lint.finding import Finding
from tracehint.hintgen.lint.formats import FORMATS, Info, render

pytestmark = pytest.mark.slow

BASE = """
task gen_{1..3} end=1
task use_{1..3} start=2 end=3
task join start=4 end=5
file in.dat 1M
file d_{1..3}.dat 1M
file r_{1..3}.txt 100K
file all.txt 300K
read gen_{1..3} in.dat
write gen_{1..3} d_{1..3}.dat
read use_{1..3} d_{1..3}.dat
write use_{1..3} r_{1..3}.txt
read join r_{1..3}.txt
write join all.txt
label d_{1..3}.dat pipeline saves=1M
label r_{1..3}.txt reduce
"""


def changes(after: str, before: str = BASE, limits: Tolerances | None = None) -> list[Finding]:
    return diff(parse_run(before).analysis(), parse_run(after).analysis(), limits)


def shown(findings: list[Finding]) -> set[tuple[str, str]]:
    return {(f.code, f.template) for f in findings}


def test_a_run_repeated_gives_nothing() -> None:
    assert changes(BASE) == []


def test_random_names_that_a_mask_knows_are_the_same() -> None:
    before = BASE.replace("r_{1..3}.txt", "tmp.AbCdEf{1..3}xYz/r.txt")
    after = BASE.replace("r_{1..3}.txt", "tmp.Qwert{1..3}uOpA/r.txt")
    assert changes(after, before) == []


def test_random_names_that_no_mask_knows_are_matched_by_their_flow() -> None:
    before = BASE.replace("r_{1..3}.txt", "kx{1..3}qa.txt")
    after = BASE.replace("r_{1..3}.txt", "zp{1..3}bb.txt")
    assert changes(after, before) == []


def test_new_and_gone_files() -> None:
    more = BASE + "file log_{1..3}.log 1K\nwrite use_{1..3} log_{1..3}.log"
    assert shown(changes(more)) == {("DF003", "log_*.log")}
    assert shown(changes(BASE, more)) == {("DF004", "log_*.log")}


def test_another_reader_is_a_changed_flow() -> None:
    (found,) = changes(BASE + "read join d_{1..3}.dat", limits=Tolerances(volume_share=1.0))
    assert (found.code, found.template) == ("DF005", "d_*.dat")
    assert found.message == "now read by join"


def test_changed_pattern() -> None:
    after = BASE.replace("label d_{1..3}.dat pipeline", "label d_{1..3}.dat broadcast")
    (found,) = changes(after)
    assert found.code == "DF006"
    assert found.message == "pattern: pipeline -> broadcast"


def test_counts_of_tasks_and_files() -> None:
    found = changes(BASE.replace("{1..3}", "{1..4}"))
    assert {("DF001", ""), ("DF007", "d_*.dat"), ("DF007", "r_*.txt")} <= shown(found)
    messages = [f.message for f in found]
    assert "tasks of type gen: 3 -> 4" in messages
    lenient = changes(BASE.replace("{1..3}", "{1..4}"), limits=Tolerances(0.5, 64 << 10, 0.25))
    assert lenient == []


def test_new_and_gone_task_types() -> None:
    more = BASE + "task check start=6 end=7"
    assert [f.message for f in changes(more)] == ["tasks of type check: new (1 task)"]
    assert [f.message for f in changes(BASE, more)] == ["tasks of type check: gone (1 task)"]


def test_volume_beyond_the_threshold_only() -> None:
    assert changes(BASE.replace("file d_{1..3}.dat 1M", "file d_{1..3}.dat 1.05M")) == []
    found = changes(BASE.replace("file d_{1..3}.dat 1M", "file d_{1..3}.dat 2M"))
    assert {f.message for f in found} == {"size: 3 MiB -> 6 MiB", "bytes read: 3 MiB -> 6 MiB"}


def test_more_failures_are_an_error() -> None:
    (found,) = changes(BASE.replace("task join", "task join exit=1"))
    assert (found.code, found.severity) == ("DF002", "error")


@pytest.mark.parametrize("fmt", FORMATS)
def test_same_formats_as_lint(fmt: str) -> None:
    names = {code: name for code, (name, _) in CHANGES.items()}
    info = Info("tracehint 0.1.0", "a -> b", rules=names, noun="change", hint="")
    out = render(fmt, changes(BASE.replace("{1..3}", "{1..4}")), info)
    assert "DF007" in out
    if fmt == "text":
        assert "explain" not in out
        assert render(fmt, [], info) == "No changes."
