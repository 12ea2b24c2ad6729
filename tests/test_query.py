"""Templates of file names, as shown by lint, graph and report."""

from __future__ import annotations

import doctest
import importlib

import pyarrow as pa
import pytest

from tests.support.runs import parse_run
from tracehint.hintgen import query
from tracehint.hintgen.lint.context import parse_setfattr
from tracehint.hintgen.lint.facts import relative_sql


def templates(text: str) -> dict[str, str]:
    con = query.connect(parse_run(text).analysis())
    return dict(con.execute("SELECT path_text, template FROM files").fetchall())


def masks(*paths: str) -> list[str]:
    text = "\n".join(f"file {path} 1K" for path in paths)
    con = query.connect(parse_run("task a\n" + text).analysis())
    return [m for (m,) in con.execute("SELECT mask FROM files ORDER BY file").fetchall()]


def test_digits_that_change_become_stars_and_others_stay() -> None:
    found = templates("task a\nfile 2mass/p_{1..3}_h2.fits 1K\nfile 2mass/all.tbl 1K")
    assert found["2mass/p_1_h2.fits"] == "2mass/p_*_h2.fits"
    assert found["2mass/all.tbl"] == "2mass/all.tbl"


def test_digits_are_kept_within_files_used_alike() -> None:
    found = templates(
        "task a_{1..3} type=a\ntask b_{1..3} type=b start=2\nfile s1/x_{1..3}.dat 1K\n"
        "file s2/x_{1..3}.dat 1K\nwrite a_{1..3} s1/x_{1..3}.dat\nread b_{1..3} s1/x_{1..3}.dat\n"
        "write b_{1..3} s2/x_{1..3}.dat"
    )
    assert found["s1/x_2.dat"] == "s1/x_*.dat"
    assert found["s2/x_2.dat"] == "s2/x_*.dat"


def test_random_parts_are_masked() -> None:
    assert masks(
        "t/tmp.Ab3dEf9hIj",
        "t/tmpx7k2_abq",
        "ccX1y2Z3.o",
        "work/3f/0123456789abcdef0123456789abcd/out.txt",
        "u-123e4567-e89b-12d3-a456-426614174000.dat",
    ) == ["t/tmp.*", "t/tmp*", "cc*.o", "work/*/*/out.txt", "u-*.dat"]


def test_names_without_digits_that_are_used_alike_share_a_template() -> None:
    found = templates(
        "task split end=1\ntask use_{1..4} start=2\n"
        + "\n".join(
            f"file {n}.bin 1K\nwrite split {n}.bin\nread use_{i} {n}.bin"
            for i, n in enumerate(("autumn", "spring", "summer", "winter"), 1)
        )
        + "\nfile lone.bin 1K\nwrite split lone.bin"
    )
    assert found["winter.bin"] == "{autumn,spring,summer,+1}.bin"
    assert found["lone.bin"] == "lone.bin"


def test_tables_and_views_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables of a small run are copies, those of a large run are views."""
    text = """
        task a
        task b start=2
        file in/x_{1..3}.dat 1K
        file out/{one,two,three}.txt 1K
        file out/none 1K
        read a in/x_{1..3}.dat
        write a out/{one,two,three}.txt
        read b out/{one,two,three}.txt"""
    analysis = parse_run(text).analysis()
    copied = query.connect(analysis).execute("FROM files ORDER BY file").fetchall()
    monkeypatch.setattr(query, "SMALL", 0)
    viewed = query.connect(analysis)
    kinds = viewed.execute("SELECT DISTINCT table_type FROM information_schema.tables").fetchall()
    assert kinds == [("VIEW",)]
    assert viewed.execute("FROM files ORDER BY file").fetchall() == copied


def test_text_column_shows_every_byte() -> None:
    column = pa.array([b"a", b"a\nb", b"\xff", None], pa.binary())
    assert query.text_column(column).to_pylist() == ["a", "a\\x0ab", "\\xff", None]
    valid = pa.array([b"a", b"tab\t", "é".encode()], pa.binary())
    assert query.text_column(valid).to_pylist() == ["a", "tab\\x09", "é"]


def test_relative_paths_take_the_longest_root() -> None:
    con = query.connect(parse_run("task a").analysis())
    sql = relative_sql("p", ["/data", "/data/deep", "/it's"])
    rows = con.execute(
        f"SELECT {sql} FROM (VALUES ('/data/x'), ('/data/deep/x'), ('/datax/x'), ('/it''s/y'), "
        "('/data')) t(p)"
    ).fetchall()
    assert [r[0] for r in rows] == ["x", "x", "/datax/x", "y", ""]


def test_setfattr_command_lines() -> None:
    def parsed(*words: bytes) -> tuple[str, str, list[bytes]]:
        return parse_setfattr([b"setfattr", *words])

    assert parsed(b"-n", b"user.DP", b"-v", b"local", b"x") == ("DP", "local", [b"x"])
    assert parsed(b"-h", b"--name=user.a.DP", b'--value="local"', b"--", b"-x") == (
        "DP",
        "local",
        [b"-x"],
    )
    assert parsed(b"-n", b"user.DP", b"-v", b"0x6c6f63616c", b"x")[1] == "local"
    assert parsed(b"-n", b"user.DP", b"-v", b"0sbG9jYWw=", b"x")[1] == "local"
    assert parsed(b"-n", b"user.DP", b"-v", b"0xzz", b"x")[1] == "0xzz"
    assert parsed(b"-x", b"user.DP", b"x")[0] == ""
    assert parsed()[2] == []


@pytest.mark.parametrize(
    "name",
    [
        "hintgen.text.escape",
        "hintgen.text.units",
        "hintgen.report.dot",
        "hintgen.report.drawing",
        "hintgen.anonymize",
        "commands.lint",
        "schemas.wording",
    ],
)
def test_examples_in_docstrings(name: str) -> None:
    result = doctest.testmod(importlib.import_module(f"tracehint.{name}"))
    assert result.attempted > 0
    assert result.failed == 0
