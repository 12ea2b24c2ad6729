"""The contract JSON: worked examples, schema, round trip, hostile names, the command."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tracehint.analyzer import analyze
from tracehint.analyzer.model import Options
from tracehint.analyzer.output import from_json, to_json

EXAMPLES = Path(__file__).parent / "examples"
SCHEMA = json.loads(
    (Path(__file__).parents[1] / "schemas" / "analysis.schema.json").read_text(encoding="utf-8")
)
NAMES = ("pipeline", "scatter_gather", "append_retry")


def normal(data: dict[str, Any]) -> dict[str, Any]:
    """The same with ids that follow from content, lists in a fixed order, additions left out."""
    data = json.loads(json.dumps(data))
    data["run"].pop("parameters", None)
    tasks = sorted(data["tasks"], key=lambda t: (t["start_s"], t["command"]))
    files = sorted(data["files"], key=lambda f: (f["path"], f["version"]))
    ids = {t["id"]: f"task {k}" for k, t in enumerate(tasks)}
    ids |= {f["id"]: f"{f['path']} v{f['version']}" for f in files}
    for row in [*tasks, *files]:
        row["id"] = ids[row["id"]]
    for file in files:
        file.pop("lineage", None)
        file.pop("other_path_bytes", None)
        for side in ("producers", "consumers"):
            for row in file[side]:
                row["task"] = ids[row["task"]]
            file[side].sort(key=lambda row: row["task"])
    for edge in data["edges"]:
        edge.update({k: ids[edge[k]] for k in ("producer", "file", "consumer")})
    data["edges"].sort(key=lambda e: (e["file"], e["producer"], e["consumer"]))
    return {**data, "tasks": tasks, "files": files}


def analyzed(name: str, folder: Path, **options: Any) -> dict[str, Any]:
    run = importlib.import_module(f"tests.examples.{name}").build()
    return to_json(analyze(run.bundle(folder), Options(**options)))


@pytest.mark.parametrize("name", NAMES)
def test_worked_example(name: str, tmp_path: Path) -> None:
    expected = json.loads((EXAMPLES / f"{name}.json").read_text(encoding="utf-8"))
    jsonschema.validate(expected, SCHEMA)
    found = analyzed(name, tmp_path)
    jsonschema.validate(found, SCHEMA)
    assert normal(found) == normal(expected)


@pytest.mark.parametrize("name", NAMES)
def test_reading_what_was_written_gives_the_same(name: str, tmp_path: Path) -> None:
    data = analyzed(name, tmp_path)
    assert to_json(from_json(data)) == data
