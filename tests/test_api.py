"""`tracehint.load`: the example of the documentation runs, tables agree with each other."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import tracehint
from tests.support.bundles import RunBuilder
from tracehint.analyzer.model import Options
from tracehint.errors import BundleError, InputError

pytestmark = pytest.mark.slow

PAGE = Path(__file__).parent.parent / "docs" / "reference" / "python.md"


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """A file with a writer and two readers; a third task reads the version of a second writer."""
    run = RunBuilder()
    driver = run.process(["sh", "wf.sh"])
    first, second = run.process(["gen"], parent=driver), run.process(["gen2"], parent=driver)
    readers = [run.process(["use", str(i)], parent=driver) for i in range(3)]
    f = run.file("/data/x", existed=False, size=100_000)
    run.write(first, f, 0, 100_000, at=1)
    run.read(readers[0], f, 0, 100_000, at=2)
    run.read(readers[1], f, 0, 100_000, at=3)
    run.write(second, f, 0, 100_000, at=4)
    run.read(readers[2], f, 0, 100_000, at=5)
    bundle = run.bundle(tmp_path)
    path = bundle.path.rename(tmp_path / "run.trace")
    return Path(path)


def test_import_is_cheap() -> None:
    code = (
        "import sys, tracehint; heavy = {'pyarrow', 'duckdb', 'networkx', 'numpy', 'pandas'};"
        "assert not heavy & set(sys.modules); tracehint.load; assert not heavy & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_example_of_the_page_runs(trace: Path) -> None:
    code = "\n".join(re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(), re.M | re.S))
    done = subprocess.run(
        [sys.executable, "-c", code + "\nassert max(readers.values()) == 2"],
        cwd=trace.parent,
        env={**os.environ, "PYTHONWARNINGS": "error"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "tasks, 2 file versions" in done.stdout and "broadcast" in done.stdout


def test_accesses_belong_to_tasks_and_versions(trace: Path) -> None:
    run = tracehint.load(trace)
    version = dict(
        zip(run.files["file"].to_pylist(), run.files["version"].to_pylist(), strict=True)
    )
    rows = run.accesses.to_pylist()
    assert [(r["op"], r["first_s"], version[r["file"]]) for r in rows] == [
        ("write", 1.0, 0),
        ("read", 2.0, 0),
        ("read", 3.0, 0),
        ("write", 4.0, 1),
        ("read", 5.0, 1),
    ]
    assert len({r["task"] for r in rows}) == 5
    assert {r["task"] for r in rows} <= set(run.tasks["task"].to_pylist())
    assert sum(r["bytes"] for r in rows) == 500_000


def test_columns_are_those_of_the_page(trace: Path) -> None:
    run = tracehint.load(trace)
    text = PAGE.read_text()
    for name, table in {"tasks": run.tasks, "files": run.files, "edges": run.edges}.items():
        assert re.search(rf"`run\.{name}` \|[^|]*\| {', '.join(table.column_names)}\b", text)
    listed = re.findall(r"^\| ([a-z_, ]+?) +\| [^|]*\|$", text.split("## Accesses")[1], re.M)
    assert run.accesses.column_names == [c for row in listed[1:] for c in row.split(", ")]


def test_labels_of_files_and_of_edges(trace: Path) -> None:
    run = tracehint.load(trace, Options(nodes=4))
    assert set(run.patterns()["pattern"].to_pylist()) == {"broadcast", "pipeline"}
    assert run.patterns()["edge"].null_count == run.patterns().num_rows
    assert run.patterns(edges=True)["edge"].null_count == 0
    assert run.edges.num_rows == 3
    assert run.analysis.run["nodes"] == 4


def test_analysis_json_gives_the_same_but_accesses(trace: Path, tmp_path: Path) -> None:
    from tracehint.analyzer.output.json import to_json

    path = tmp_path / "run.json"
    bundle = tracehint.load(trace)
    path.write_text(json.dumps(to_json(bundle.analysis)))
    run = tracehint.load(path)
    assert set(run.graph().edges) == set(bundle.graph().edges)
    assert [r.template for r in run.hints().rules] == [r.template for r in bundle.hints().rules]
    with pytest.raises(InputError, match="Load the trace bundle"):
        _ = run.accesses


def test_errors_say_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(BundleError):
        tracehint.load(tmp_path / "nothing")
    (tmp_path / "x.json").write_text("[]")
    with pytest.raises(InputError, match="not a trace bundle"):
        tracehint.load(tmp_path / "x.json")
    with pytest.raises(AttributeError):
        _ = tracehint.nothing


def test_what_a_user_finds_in_the_package() -> None:
    assert {"load", "Run", "Options", "errors"} <= set(dir(tracehint))
    assert "TYPE_CHECKING" not in dir(tracehint)
    assert tracehint.Options is Options


def test_paths_and_options_of_wrong_types(trace: Path) -> None:
    assert tracehint.load(os.fsencode(trace)).tasks.num_rows == tracehint.load(trace).tasks.num_rows
    with pytest.raises(TypeError, match=r"tracehint.Options\(nodes=...\), not int"):
        tracehint.load(trace, 4)  # type: ignore[arg-type]


def test_nodes_of_the_graph_have_the_numbers_of_the_tables(trace: Path) -> None:
    run = tracehint.load(trace)
    paths = dict(zip(run.files["file"].to_pylist(), run.files["path"].to_pylist(), strict=True))
    for node, data in run.graph().nodes(data=True):
        if data["kind"] == "file":
            assert data["label"].split(" v")[0] == paths[int(node[1:])].decode()
