"""One run, one set of numbers: outputs about a run are parsed and compared."""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from datasets.synthetic import write

from tests.support.bundles import RunBuilder
from tests.support.cli import inside
from tests.support.gains import check_gains, gains
from tests.support.runs import parse_run
from tracehint.analyzer.output.json import write_json
from tracehint.app.profile import Work, write_all
from tracehint.hintgen import query
from tracehint.hintgen.gain import Baseline, Gain
from tracehint.hintgen.summary.console import console_for
from tracehint.hintgen.summary.summary import print_summary
from tracehint.hintgen.text.units import seconds, size

pytestmark = pytest.mark.slow

RUNS = Path(__file__).parent / "runs"
MB = 1 << 20


def odd(folder: Path) -> Path:
    """Save a run: a table for nine readers, software, a peek, a failed task, files written
    twice."""
    run = RunBuilder(cwd="/proj")
    make = run.process(["make"], start=0.0, end=40.0)
    first = run.process(["make_table"], parent=make, start=0.0, end=5.0)
    table = run.file("/proj/table")
    run.write(first, table, 0, 64 * MB, at=2.0)
    library = run.file("/usr/lib/libm.so", existed=True)
    late = run.process(["collect"], parent=make, start=30.0, end=39.5, exit_code=1)
    run.read(late, table, 0, 2000, at=31.0)
    for k in range(9):
        use = run.process(["use", str(k)], parent=make, start=6.0 + 2 * k, end=8.0 + 2 * k)
        part, out = run.file(f"/proj/part_{k}"), run.file(f"/proj/out_{k}")
        run.read(use, library, 0, 4 * MB, at=6.1 + 2 * k)
        run.read(use, table, 0, 64 * MB, at=6.2 + 2 * k)
        run.write(use, part, 0, 700_000, at=7.0 + 2 * k)
        run.write(use, part, 0, 700_000, at=7.1 + 2 * k)
        run.write(use, out, 0, 3 * MB, at=7.2 + 2 * k)
        run.read(late, part, 0, 700_000, at=32.0)
    return run.save(folder / "run.trace")


def written(name: str) -> Callable[[Path], Path]:
    """Return a function that writes a run of tests/runs as `analyze --format json` does."""

    def make(folder: Path) -> Path:
        path = folder / "run.json"
        analysis = parse_run((RUNS / f"{name}.txt").read_text()).analysis()
        path.write_bytes(b"".join(write_json(analysis)))
        return path

    return make


CASES = {
    "six": (written("six_patterns"), None),
    "montage": (written("montage"), None),
    "odd": (odd, None),
    "odd on 16 nodes": (odd, 16),
}


class Outputs:
    """Outputs of the commands for a run."""

    def __init__(self, folder: Path, made: Callable[[Path], Path], nodes: int | None) -> None:
        self.run = made(folder)
        self.nodes = [] if nodes is None else ["--nodes", str(nodes)]
        work = Work(self.run, folder / "run.tracehint", nodes=nodes)
        work.folder.mkdir()
        done, failed = write_all(work)
        assert "report.html" in done, failed
        self.folder, self.cwd = work.folder, folder
        self.patterns = work.run.analysis.patterns
        self.analysis = json.loads((work.folder / "analysis.json").read_text())
        self.page = page_of((work.folder / "report.html").read_text())
        out = io.StringIO()
        print_summary(work.run.analysis, console_for(out), work.lint.simulation)
        self.summary = " ".join(out.getvalue().split())

    def command(self, *words: str) -> str:
        done = inside(words[0], self.run, *words[1:], *self.nodes, cwd=self.cwd)
        assert done.returncode in (0, 1), done.stderr
        return " ".join(done.stdout.split())

    def labels(self) -> list[dict[str, Any]]:
        rows = self.patterns.to_pylist()
        return [row for row in rows if row["primary"] and row["edge"] is None]


def page_of(html: str) -> dict[str, Any]:
    found = re.search(r'<script[^>]*id="data"[^>]*>(.*?)</script>', html, re.DOTALL)
    assert found
    data: dict[str, Any] = json.loads(found[1])
    return data


@pytest.fixture(scope="module", params=CASES)
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Outputs:
    return Outputs(tmp_path_factory.mktemp("totals"), *CASES[request.param])


