"""Exports: valid in each format's own terms, complete, and safe with hostile names."""

from __future__ import annotations

import itertools
import json
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import networkx as nx
import pytest

from tests.support.big import chains, hostile_run
from tests.support.hostile import HOSTILE_NAMES
from tests.support.runs import parse_run
from tracehint.analyzer.model import Analysis
from tracehint.commands.export import FORMATS as COMMAND_FORMATS
from tracehint.errors import UsageError
from tracehint.hintgen.export import FORMATS, export
from tracehint.hintgen.inputs import Input
from tracehint.hintgen.report.graph_export import to_networkx

SIX = (Path(__file__).parent / "runs" / "six_patterns.txt").read_text()
_ID = {"type": "string", "pattern": r"^[0-9a-zA-Z\-_.]+$"}
_IDS = {"type": "array", "items": _ID, "uniqueItems": True}
# The requirements of WfFormat 1.5, written by hand from its description.
WFFORMAT: dict[str, Any] = {
    "type": "object",
    "required": ["name", "schemaVersion", "workflow"],
    "properties": {
        "name": {"type": "string", "minLength": 1},
        "schemaVersion": {"const": "1.5"},
        "workflow": {
            "type": "object",
            "required": ["specification", "execution"],
            "properties": {
                "specification": {
                    "type": "object",
                    "required": ["tasks", "files"],
                    "properties": {
                        "tasks": {
                            "type": "array",
                            "minItems": 1,
                            "items": {
                                "type": "object",
                                "required": ["name", "id", "parents", "children"],
                                "properties": {
                                    "name": {"type": "string", "minLength": 1},
                                    "id": _ID,
                                    "parents": _IDS,
                                    "children": _IDS,
                                    "inputFiles": _IDS,
                                    "outputFiles": _IDS,
                                },
                            },
                        },
                        "files": {
                            "type": "array",
                            "items": {
                                "type": "object",
                                "required": ["id", "sizeInBytes"],
                                "properties": {
                                    "id": _ID,
                                    "sizeInBytes": {"type": "integer", "minimum": 0},
                                },
                            },
                        },
                    },
                },
                "execution": {
                    "type": "object",
                    "required": ["makespanInSeconds", "executedAt", "tasks"],
                    "properties": {
                        "tasks": {
                            "type": "array",
                            "minItems": 1,
                            "items": {
                                "type": "object",
                                "required": ["id", "runtimeInSeconds"],
                                "properties": {
                                    "id": _ID,
                                    "runtimeInSeconds": {"type": "number", "minimum": 0},
                                    "command": {
                                        "type": "object",
                                        "properties": {
                                            "program": {"type": "string", "minLength": 1}
                                        },
                                    },
                                },
                            },
                        }
                    },
                },
            },
        },
    },
}


def made(analysis: Analysis, name: str, tmp_path: Path) -> Path:
    target = tmp_path / f"run{FORMATS[name].suffix or '.d'}"
    export(Input("run", analysis), name, target)
    return target


def six() -> Analysis:
    return parse_run(SIX).analysis()


def test_command_offers_what_there_is() -> None:
    assert tuple(FORMATS) == COMMAND_FORMATS


def test_wfformat(tmp_path: Path) -> None:
    data = json.loads(made(six(), "wfformat", tmp_path).read_text())
    jsonschema.validate(data, WFFORMAT)
    tasks = data["workflow"]["specification"]["tasks"]
    parents = {t["id"]: set(t["parents"]) for t in tasks}
    children = {t["id"]: set(t["children"]) for t in tasks}
    assert len(tasks) == 16
    assert sum(map(len, parents.values())) == 24
    assert all(t in children[p] for t, up in parents.items() for p in up)
    files = {f["id"] for f in data["workflow"]["specification"]["files"]}
    used = {f for t in tasks for f in t["inputFiles"] + t["outputFiles"]}
    assert used == files


def test_wfformat_has_no_cycles_even_where_tasks_feed_each_other(tmp_path: Path) -> None:
    text = (
        "task a_{1..2}\ntask b start=20\nfile jobs.db 1K\nfile out 1K\nwrite a_{1..2} jobs.db\n"
        "read a_{1..2} jobs.db\nwrite a_2 out\nread b out"
    )
    data = json.loads(made(parse_run(text).analysis(), "wfformat", tmp_path).read_text())
    tasks = data["workflow"]["specification"]["tasks"]
    graph = nx.DiGraph([(p, t["id"]) for t in tasks for p in t["parents"]])
    assert nx.is_directed_acyclic_graph(graph)
    assert graph.number_of_edges() == 2


def test_wfformat_is_what_our_reader_reads(tmp_path: Path) -> None:
    from tracehint.adapters.engines.graphs import read_graph

    graph = read_graph(made(chains(3, 5), "wfformat", tmp_path))
    assert graph.engine == "wfformat"
    assert graph.tasks.num_rows == 15
    assert graph.io.num_rows == 15 + 15 + 10


