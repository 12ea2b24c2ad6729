"""Exit codes, files and messages of lint, explain, graph, report and diff."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.bundles import RunBuilder
from tests.support.runs import parse_run
from tracehint.cli import main

pytestmark = pytest.mark.slow

SIX = (Path(__file__).parent / "runs" / "six_patterns.txt").read_text()
MAKEFLOW = "d.dat:\n\tgen > d.dat\nr.txt: d.dat\n\tuse d.dat > r.txt\n"


@pytest.fixture
def analysis(tmp_path: Path) -> str:
    from tracehint.analyzer.output.json import to_json

    path = tmp_path / "six.json"
    path.write_text(json.dumps(to_json(parse_run(SIX).analysis())))
    return str(path)


@pytest.fixture
def bundle(tmp_path: Path) -> str:
    run = RunBuilder(data_roots=["/data"])
    driver = run.process(["sh", "wf.sh"])
    gen = run.process(["gen"], parent=driver, start=1, end=2)
    use = run.process(["use"], parent=driver, start=3, end=4)
    other = run.process(["other"], parent=driver, start=5, end=6)
    data, result = run.file("/data/d.dat", size=9 << 20), run.file("/data/r.txt", size=2 << 20)
    run.write(gen, data, 0, 9 << 20, at=1.5)
    run.read(use, data, 0, 9 << 20, at=3.2)
    run.write(use, result, 0, 2 << 20, at=3.5)
    run.read(other, result, 0, 2 << 20, at=5.5)
    return str(run.save(tmp_path / "run.trace"))


def test_lint_finds_and_says_so(bundle: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lint", bundle]) == 1
    out, err = capsys.readouterr()
    assert "TP003 pipeline-placed-apart" in out
    assert "Traceback" not in err
    assert main(["lint", bundle, "--select", "TM", "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["findings"] == []


def test_lint_of_an_analysis(analysis: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lint", analysis, "--format", "json"]) == 1
    document = json.loads(capsys.readouterr().out)
    assert {"TP001", "TP003", "TP004"} <= {f["code"] for f in document["findings"]}
    assert document["rules_without_facts"]["TM002"] == "bundle"


def test_lint_reads_what_the_workflow_declares(
    bundle: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    workflow = tmp_path / "wf.makeflow"
    workflow.write_text(MAKEFLOW)
    assert main(["lint", bundle, str(workflow), "--select", "TD", "--format", "json"]) in (0, 1)
    assert json.loads(capsys.readouterr().out)["rules_without_facts"] == {}
    assert main(["lint", bundle, str(tmp_path / "none")]) == 2


def test_lint_baseline_and_configuration(
    bundle: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    base = tmp_path / "base.json"
    assert main(["lint", bundle, "--write-baseline", str(base)]) == 0
    assert main(["lint", bundle, "--baseline", str(base)]) == 0
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tracehint.toml").write_text(f'[lint]\nbaseline = "{base.name}"\n')
    assert main(["lint", bundle]) == 0
    assert main(["lint", bundle, "--write-baseline", str(base)]) == 2  # the file exists
    assert main(["lint", bundle, "--write-baseline", str(base), "--force"]) == 0


@pytest.mark.parametrize(
    "arguments",
    [
        ["lint", "nowhere.trace"],
        ["lint", "{bundle}", "--select", "XX"],
        ["lint", "{bundle}", "--block-size", "0"],
        ["lint", "{bundle}", "--baseline", "nowhere"],
        ["explain", "TP999"],
        ["graph", "{bundle}", "-o", "x.doc"],
        ["graph", "nowhere", "-o", "x.svg"],
        ["report", "nowhere"],
        ["diff", "{bundle}", "nowhere"],
        ["diff", "{bundle}", "{bundle}", "--min-bytes", "x"],
    ],
)
def test_what_cannot_be_done_is_said(
    arguments: list[str], bundle: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([a.replace("{bundle}", bundle) for a in arguments]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err and "Traceback" not in err


def test_explain(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "tp001"]) == 0
    by_code = capsys.readouterr().out
    assert main(["explain", "broadcast-without-replicas"]) == 0
    assert capsys.readouterr().out == by_code
    assert "Why it costs" in by_code
    assert main(["explain", "--all"]) == 0
    assert len(capsys.readouterr().out.splitlines()) >= 24


def test_graph_formats(bundle: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for ending, start in (("dot", b"digraph"), ("json", b"{"), ("graphml", b"<")):
        path = tmp_path / f"g.{ending}"
        assert main(["graph", bundle, "-o", str(path)]) == 0
        assert path.read_bytes().startswith(start)
    assert main(["graph", bundle]) == 0
    assert capsys.readouterr().out.startswith("digraph")


def test_a_large_run_has_the_same_report(
    bundle: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pages = []
    for large in (1_000_000, 0):  # LARGE: rules learned beside the findings, then before them
        monkeypatch.setattr("tracehint.commands.report.LARGE", large)
        page = tmp_path / f"{large}.html"
        assert main(["report", bundle, "-o", str(page)]) == 0
        pages.append(page.read_text())
    assert pages[0] == pages[1]


def test_diff_of_a_run_with_itself(
    bundle: str, analysis: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["diff", bundle, bundle]) == 0
    assert capsys.readouterr().out == "No changes.\n"
    assert main(["diff", bundle, analysis, "--format", "github"]) == 1
    assert capsys.readouterr().out.startswith("::")
