"""Output of `analyze` and `profile`: the same text as stored, at any width, without a database."""

from __future__ import annotations

import io
import re
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.hostile import HOSTILE_NAMES
from tests.support.runs import parse_run
from tracehint.analyzer.model import Analysis
from tracehint.hintgen.summary.console import console_for
from tracehint.hintgen.summary.gain import Simulation, built_in
from tracehint.hintgen.summary.labelled import Labelled
from tracehint.hintgen.summary.summary import print_summary
from tracehint.hintgen.text.masks import masks_of

RUNS = Path(__file__).parent / "runs"
LONG = "use_with_a_name_that_nobody_would_type_but_engines_make"


def summary(analysis: Analysis, monkeypatch: pytest.MonkeyPatch, width: int = 80) -> str:
    monkeypatch.setenv("COLUMNS", str(width))
    out = io.StringIO()
    print_summary(analysis, console_for(out), Simulation(analysis, built_in()))
    return out.getvalue()


def groups(text: str, top: int = 9) -> list[tuple[str, int, int]]:
    rows = Labelled(parse_run(text).analysis()).largest(top)
    return [(r["template"], r["files"], r["groups"]) for r in rows]


@pytest.mark.parametrize("name", ["six_patterns", "montage"])
def test_the_text_is_as_kept(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    text = summary(parse_run((RUNS / f"{name}.txt").read_text()).analysis(), monkeypatch)
    assert text == (RUNS / f"{name}.summary.txt").read_text()


@pytest.mark.slow
@pytest.mark.parametrize("width", [60, 80, 90, 200])
def test_no_line_is_longer_than_the_terminal(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = ["task gen", f"task {LONG} start=2"]
    for i, folder in enumerate(("a", "b/" + "deep/" * 30, "ü" * 90)):
        path = f"{folder}/x_{i}.dat"
        lines += [
            f"file {path} 900M",
            f"write gen {path}",
            f"read {LONG} {path}",
            f"label {path} pipeline saves=5M confidence=0.5 placement=local",
        ]
    for text in ("\n".join(lines), (RUNS / "montage.txt").read_text()):
        printed = summary(parse_run(text).analysis(), monkeypatch, width)
        assert max(map(len, printed.splitlines())) <= width
        assert not any(line != line.rstrip() and line.strip() for line in printed.splitlines()[:2])


def test_files_of_one_name_and_the_same_users_are_one_group() -> None:
    names = ("raw/alpha.txt", "raw/beta.txt", "raw/beta_2.txt", "raw/x.csv", "other/alpha.txt")
    lines = ["task gen_{1..5} type=gen", "task use_{1..5} type=use start=2"]
    for i, name in enumerate(names, 1):
        lines += [
            f"file {name} {i}M",
            f"write gen_{i} {name}",
            f"read use_{i} {name}",
            f"label {name} pipeline saves={i}M placement=local",
        ]
    assert groups("\n".join(lines)) == [
        ("other/alpha.txt", 1, 1), ("raw/x.csv", 1, 1), ("raw/beta_*.txt", 1, 1),
        ("raw/beta.txt", 1, 1), ("raw/alpha.txt", 1, 1),
    ]  # fmt: skip  # a table
    # the same names, but another stage reads one of them
    assert groups("\n".join([*lines, "task late start=9", "read late raw/beta.txt"])) == [
        ("other/alpha.txt", 1, 1), ("raw/beta.txt", 1, 1), ("raw/x.csv", 1, 1),
        ("raw/beta_*.txt", 1, 1), ("raw/alpha.txt", 1, 1),
    ]  # fmt: skip  # a table


def test_directories_with_numbers_are_one_place() -> None:
    lines = ["task gen_{1..3} type=gen", "task use_{1..3} type=use start=2",
             "file run_{1..3}/x.dat 2M", "write gen_{1..3} run_{1..3}/x.dat",
             "read use_{1..3} run_{1..3}/x.dat",
             "label run_{1..3}/x.dat pipeline saves=1M placement=local"]  # fmt: skip  # a table
    assert groups("\n".join(lines)) == [("run_*/x.dat", 3, 1)]


def test_equal_sizes_come_in_the_order_of_their_names() -> None:
    lines = ["task gen", "task use start=2"]
    for name in "dbca":
        lines += [
            f"file {name}/x 2M",
            f"write gen {name}/x",
            f"read use {name}/x",
            f"label {name}/x pipeline saves=1M placement=local",
        ]
    assert [row[0] for row in groups("\n".join(lines), 3)] == ["a/x", "b/x", "c/x"]


@pytest.mark.slow
def test_hostile_names_stay_on_their_line(monkeypatch: pytest.MonkeyPatch) -> None:
    import pyarrow as pa

    text = "task a\ntask b start=2\nfile x 1M\nwrite a x\nread b x\nlabel x pipeline saves=1M"
    analysis = parse_run(text + " placement=local").analysis()
    for raw in HOSTILE_NAMES:
        row = analysis.files.to_pylist()[0] | {"path": raw}
        analysis.files = pa.Table.from_pylist([row], schema=analysis.files.schema)
        printed = summary(analysis, monkeypatch)
        assert all(c.isprintable() or c == "\n" for c in printed)
        assert len(printed.splitlines()) == printed.count("\n")


@pytest.mark.parametrize("text", ["nodes 2", "task only", "task a\nfile x 1K\nwrite a x"])
def test_runs_with_little_in_them(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "No pattern:" in summary(parse_run(text).analysis(), monkeypatch)


def test_colour_goes_to_terminals_only(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    analysis = parse_run((RUNS / "six_patterns.txt").read_text()).analysis()
    monkeypatch.setenv("TERM", "xterm-256color")
    for name, value, coloured in (("NO_COLOR", "", True), ("NO_COLOR", "1", False)):
        monkeypatch.setenv(name, value)
        out = Terminal()
        print_summary(analysis, console_for(out))
        assert ("\x1b[" in out.getvalue()) is coloured, (name, value)
    monkeypatch.delenv("NO_COLOR")
    monkeypatch.setenv("TERM", "dumb")
    out = Terminal()
    print_summary(analysis, console_for(out))
    assert "\x1b[" not in out.getvalue()


def test_no_database_is_started() -> None:
    """Importing DuckDB and pandas takes longer than the summary of a small run."""
    program = (
        "import sys; from tracehint.schemas.arrow import skip_pandas; skip_pandas();"
        " assert 'pydoc' not in sys.modules, 'pyarrow reads its own documentation';"
        " from tests.support.runs import parse_run;"
        " from tracehint.hintgen.summary.console import console_for;"
        " from tracehint.hintgen.summary.summary import print_summary;"
        f" run = parse_run(open({str(RUNS / 'montage.txt')!r}).read());"
        " before = set(sys.modules); print_summary(run.analysis(), console_for(sys.stdout));"
        " print(sorted({'duckdb', 'pandas', 'networkx'} & (set(sys.modules) - before)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=RUNS.parent.parent, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("[]\n")


@given(
    # shorter than any random part of a name
    st.lists(st.text(st.sampled_from("0123456789ab/é.*٣"), max_size=5), max_size=6),
    st.integers(0, 6),
)
def test_numbers_are_masked_as_by_a_regular_expression(names: list[str], cut: int) -> None:
    import pyarrow as pa

    wanted = [re.sub("[0-9]+", "*", name) for name in names]
    whole = pa.array(names, pa.string())
    for column in (pa.chunked_array([whole]), pa.chunked_array([whole[:cut], whole[cut:]])):
        assert masks_of(column).to_pylist() == wanted
    part = pa.chunked_array([whole[cut:]], pa.string())
    assert masks_of(part).to_pylist() == wanted[cut:]
    masks_of(part).validate(full=True)