def test_all_outputs_have_the_same_gains(run: Outputs) -> None:
    """lint as JSON, SARIF and text, the page, the summary, profile's folder, compare."""
    listed = json.loads(run.command("lint", "--format", "json", "--all"))
    assert check_gains(listed) > 0
    base, every, own = listed["baseline"], listed["all"], gains(listed)
    assert (run.page["baseline"], run.page["all"]) == (base, every)
    assert gains(run.page) == own
    kept = json.loads((run.folder / "lint.json").read_text())
    assert (kept["baseline"], kept["all"], gains(kept)) == (base, every, own)
    results = json.loads(run.command("lint", "--format", "sarif"))["runs"][0]["results"]
    prints = [row["partialFingerprints"]["tracehint/v1"] for row in results]
    assert {p: r["properties"]["gain"] for p, r in zip(prints, results, strict=True)} == own
    compared = json.loads(run.command("compare", str(run.run), "--format", "json"))
    assert (compared["baseline"], compared["all"]) == (base, every)
    baseline = Baseline(**base)
    text = run.command("lint", "--all")
    assert text.split() == (run.folder / "lint.txt").read_text().split()
    for gain in own.values():
        if gain is not None and Gain(**gain).pays(baseline):
            assert Gain(**gain).text(baseline) in text
    result = run.page["result"]
    for words in (run.summary, text):
        assert all(" ".join(line.split()) in words for line in result)


def test_a_rule_has_the_gain_of_the_finding_about_its_files(run: Outputs) -> None:
    """In the hint file, on the page, and in the output of `hints`; most rules of names have one."""
    listed = json.loads((run.folder / "lint.json").read_text())
    kept = json.loads((run.folder / "hints.json").read_text())
    made = json.loads(run.command("hints", "--format", "json"))
    for hints in (kept, made):
        assert (hints["baseline"], hints["all"]) == (listed["baseline"], listed["all"])
    own = {rule["template"]: rule["gain"] for rule in kept["rules"]}
    assert {rule["template"]: rule["gain"] for rule in made["rules"]} == own
    assert {rule["template"]: rule["gain"] for rule in run.page["hints"]} == own
    names = {re.sub(r"[{][a-z]+[}]", "*", name): gain for name, gain in own.items() if gain}
    found = [f for f in listed["findings"] if f["gain"] and f["template"] in names]
    assert found
    assert all(f["gain"] == names[f["template"]] for f in found)
    baseline, text = Baseline(**kept["baseline"]), run.command("hints")
    for gain in filter(None, own.values()):
        assert Gain(**gain).text(baseline) in text


def test_the_largest_groups_are_the_same_ones(run: Outputs) -> None:
    rows = run.summary.partition("Placement of the largest groups of files")[2]
    best = run.page["best"]
    assert best
    at = -1
    for row in best:
        name = row["template"]
        shown = f"{row['files']:,} × {name}" if row["files"] > 1 else name
        found = rows.find(shown, at + 1)
        assert found > at, shown  # in this order
        at = found
        pattern = row["pattern"].replace("_", " ")
        assert row["saves"] in rows[found:].partition(f" {pattern}")[2][:90]


def test_all_outputs_count_tasks_files_and_bytes_alike(run: Outputs) -> None:
    counted = run.page["totals"]
    data = {f["path"] for f in run.analysis["files"] if f["role"] != "software"}
    assert counted["files"] == len(data)
    words = [
        f"{counted['tasks']} task", f"{counted['files']} file",
        f"{size(counted['read_bytes'])} read", f"{size(counted['written_bytes'])} written",
    ]  # fmt: skip  # a table
    for word in words:
        assert f" {word}" in f" {run.summary}"
    stages = run.page["stages"]
    assert sum(row["read_bytes"] for row in stages) == counted["read_bytes"]
    assert sum(row["written_bytes"] for row in stages) == counted["written_bytes"]
    for row in stages:
        assert f"{row['type']} {row['tasks']} {size(row['read_bytes'])}" in run.summary
    for row in run.page["mix"]:
        shown = f"{row['pattern'].replace('_', ' ')} {row['files']} {size(row['bytes'])}"
        assert shown in run.summary


def test_all_outputs_tell_the_same_nodes(run: Outputs) -> None:
    nodes = run.page["run"]["nodes"]
    assert run.analysis["run"]["nodes"] == nodes
    hints = json.loads((run.folder / "hints.json").read_text())["parameters"]
    assert hints["nodes"] == nodes
    assert hints["nodes_given"] == bool(run.nodes)


