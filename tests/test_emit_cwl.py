"""CWL documents with hints: nothing else changes, and cwltool accepts and runs them."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.support.engines import engine
from tests.support.hints import literal, rule, save
from tests.support.hostile import HOSTILE_NAMES
from tests.support.patience import PATIENCE_S
from tests.support.plans import planned, save_plan
from tracehint.cli import main
from tracehint.hintgen.hints.model import Rule

yaml = pytest.importorskip("yaml")

CUT = """\
cwlVersion: v1.2
class: CommandLineTool
baseCommand: [head, -n]
inputs:
  n: {type: int, inputBinding: {position: 1}}
  text: {type: File, inputBinding: {position: 2}}
stdout: cut_$(inputs.n).txt
outputs: {out: stdout}
"""
WORKFLOW = """\
#!/usr/bin/env cwl-runner
cwlVersion: v1.2
class: Workflow
requirements: {ScatterFeatureRequirement: {}}
inputs:
  text: File
  ns: int[]
  mode: {type: string, default: yes}
  zero: {type: string, default: "010"}
  rate: {type: float, default: 1e3}
outputs:
  all: {type: File, outputSource: join/out}
  said: {type: File, outputSource: say/out}
steps:
  cut:
    run: cut.cwl
    scatter: n
    in: {text: text, n: ns}
    out: [out]
  join:
    hints: [{class: ResourceRequirement, coresMin: 1}]
    run:
      class: CommandLineTool
      baseCommand: cat
      inputs: {parts: {type: "File[]", inputBinding: {}}}
      stdout: all.txt
      outputs: {out: stdout}
    in: {parts: cut/out}
    out: [out]
  say:
    run:
      class: CommandLineTool
      baseCommand: echo
      inputs:
        mode: {type: string, inputBinding: {}}
        zero: {type: string, inputBinding: {}}
        rate: {type: float, inputBinding: {}}
      stdout: said.txt
      outputs: {out: stdout}
    in: {mode: mode, zero: zero, rate: rate}
    out: [out]
"""
INPUTS = "text: {class: File, path: in.txt}\nns: [1, 2]\n"
RULES = (rule("in.txt", producer=None, Replication="3"), rule("cut_{n}.txt", DP="local"))
PLAN = {"cut": 0, "cut_2": 1, "join": 1, "elsewhere": 0}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a workflow, a tool in a separate file, and the input document."""
    files = {"w.cwl": WORKFLOW, "cut.cwl": CUT, "job.yml": INPUTS, "in.txt": "a\nb\nc\n"}
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def _emit(
    folder: Path, source: str, output: str, *more: str, rules: tuple[Rule, ...] = RULES
) -> None:
    hints = save_plan(folder, planned(PLAN, rules=rules))
    command = ["emit", str(hints), "--workflow-engine", "cwl", str(folder / source), "--force"]
    assert main([*command, "-o", str(folder / output), *more]) == 0


def _read(path: Path) -> Any:
    return yaml.load(path.read_text(), Loader=yaml.BaseLoader)


