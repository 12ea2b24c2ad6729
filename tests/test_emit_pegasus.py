"""Pegasus workflows with hints: equal to what Pegasus' own Python API writes for these hints."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.support.engines import engine
from tests.support.hints import rule
from tests.support.plans import planned, save_plan
from tracehint.cli import main
from tracehint.hintgen.hints.model import FilePart

yaml = pytest.importorskip("yaml")

# Two chains (split -> sort), one of them one-to-one, a join, and an input that both chains read
API = """
import sys
from Pegasus.api import Job, Workflow
hinted = len(sys.argv) > 2
def job(name, key, reads, writes, **more):
    made = Job(name, _id=key).add_args("-x", "yes", "010")
    for lfn in reads:
        made.add_inputs(lfn, bypass_staging=hinted and lfn in ("only.dat",))
    for lfn in writes:
        keep = not (hinted and lfn == "part_1.txt")
        made.add_outputs(lfn, stage_out=keep, register_replica=keep)
    if hinted:
        if more.get("label"):
            made.add_pegasus_profile(label=more["label"])
        if more.get("node"):
            own = more.get("own")
            said = '(TARGET.Machine == "%s")' % more["node"]
            made.add_condor_profile(requirements="(%s) && %s" % (own, said) if own else said)
    elif more.get("own"):
        made.add_condor_profile(requirements=more["own"])
    return made
w = Workflow("w")
w.add_jobs(
    job("split", "A", ["both.dat", "only.dat"], ["part_1.txt"], label="tracehint-0", node="node1"),
    job("sort", "B", ["part_1.txt"], ["sorted_1.txt"], label="tracehint-0", node="node1",
        own="Memory > 1"),
    job("split", "C", ["both.dat"], ["part_2.txt"], node="node2"),
    job("sort", "D", ["part_2.txt"], ["sorted_2.txt"], node="node1"),
    job("join", "E", ["sorted_1.txt", "sorted_2.txt"], ["all.txt"]),
)
w.write(sys.argv[1])
"""
FILES = [
    FilePart("only.dat", 0, {"Access": "sequential"}),
    FilePart("both.dat", None, {"Replication": "2"}),
    FilePart("part_1.txt", 0, {"DP": "local", "Lifetime": "temporary|B"}),
]
PLAN = {"A": 0, "B": 0, "C": 1, "sorted_2.txt": 0}


def _api(folder: Path, name: str, *more: str) -> Any:
    """Run the API program and read its output, with all values as text, for comparison."""
    (folder / "api.py").write_text(API)
    done = subprocess.run(
        [engine("python"), "api.py", name, *more], cwd=folder, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return _read(folder / name)


def _read(path: Path) -> Any:
    return yaml.load(path.read_text(), Loader=yaml.BaseLoader)


def _emit(folder: Path, *more: str) -> Any:
    hints = save_plan(folder, planned(PLAN, FILES, [rule("x", DP="local")]))
    command = ["emit", str(hints), "--workflow-engine", "pegasus", str(folder / "workflow.yml")]
    assert main([*command, "-o", str(folder / "h.yml"), "--force", *more]) == 0
    return _read(folder / "h.yml")


def _uses(document: Any) -> dict[str, list[dict[str, Any]]]:
    """Map each job to its uses, sorted by file and without the metadata that tracehint adds."""
    return {
        job["id"]: sorted(
            ({k: v for k, v in use.items() if k != "metadata"} for use in job["uses"]),
            key=lambda use: str(use["lfn"]),
        )
        for job in document["jobs"]
    }


@pytest.mark.slow
@pytest.mark.engine
def test_the_api_writes_the_same_for_these_words(tmp_path: Path) -> None:
    _api(tmp_path, "workflow.yml")
    wanted = _api(tmp_path, "wanted.yml", "hinted")
    made = _emit(tmp_path, "--temporary", "--hosts", str(tmp_path / "hosts.toml"))
    assert _uses(made) == _uses(wanted)
    profiles = [[job.get("profiles") for job in document["jobs"]] for document in (made, wanted)]
    assert profiles[0] == profiles[1]
    assert made["jobDependencies"] == wanted["jobDependencies"]
    said = {use["lfn"]: use.get("metadata") for job in made["jobs"] for use in job["uses"]}
    assert said["both.dat"] == {"tracehint.Replication": "2"}


WORKFLOW = """\
x-pegasus: {apiLang: python}
pegasus: 5.0.4
name: w
jobs:
- {type: job, name: a, id: ID1, arguments: [yes, "010", 1e3], uses: [{lfn: o, type: output}]}
- {type: job, name: b, id: ID2, uses: [{lfn: o, type: input}, {lfn: p, type: output}],
   profiles: {pegasus: {label: mine}}}
- {type: job, name: c, id: ID3, uses: [{lfn: p, type: input}]}
jobDependencies:
- {id: ID1, children: [ID3]}
"""


def _small(folder: Path, plan: dict[str, int], text: str = WORKFLOW) -> Any:
    (folder / "workflow.yml").write_text(text)
    hints = save_plan(folder, planned(plan, [FilePart("o", 0, {"DP": "local"})]))
    command = ["emit", str(hints), "--workflow-engine", "pegasus", str(folder / "workflow.yml")]
    assert main([*command, "-o", str(folder / "h.yml"), "--force"]) == 0
    return _read(folder / "h.yml")


def _labels(document: Any) -> list[str | None]:
    return [j.get("profiles", {}).get("pegasus", {}).get("label") for j in document["jobs"]]


def test_only_chains_become_clusters_and_the_authors_label_stays(tmp_path: Path) -> None:
    made = _small(tmp_path, {"ID1": 0, "ID2": 0, "ID3": 0})
    assert _labels(made) == [None, "mine", None], "ID3 waits for two jobs: no chain"
    alone = WORKFLOW.partition("jobDependencies")[0]
    assert _labels(_small(tmp_path, {"ID1": 0, "ID2": 0, "ID3": 0}, alone)) == [
        "tracehint-0", "mine", "tracehint-0",
    ]  # fmt: skip  # a table
    assert _labels(_small(tmp_path, {"ID1": 0, "ID2": 1, "ID3": 1}, alone)) == [
        None, "mine", "tracehint-0",
    ]  # fmt: skip  # a table


def test_what_is_not_asked_for_stays(tmp_path: Path) -> None:
    made = _small(tmp_path, {"ID1": 0})
    for use in (use for job in made["jobs"] for use in job.get("uses", [])):
        assert not use.keys() & {"bypass", "stageOut"}, "an intermediate, and no --temporary"
    text = (tmp_path / "h.yml").read_text()
    assert '[yes, "010", 1e3]' in text
    assert text.startswith("x-pegasus:"), "`tracehint` knows it again"


def test_a_file_without_jobs_is_refused(tmp_path: Path) -> None:
    (tmp_path / "w.yml").write_text(json.dumps({"jobs": {}}))
    hints = save_plan(tmp_path, planned({"a": 0}))
    command = ["emit", str(hints), "--workflow-engine", "pegasus", str(tmp_path / "w.yml")]
    assert main(command) != 0
