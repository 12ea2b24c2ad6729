"""The plan of a hint file: round trip, schema, and the limits of a crafted one."""

from __future__ import annotations

import copy
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tests.support.cli import inside
from tests.support.hints import json_schema, parsed
from tests.support.hostile import HOSTILE_NAMES
from tests.support.planning import MB, Made, instance, planned, star, write
from tests.support.predicting import need_engine
from tests.test_plan_sites import several
from tracehint.errors import InputError
from tracehint.hintgen.hints.hintfile import dump, load, to_json
from tracehint.hintgen.hints.model import FilePart, HintFile, Plan, PlanSeconds, TaskPart
from tracehint.hintgen.hints.pathtext import to_text
from tracehint.hintgen.hints.vocabulary import group

pytestmark = pytest.mark.slow

PLAN = Plan(
    cluster="lab",
    strategy="partition",
    seconds=PlanSeconds(34.0, 13.5),
    parts=3,
    tasks=(TaskPart("project 1", 0), TaskPart("project 2", 2)),
    files=(
        FilePart("out/p_1.fits", 0, {"DP": f"collocation|{group(0)}"}),
        FilePart("ref.fa", None, {"Replication": "3"}),
    ),
)
HINTS = HintFile((), {"nodes": 3, "nodes_given": True}, (), plan=PLAN)


@pytest.fixture
def data() -> dict[str, Any]:
    return copy.deepcopy(json.loads(json.dumps(to_json(HINTS))))


def test_round_trip(tmp_path: Path) -> None:
    dump(HINTS, tmp_path / "h.json")
    assert load(tmp_path / "h.json") == HINTS
    assert "plan" not in to_json(replace(HINTS, plan=None))
    dump(replace(HINTS, plan=None), tmp_path / "rules.json")
    assert load(tmp_path / "rules.json").plan is None


def test_the_schema_describes_a_plan(data: dict[str, Any]) -> None:
    schema = json_schema("hints")
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(data, schema)
    assert set(data["plan"]) == set(schema["$defs"]["Plan"]["properties"])


BAD: list[tuple[tuple[Any, ...], Any]] = [
    ((), []),
    (("cluster",), 3),
    (("strategy",), None),
    (("strategy",), "x" * 20_000),
    (("seconds",), None),
    (("seconds", "default"), "1"),
    (("seconds", "planned"), float("nan")),
    (("seconds", "planned"), float("inf")),
    (("seconds", "planned"), -1),
    (("seconds", "planned"), 10**400),
    (("seconds", "planned"), True),
    (("steal",), "all"),
    (("steal",), []),
    (("parts",), -1),
    (("parts",), True),
    (("parts",), 2),
    (("parts",), 10**9),
    (("tasks",), {}),
    (("tasks", 0), "project"),
    (("tasks", 0, "name"), ""),
    (("tasks", 0, "name"), "\ud800"),
    (("tasks", 0, "name"), "project 2"),
    (("tasks", 0, "part"), 3),
    (("tasks", 0, "part"), -1),
    (("tasks", 0, "part"), None),
    (("tasks", 0, "part"), 1.0),
    (("tasks", 0, "part"), False),
    (("files",), None),
    (("files", 0, "path"), ""),
    (("files", 0, "path"), "/etc/passwd"),
    (("files", 0, "path"), "a/../../b"),
    (("files", 0, "path"), "a//b"),
    (("files", 0, "path"), "./a"),
    (("files", 0, "path"), "a\\x00b"),
    (("files", 0, "path"), "a\\"),
    (("files", 0, "path"), "ref\\x2efa"),
    (("files", 0, "path"), "x" * 20_000),
    (("files", 0, "part"), 3),
    (("files", 0, "part"), "0"),
    (("files", 0, "hints"), {}),
    (("files", 0, "hints"), {"DP": "collocation|$(id)"}),
    (("files", 0, "hints"), {"DP": 1}),
    (("files", 0, "hints"), {"security.capability": "1"}),
    (("files", 0, "hints"), {f"H{i}": "1" for i in range(100)}),
]


