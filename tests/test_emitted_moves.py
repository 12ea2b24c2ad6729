"""Emitted files can move with the project's folder: no output contains the path of its creation."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from tests.support.hints import rule
from tests.support.plans import planned, save_plan
from tests.test_emit_swift import check_swift_t
from tracehint.cli import main
from tracehint.hintgen.hints.model import FilePart

MAKEFLOW = """proj/p_1.fits: in.fits
	cp in.fits proj/p_1.fits
all.txt: proj/p_1.fits
	wc proj/p_1.fits > all.txt
"""
SNAKEFILE = """
rule all:
    input: "all.txt"
rule make:
    output: "all.txt"
    shell: "echo > {output}"
"""
CWL = json.dumps(
    {"cwlVersion": "v1.2", "class": "Workflow", "inputs": {}, "outputs": {}, "steps": {}}
)
FILES = {"w.mf": MAKEFLOW, "Snakefile": SNAKEFILE, "w.cwl": CWL}
RULES = (
    rule(
        "proj/p_{n}.fits", producer="cp", consumers=("wc",), DP="local", examples=("proj/p_1.fits",)
    ),
    rule("in.fits", producer=None, pattern="stage_in", consumers=("cp",), DP="local"),
    rule("cat.tbl", pattern="broadcast", Replication=3),
)
PLAN = planned({"proj/p_1.fits": 0, "all.txt": 1}, [FilePart("all.txt", 1, {"DP": "local"})], RULES)
# engine -> further arguments of `emit`
ENGINES = {
    "swift": ("-o", "fs.data", "--locations", "where.json", "--shared-dir", "/pfs"),
    "swift-k": ("-o", "fs.data"),
    "swift-t": ("-o", "w.swift", "--locations", "where.json"),
    "makeflow": ("w.mf", "-o", "h.mf"),
    "snakemake": ("Snakefile", "-o", "h.smk"),
    "nextflow": ("-o", "h.config"),
    "slurm": ("w.mf", "-o", "jobs.sh"),
    "parsl": ("-o", "tracehint_parts.py"),
    "cwl": ("w.cwl", "-o", "h.cwl"),
    "json": ("-o", "plan.out"),
}


def emitted(folder: Path, engine: str) -> dict[str, bytes]:
    """Map the names of all files written for an engine to their contents."""
    before = set(folder.rglob("*"))
    words = ["emit", str(folder / "plan.json"), "--workflow-engine", engine, *ENGINES[engine]]
    assert main([*words, "--hosts", "hosts.toml"]) == 0
    made = sorted(p for p in set(folder.rglob("*")) - before if p.is_file())
    return {os.fspath(p.relative_to(folder)): p.read_bytes() for p in made}


@pytest.mark.parametrize("engine", ENGINES)
def test_no_output_holds_the_place_where_it_was_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, engine: str
) -> None:
    found = []
    for name in ("first", "elsewhere/second"):
        folder = tmp_path / name
        folder.mkdir(parents=True)
        for file, text in FILES.items():
            (folder / file).write_text(text)
        located = [{"path": str(folder / "proj" / "p_1.fits"), "nodes": ["node1"]}]
        (folder / "where.json").write_text(json.dumps({"files": located}))
        save_plan(folder, PLAN)
        monkeypatch.chdir(folder)
        found.append(emitted(folder, engine))
    assert found[0] == found[1]
    programs = ("helper",)  # programs of tracehint, independent of the folder
    texts = [text for name, text in found[0].items() if not name.endswith(programs)]
    assert texts and not [text for text in texts if os.fsencode(tmp_path) in text]


def test_locations_of_a_plan_go_with_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "project"
    folder.mkdir()
    save_plan(folder, PLAN)
    located = [{"path": str(folder / "proj" / "p_1.fits"), "nodes": ["node1"]}]
    (folder / "where.json").write_text(json.dumps({"files": located}))
    monkeypatch.chdir(folder)
    emitted(folder, "swift-t")
    monkeypatch.chdir(tmp_path)
    shutil.move(folder, tmp_path / "moved")
    text = (tmp_path / "moved" / "w.swift").read_text()
    check_swift_t(text)
    assert 'tracehint_host["proj/p_1.fits"] = "node1";' in text
    assert '@location=tracehint_soft(tracehint_host["proj/p_1.fits"]) wc(...);' in text
    assert 'tracehint_node["proj/p_1.fits"] = "node1";' in text
    assert 'tracehint_node["all.txt"] = "node2";' in text
    assert '@location=tracehint_soft(tracehint_node["TASK"]) call(...);' in text