def test_prov_is_read_by_the_prov_package(tmp_path: Path) -> None:
    model = pytest.importorskip("prov.model", reason="pip install prov")
    document = model.ProvDocument.deserialize(str(made(six(), "prov", tmp_path)))
    kinds = Counter(type(r).__name__ for r in document.get_records())
    assert kinds["ProvActivity"] == 16
    assert kinds["ProvEntity"] == 21
    assert kinds["ProvCommunication"] == 24
    assert kinds["ProvGeneration"] == 1 + 1 + 4 + 8 + 1 + 4 + 4


def test_ro_crate_is_read_by_the_rocrate_package(tmp_path: Path) -> None:
    package = pytest.importorskip("rocrate.rocrate", reason="pip install rocrate")
    crate = package.ROCrate(str(made(six(), "ro-crate", tmp_path)))
    kinds = Counter(str(e.type) for e in crate.get_entities())
    assert kinds["CreateAction"] == 16
    assert kinds["SoftwareApplication"] == 7
    known = {e.id for e in crate.get_entities()}
    graph = json.loads((tmp_path / "run.d" / "ro-crate-metadata.json").read_text())["@graph"]
    for action in (e for e in graph if e["@type"] == "CreateAction"):
        for other in (action["instrument"], *action["object"], *action["result"]):
            assert other["@id"] in known


def test_perfetto_has_a_slice_per_task_and_lanes_do_not_overlap(tmp_path: Path) -> None:
    events = json.loads(made(chains(3, 8), "perfetto", tmp_path).read_text())["traceEvents"]
    slices = [e for e in events if e["ph"] == "X"]
    assert len(slices) == 24
    assert {e["args"]["name"] for e in events if e["ph"] == "M"} == {f"node{i}" for i in range(4)}
    lanes: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for e in slices:
        lanes.setdefault((e["pid"], e["tid"]), []).append((e["ts"], e["ts"] + e["dur"]))
    for spans in lanes.values():
        spans.sort()
        assert all(a[1] <= b[0] for a, b in itertools.pairwise(spans))


@pytest.mark.parametrize("name", ["parquet", "arrow"])
def test_tables(name: str, tmp_path: Path) -> None:
    import pyarrow.feather as feather
    import pyarrow.parquet as pq

    folder = made(six(), name, tmp_path)
    read = pq.read_table if name == "parquet" else feather.read_table
    for table, rows in six().tables().items():
        assert read(folder / f"{table}.{name}").num_rows == rows.num_rows
    assert json.loads((folder / "run.json").read_text())["hosts"] == ["node1"]


@pytest.mark.parametrize("name", FORMATS)
def test_hostile_names(name: str, tmp_path: Path) -> None:
    target = made(hostile_run(), name, tmp_path)
    if target.suffix == ".json":
        data = json.loads(target.read_text(encoding="utf-8"))
        if name == "wfformat":
            jsonschema.validate(data, WFFORMAT)
            files = [f["id"] for f in data["workflow"]["specification"]["files"]]
            assert len(set(files)) == len(HOSTILE_NAMES)
        if name == "prov":
            assert len(data["entity"]) == len(HOSTILE_NAMES)
            assert all(re.fullmatch(r"run:f\d+", key) for key in data["entity"])
    elif name == "graphml":
        assert len(nx.read_graphml(target)) == 2 * len(HOSTILE_NAMES) + 1


@pytest.mark.parametrize("run", [six, hostile_run])
def test_graphml_is_the_graph_of_networkx(run: Callable[[], Analysis], tmp_path: Path) -> None:
    found, same = nx.read_graphml(made(run(), "graphml", tmp_path)), to_networkx(run())
    assert dict(found.nodes(data=True)) == dict(same.nodes(data=True))
    assert sorted(found.edges(data=True)) == sorted(same.edges(data=True))
    assert found.graph["folded"] is same.graph["folded"]


def test_a_file_where_a_directory_goes_is_in_the_way(tmp_path: Path) -> None:
    target = tmp_path / "x.json"
    target.write_text("mine")
    with pytest.raises(UsageError, match="is not a directory"):
        export(Input("run", six()), "parquet", target, force=True)
    assert target.read_text() == "mine"


@pytest.mark.parametrize("name", FORMATS)
def test_a_dash_is_stdout(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    run = Input("run", six())
    if FORMATS[name].directory:
        with pytest.raises(UsageError, match="cannot be written to stdout"):
            export(run, name, Path("-"))
    else:
        export(run, name, Path("-"))
        written = capfdbinary.readouterr().out
        export(run, name, Path("file"))
        assert written == Path("file").read_bytes()
    assert {path.name for path in tmp_path.iterdir()} <= {"file"}