@pytest.mark.parametrize(("path", "value"), BAD, ids=lambda item: str(item)[:40])
def test_a_crafted_plan_is_refused(data: dict[str, Any], path: tuple[Any, ...], value: Any) -> None:
    keys, at = ("plan", *path), data
    for key in keys[:-1]:
        at = at[key]
    at[keys[-1]] = value  # type: ignore[index]
    with pytest.raises(InputError):
        parsed(data)


def test_too_many_rows_name_the_limit(
    data: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRACEHINT_LIMITS", "plan-rows=1")
    with pytest.raises(InputError, match=r"tasks of the plan.*more than 1 rows"):
        parsed(data)


def test_names_of_every_byte_go_through_a_file(tmp_path: Path) -> None:
    names = [to_text(name) for name in HOSTILE_NAMES if name not in (b".", b"..")]
    plan = replace(PLAN, files=tuple(FilePart(name, 1, {"DP": "local"}) for name in names))
    dump(replace(HINTS, plan=plan), tmp_path / "h.json")
    assert load(tmp_path / "h.json").plan == plan


def ring(count: int) -> dict[str, Any]:
    """Tasks that read the output of two neighbours, twice: only a cut keeps neighbours together."""
    tasks: list[Made] = [(f"make_{i}", "make", [f"in_{i}"], [f"a_{i}"], 0.2) for i in range(count)]
    for step, (before, after) in enumerate(("ab", "bc")):
        for i in range(count):
            reads = [f"{before}_{i}", f"{before}_{(i + 1) % count}"]
            tasks.append((f"join{step}_{i}", f"join{step}", reads, [f"{after}_{i}"], 0.2))
    return instance(tasks, {f: 20 * MB for task in tasks for f in (*task[2], *task[3])})


def test_a_plan_is_predicted_as_it_was_planned(tmp_path: Path) -> None:
    need_engine()
    workflow = write(tmp_path, ring(40))
    data = planned(workflow, "-o", str(tmp_path / "hints.json"))
    words = ("predict", workflow, "--cluster", tmp_path / "rig.toml", "--format", "json")
    done = inside(*words, "--placement", f"hints:{tmp_path / 'hints.json'}", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)["configurations"][0]
    chosen = next(row for row in data["strategies"] if row["name"] == data["chosen"])
    assert chosen["scheduler"] == "plan" and data["parts"] == 5
    assert found["seconds"] == pytest.approx(chosen["seconds"], rel=0.1)
    assert found["network_bytes"] == pytest.approx(chosen["network_bytes"], rel=0.05, abs=5e6)
    assert any("start in their part" in note for note in found["notes"])
    other = tmp_path / "other"
    other.mkdir()
    words = ("predict", write(other, star(9)), "--cluster", other / "rig.toml", "--format", "json")
    done = inside(*words, "--placement", f"hints:{tmp_path / 'hints.json'}", cwd=tmp_path)
    notes = json.loads(done.stdout)["configurations"][0]["notes"]
    assert notes and not any("start in their part" in note for note in notes)


def test_metadata_is_asked_from_the_sites_of_the_plan(tmp_path: Path) -> None:
    need_engine()
    workflow = write(tmp_path, ring(40))
    (tmp_path / "rig.toml").write_text(several(paris=3, lyon=3))
    data = planned(workflow, "--stage-inputs", "-o", str(tmp_path / "hints.json"))
    assert data["parts"] == 6
    words = ("predict", workflow, "--cluster", tmp_path / "rig.toml", "--metadata", "centralised")
    hints = ("--placement", f"hints:{tmp_path / 'hints.json'}", "--format", "json")
    found = json.loads(inside(*words, *hints, cwd=tmp_path).stdout)["metadata"]
    assert any("site of its node in the plan" in note for note in found["assumptions"])
    (row,) = found["strategies"]
    assert sum(site["operations"] for site in row["sites"]) == row["operations"]