def broadcast(folder: Path, readers: int, at_once: int) -> Path:
    """Save a table with many readers; each also needs the file of a reader of the previous wave."""
    run = RunBuilder(cwd="/proj")
    shell = run.process(["sh", "run"], start=0.0, end=999.0)
    table = run.file("/proj/table")
    run.write(run.process(["prepare"], parent=shell, start=0.0, end=5.0), table, 0, 8 * MB, at=1.0)
    files = [run.file(f"/proj/out_{k}") for k in range(readers)]
    for k, file in enumerate(files):
        at = 10.0 + 10 * (k // at_once)
        use = run.process(["use", str(k)], parent=shell, start=at, end=at + 9)
        if k >= at_once:
            run.read(use, files[k - at_once], 0, MB, at=at + 0.5)
        run.read(use, table, 0, 8 * MB, at=at + 1)
        run.write(use, file, 0, MB, at=at + 2)
    return run.save(folder / "run.trace")


@pytest.mark.parametrize(
    ("readers", "at_once", "nodes", "copies"),
    [(10, 10, 3, 3), (9, 3, None, 2), (5, 4, 4, 2), (12, 4, 3, 2), (4, 4, 2, 2)],
)
def test_all_outputs_ask_for_the_same_number_of_copies(
    readers: int, at_once: int, nodes: int | None, copies: int, tmp_path: Path
) -> None:
    """The label, the rule, the script, and the values that the hint file sets later agree; none
    exceeds the number of nodes."""
    out = Outputs(tmp_path, lambda folder: broadcast(folder, readers, at_once), nodes)
    (table,) = [f for f in out.analysis["files"] if f["path"] == "table"]
    label = next(p for p in table["patterns"] if p["primary"])
    rules = json.loads((out.folder / "hints.json").read_text())["rules"]
    (rule,) = [r for r in rules if r["template"] == "table"]
    hints = {h["name"]: h["value"] for h in rule["hints"]}
    records = (out.folder / "hints.sh.data").read_bytes().split(b"\0")
    value = records[records.index(b"table") + 2]
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "table").touch()
    as_root = ["--as-root"] if os.geteuid() == 0 else []
    words = ("apply", out.folder / "hints.json", "data", "--store", "xattr", *as_root)
    assert inside(*words, cwd=tmp_path).returncode == 0
    found = {
        label["choice"]["placement"],
        f"replicas={hints['Replication']}",
        f"replicas={bytes.fromhex(value.decode()[2:]).decode()}",
        f"replicas={os.getxattr(tmp_path / 'data' / 'table', 'user.Replication').decode()}",
    }
    assert found == {f"replicas={copies}"}
    assert copies <= out.analysis["run"]["nodes"]


@pytest.mark.skipif(not shutil.which("node"), reason="no node on PATH (apt install nodejs)")
def test_the_page_prints_numbers_as_the_text_does() -> None:
    """The same units and rounding, from one byte to petabytes and from zero to days."""
    sizes = sorted({s * (1 << k) // 7 for k in range(0, 60, 3) for s in (0, 1, 6, 7, 699, 7167)})
    sizes = [n for n in sizes if n < 1 << 50]
    times = [0, 0.0004, 0.0123, 0.25, 0.4213, 2, 9.996, 12.04, 59.94, 59.96, 75, 119.6, 3599.7,
             3600, 4380, 90_000]  # fmt: skip  # a table
    source = Path(__file__).parent.parent / "hintgen/report/assets/js/1_util.js"
    numbers = re.search(r"function size.*?(?=\nconst count)", source.read_text(), re.DOTALL)
    assert numbers
    program = (
        f"{numbers[0]}\nconsole.log(JSON.stringify([{sizes}.map(size), {times}.map(seconds)]))"
    )
    done = subprocess.run(["node", "-e", program], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == [[*map(size, sizes)], [*map(seconds, times)]]


def test_all_results_ask_one_database(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The tables queried by picture, findings and page are created once."""
    made: list[str] = []
    connect = query.connect
    monkeypatch.setattr(query, "connect", lambda *asked: (made.append("once"), connect(*asked))[1])
    run = write(tmp_path / "run.trace", 2)
    (tmp_path / "run.tracehint").mkdir()
    done, failed = write_all(Work(run, tmp_path / "run.tracehint"))
    assert not failed
    assert {"graph.svg", "lint.txt", "report.html"} <= set(done)
    assert made == ["once"]