def test_each_step_gets_the_parts_of_its_tasks(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _emit(folder, "w.cwl", "h.cwl", "--hosts", str(folder / "hosts.toml"))
    made = _read(folder / "h.cwl")
    assert made["$namespaces"] == {"tracehint": "urn:tracehint:cwl:1#"}
    assert made["steps"]["cut"]["hints"]["tracehint:Part"]["tasks"] == [
        {"task": "cut", "part": "0", "node": "node1"},
        {"task": "cut_2", "part": "1", "node": "node2"},
    ]
    own, ours = made["steps"]["join"]["hints"]
    assert own == {"class": "ResourceRequirement", "coresMin": "1"}
    assert (ours["class"], ours["tasks"][0]["part"]) == ("tracehint:Part", "1")
    first, second = made["hints"]["tracehint:Rules"]["rules"]
    assert first["says"] == [{"hint": "Replication", "value": "3"}]
    assert second["template"] == "cut_{n}.txt"
    assert "3 of 4 tasks of the plan found" in capsys.readouterr().err
    parts = json.loads((folder / "h.cwl.plan.json").read_text())
    assert [p["node"] for p in parts["parts"]] == ["node1", "node2"]


def test_all_else_stays_as_its_author_wrote_it(folder: Path) -> None:
    _emit(folder, "w.cwl", "h.cwl")
    made, before = _read(folder / "h.cwl"), _read(folder / "w.cwl")
    del made["$namespaces"], made["hints"], made["steps"]["cut"]["hints"]
    made["steps"]["join"]["hints"].pop()
    assert made == before
    text = (folder / "h.cwl").read_text()
    assert "default: yes" in text and 'default: "010"' in text and "default: 1e3" in text
    _emit(folder, "h.cwl", "again.cwl")
    assert (folder / "again.cwl").read_bytes() == (folder / "h.cwl").read_bytes()


def test_a_packed_document_and_its_steps_as_a_list(folder: Path) -> None:
    step = {"id": "#main/cut", "run": "#cut.cwl", "in": [], "out": []}
    graph = [
        {"class": "CommandLineTool", "id": "#cut.cwl"},
        {"class": "Workflow", "id": "#main", "steps": [step], "hints": []},
    ]
    (folder / "p.cwl").write_text(json.dumps({"cwlVersion": "v1.2", "$graph": graph}))
    _emit(folder, "p.cwl", "h.cwl")
    tool, flow = _read(folder / "h.cwl")["$graph"]
    assert "hints" not in tool
    assert flow["hints"][0]["class"] == "tracehint:Rules"
    assert len(flow["steps"][0]["hints"]["tracehint:Part"]["tasks"]) == 2


def test_files_of_an_input_document_get_their_hints(folder: Path) -> None:
    (folder / "job.yml").write_text(INPUTS + "more: [{class: File, location: ../in.txt}]\n")
    _emit(folder, "job.yml", "h.yml")
    made = _read(folder / "h.yml")
    assert made["text"]["tracehint:says"] == [{"hint": "Replication", "value": "3"}]
    assert made["more"] == [{"class": "File", "location": "../in.txt"}]
    assert made["ns"] == ["1", "2"]


@pytest.mark.parametrize(
    ("text", "output", "said"),
    [
        (WORKFLOW, "sub/h.cwl", "relative names"),
        (WORKFLOW + "$namespaces: {tracehint: 'http://x'}\n", "h.cwl", "prefix tracehint"),
        ("a: 1\n", "h.cwl", "neither a CWL process"),
        ("- a\n", "h.cwl", "no mapping"),
        ("a: [\n", "h.cwl", "not YAML"),
        ("a: &x 1\nb: *x\n", "h.cwl", "aliases"),
    ],
)
def test_what_cannot_be_written_is_refused(
    folder: Path, text: str, output: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "bad.cwl").write_text(text)
    hints = save(folder, *RULES)
    command = ["emit", str(hints), "--workflow-engine", "cwl", str(folder / "bad.cwl")]
    assert main([*command, "-o", str(folder / output)]) != 0
    assert said in capsys.readouterr().err
    assert not (folder / output).exists()


def _cwltool(folder: Path, *words: str | Path) -> str:
    done = subprocess.run(
        [engine("cwltool"), *words], cwd=folder, capture_output=True, text=True, timeout=PATIENCE_S,
        env={**os.environ, "HOME": str(folder)},
    )  # fmt: skip  # a table
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


@pytest.mark.slow
@pytest.mark.engine
def test_cwltool_runs_the_hinted_workflow_on_the_hinted_inputs(folder: Path) -> None:
    _emit(folder, "w.cwl", "h.cwl", "--hosts", str(folder / "hosts.toml"))
    _emit(folder, "job.yml", "h.yml")
    assert "h.cwl is valid CWL" in _cwltool(folder, "--validate", "h.cwl")
    _cwltool(folder, "--outdir", "plain", "w.cwl", "job.yml")
    _cwltool(folder, "--outdir", "hinted", "h.cwl", "h.yml")
    for name in ("all.txt", "said.txt"):
        made = (folder / "hinted" / name).read_text()
        assert made == (folder / "plain" / name).read_text() != ""


@pytest.mark.slow
@pytest.mark.engine
def test_cwltool_takes_hostile_names_as_texts(folder: Path) -> None:
    odd = [*HOSTILE_NAMES, b"$import", b"$include", b"$(runtime.outdir)"]
    rules = tuple(literal(name, DP="local") for name in odd if b"\0" not in name)
    tasks = {name.decode("utf-8", "backslashreplace"): 0 for name in odd} | {"$import": 1}
    hints = save_plan(folder, planned({**tasks, **PLAN}, rules=rules))
    out = folder / "h.cwl"
    command = ["emit", str(hints), "--workflow-engine", "cwl", str(folder / "w.cwl")]
    assert main([*command, "-o", str(out)]) == 0
    assert len(_read(out)["hints"]["tracehint:Rules"]["rules"]) == len(rules)
    assert "h.cwl is valid CWL" in _cwltool(folder, "--validate", "h.cwl")
