"""`tracehint run` reads task names from the logs of the engine, as `profile` does."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest

from tests.support import cli
from tests.support.engines import engine
from tests.test_created_engines import ENGINES, prepared
from tracehint.schemas.store import read_bundle

pytestmark = [pytest.mark.slow, pytest.mark.engine]


def tracehint(folder: Path, *words: str | Path, env: dict[str, str] | None = None) -> str:
    """Run tracehint and return its standard output followed by standard error."""
    done = cli.tracehint(*words, cwd=folder, env=env)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.mark.parametrize("name", ["Makeflow", "Snakemake"])
def test_what_the_engine_declares_is_in_the_recording(name: str, tmp_path: Path) -> None:
    folder = tmp_path / "w"
    command, env = prepared(folder, ENGINES[name])
    tracehint(folder, "run", "--", *command, env=env)
    bundle = folder / ".tracehint/runs/0001.trace"
    declared = read_bundle(bundle).tables["declared_tasks"]
    assert declared.num_rows == 4
    found = json.loads(tracehint(folder, "analyze", bundle, "--format", "json"))
    assert sum(t["source"] == "both" for t in found["tasks"]) == 4


# The same name everywhere: only the producer of a file indicates its use.
NEXTFLOW = """
process SEED {
    output: path 'out.dat'
    script: "seq 1 300000 >out.dat"
}
process EACH {
    input: val n; path 'seed.dat'
    output: path 'out.dat'
    script: "rev seed.dat >out.dat"
}
process LAST {
    input: path 'in.dat'
    output: path 'done.dat'
    script: "sort -r in.dat >done.dat"
}
workflow { LAST(EACH(channel.of(1, 2, 3), SEED())) }
"""


def test_the_second_run_of_nextflow_knows_its_processes(tmp_path: Path) -> None:
    """Nextflow needs no options: its own log is enough."""
    runs, command = Path(".tracehint/runs"), [engine("nextflow"), "run", "w", "-ansi-log", "false"]
    (tmp_path / "w").write_text(NEXTFLOW)
    for _ in (1, 2):
        shutil.rmtree(tmp_path / "work", ignore_errors=True)
        said = tracehint(tmp_path, "run", "--", *command)
    assert re.search(r"hints set on ([1-9]\d*) of \1 matching files", said), said
    hints = json.loads((tmp_path / runs / "0002.trace/hints.json").read_text())
    assert {kind for rule in hints["rules"] for kind in rule["made_by"]} == {"SEED", "EACH"}
    assert {("seq", "SEED"), ("rev", "EACH")} <= {(m["word"], m["type"]) for m in hints["makers"]}
    words = ("compare", runs / "0001.trace", runs / "0002.trace")
    compared = json.loads(tracehint(tmp_path, *words, "--format", "json"))
    assert {row["type"] for row in compared["types"]} == {"SEED", "EACH", "LAST"}
