"""A secret in a command line appears in no output of any command: bundles, state, hint files,
reports, exports."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.cli import tracehint
from tests.test_redact_bundles import everything

pytestmark = pytest.mark.slow

S = "hunter2Zq"
RECIPES = f"""all: out.txt
a.txt: in.txt
\tDB_PASSWORD={S} sh -c 'cat in.txt > a.txt'
b.txt: in.txt
\tsh -c 'TOKEN={S}; sort in.txt > b.txt' -u etl:{S} --password {S}
out.txt: a.txt b.txt
\tcat a.txt b.txt > out.txt; true --api-key={S} https://etl:{S}@h/x
"""
MAKEFLOW = RECIPES.partition("\n")[2]
COMMAND = ("make", "-B", f"PASSWORD={S}")
RECORDING = (
    ["run", "--", *COMMAND],
    ["profile", "--collector", "strace", "-o", "p.trace", "--", *COMMAND],
    ["record", "--collector", "preload", "-o", "r.trace", "--", *COMMAND],
    ["import", "w.makeflow", "-o", "i.trace"],
)
ASKING = (
    "init", "status", "merge r.trace -o m.trace", "analyze", "analyze p.trace --format json",
    "analyze p.trace --format parquet -o tables", "hints -o h.json", "hints p.trace",
    "lint p.trace", "lint p.trace w.makeflow --format json", "lint --format sarif -o l.sarif",
    "graph -o g.dot", "graph -o g.json", "report -o page.html", "report --data -o d.json",
    "compare", "compare --format json", "diff p.trace r.trace",
    "export p.trace --to wfformat -o w.json", "export p.trace --to prov -o prov.json",
    "export p.trace --to ro-crate -o crate", "export p.trace --to perfetto -o t.json",
    "export p.trace --to graphml -o g.graphml", "export p.trace --to arrow -o arrow",
    "anonymize p.trace -o anon.trace", "run --no-record -- true",
    "plan w.makeflow --learned p.trace -o plan.json", f"doctor -- make PASSWORD={S}",
    f"task x -- true --password {S}", "status --forget",
)  # fmt: skip  # a table


def written(folder: Path) -> Iterator[tuple[str, bytes]]:
    """Yield the contents of all files below the folder, and bundles as their readers see them."""
    for path in folder.rglob("*"):
        if path.suffix == ".trace" and path.is_dir():
            yield str(path), everything(path)
        if path.is_file() and path.name not in ("Makefile", "w.makeflow"):
            yield str(path), path.read_bytes()


def test_no_command_writes_or_prints_a_secret(tmp_path: Path) -> None:
    (tmp_path / "Makefile").write_text(RECIPES)
    (tmp_path / "w.makeflow").write_text(MAKEFLOW)
    (tmp_path / "in.txt").write_text("7\n" * 20000)
    for words in RECORDING:
        done = tracehint(*words, cwd=tmp_path)
        assert done.returncode == 0, (words, done.stderr)
    assert_clean(tmp_path, "recordings")
    for line in ASKING:
        done = tracehint(*line.split(), cwd=tmp_path)
        assert done.returncode in (0, 1), (line, done.stderr)
        assert S not in done.stdout + done.stderr, line
        assert_clean(tmp_path, line)


def assert_clean(folder: Path, what: str) -> None:
    assert not [name for name, raw in written(folder) if S.encode() in raw], what
