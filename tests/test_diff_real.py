"""diff and lint on recorded runs: random directories and temporary names change nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.e2e.support import tracehint

pytestmark = pytest.mark.slow

# Uses a directory and temporary names that differ in each run; `$1` is the path of the input.
SCRIPT = """\
set -eu
mkdir work.$$ && cd work.$$
head -c 3000000 "$1" > all.bin
split -b 1000000 -d all.bin part.
for p in part.*; do
    t=$(mktemp tmp.XXXXXXXXXX)
    od -An -v -tx1 "$p" > "$t"
    sort "$t" > "$p.sorted"
    rm "$t"
done
sort -m part.*.sorted > result.txt
%s
"""


def record(folder: Path, more: str = "") -> Path:
    """Record the script in the new directory `folder`; return the bundle next to it."""
    folder.mkdir()
    (folder / "wf.sh").write_text(SCRIPT % more)
    (folder / "input.bin").write_bytes(bytes(range(256)) * 12_000)
    bundle = folder.parent / f"{folder.name}.trace"
    tracehint("record", "-o", bundle, "--", "sh", "wf.sh", folder / "input.bin", cwd=folder)
    return bundle


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, Path]:
    base = tmp_path_factory.mktemp("diff")
    return record(base / "a"), record(base / "b"), record(base / "c", "wc result.txt > count.txt")


def test_a_run_repeated_gives_an_empty_diff(runs: tuple[Path, Path, Path]) -> None:
    done = tracehint("diff", runs[0], runs[1], ok=(0, 1))
    assert done.stdout == "No changes.\n"
    assert done.returncode == 0


def test_a_new_step_is_found(runs: tuple[Path, Path, Path]) -> None:
    done = tracehint("diff", runs[0], runs[2], "--format", "json", ok=(1,))
    findings = json.loads(done.stdout)["findings"]
    assert {(f["code"], f["producers"]) for f in findings if f["code"] == "DF001"} == {
        ("DF001", "wc")
    }
    assert any(f["code"] == "DF003" and f["template"].endswith("count.txt") for f in findings)
    assert not any(f["code"] in ("DF002", "DF004") for f in findings)


def test_lint_and_report_of_a_recorded_run(runs: tuple[Path, Path, Path], tmp_path: Path) -> None:
    done = tracehint("lint", runs[0], "--format", "json", ok=(0, 1))
    codes = {f["code"] for f in json.loads(done.stdout)["findings"]}
    assert "TV001" in codes
    assert not codes & {"TH001", "TH003", "TH005"}
    tracehint("report", runs[0], "-o", tmp_path / "r.html")
    assert (tmp_path / "r.html").stat().st_size < 2_000_000
    again = tracehint("report", runs[0], "-o", tmp_path / "r.html", ok=(2,))
    assert "--force" in again.stderr
