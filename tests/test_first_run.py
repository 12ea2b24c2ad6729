"""The first run of a workflow: hints from its graph alone, where they cannot make it slower."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.cli import tracehint
from tests.support.patience import PATIENCE_S
from tests.support.predicting import need_engine
from tracehint.adapters.project.state import read_state
from tracehint.app.first_run import graph_hints, graph_key
from tracehint.app.run_loop import TRIAL_RUN_S
from tracehint.hintgen.hints.hintfile import dump

pytestmark = pytest.mark.slow

SLOW_S = 9000.0
FLOW = "mid: in\n\tsort in > mid\n\nlast: mid\n\tsort -r mid > last\n"
HOSTS = "".join(
    f'[[host]]\nname = "n{i}"\nslots = 2\nstart = ["env", "{{argv}}"]\n' for i in (1, 2)
)


@pytest.fixture
def flow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    need_engine()
    (tmp_path / "w.mf").write_text(FLOW)
    (tmp_path / "in").write_text("1\n" * 1000)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("tracehint.app.first_run.DRY_RUN_S", PATIENCE_S)
    return tmp_path


@pytest.mark.parametrize(
    "words", [("makeflow", "w.mf"), ("makeflow", "-T", "local", "w.mf"),
              ("/usr/bin/makeflow", "--batch-type=local", "-j2", "w.mf")],
)  # fmt: skip  # a table
def test_files_stay_where_the_engine_runs_all_tasks(flow: Path, words: tuple[str, ...]) -> None:
    found = graph_hints(words, "moosefs", 5)
    assert found is not None and found[0].plan is not None and found[1] == (str(flow),)
    assert [(f.path, f.hints) for f in found[0].plan.files] == [
        ("mid", {"DP": "local"}),
        ("last", {"DP": "local"}),
    ]
    assert not found[0].plan.tasks and not found[0].rules


MAKEFILE = "last: mid\n\tsort -r mid > last\nmid: in\n\tsort in > mid\n"
SNAKEFILE = """rule last:
    input: "mid"
    output: "last"
    shell: "sort -r {input} > {output}"
rule mid:
    input: "in"
    output: "mid"
    shell: "sort {input} > {output}"
"""
SNAKEMAKE = str(Path(sys.executable).with_name("snakemake"))


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [("Makefile", MAKEFILE, ("make", "-j2")), ("my.mk", MAKEFILE, ("make", "-f", "my.mk", "last")),
     ("Snakefile", SNAKEFILE, (SNAKEMAKE, "-c2", "--quiet", "all")),
     ("my.smk", SNAKEFILE, (SNAKEMAKE, "-s", "my.smk", "-c2", "last"))],
)  # fmt: skip  # a table
def test_an_engine_that_prints_its_graph_runs_nothing_for_it(
    flow: Path, name: str, text: str, words: tuple[str, ...]
) -> None:
    if "mk" in name and not Path(SNAKEMAKE).exists():
        pytest.skip("Snakemake is not installed")
    (flow / name).write_text(text)
    assert graph_key(words, "moosefs", 5)
    found = graph_hints(words, "moosefs", 5)
    assert found is not None and found[0].plan is not None and found[1] == (str(flow),)
    hints = {f.path: f.hints for f in found[0].plan.files}
    assert hints == {"mid": {"DP": "local"}, "last": {"DP": "local"}}
    assert not (flow / "mid").exists() and not (flow / "last").exists()


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [("Makefile", f"include part.mk\n{MAKEFILE}", ("make",)),
     ("Makefile", f"{MAKEFILE}{'#' * (1 << 20)}\ninclude part.mk\n", ("make",)),
     ("Makefile", f" -include part.mk\n{MAKEFILE}", ("make",)),
     ("Makefile", f"all:\n\ttouch ran; $(MAKE) last\n{MAKEFILE}", ("make",)),
     ("Makefile", f"all: last\n\t@ +touch ran\n{MAKEFILE}", ("make",)),
     ("Makefile", "last: no.such\n\ttouch last\n", ("make",)),
     ("Makefile", "last:\n\ttouch last\nX := $(shell sleep 60)\n", ("make",)),
     ("other", MAKEFILE, ("make",)),
     ("Snakefile", SNAKEFILE, (SNAKEMAKE, "-c2", "-e", "cluster-generic")),
     ("Snakefile", SNAKEFILE, (SNAKEMAKE, "--executor=slurm", "-j2")),
     ("Snakefile", SNAKEFILE, (SNAKEMAKE, "--profile", "slurm")),
     ("Snakefile", SNAKEFILE, (SNAKEMAKE, "-c2", "--delete-all-output")),
     ("Snakefile", "not Python", (SNAKEMAKE, "-c2")),
     ("profiles/default/config.yaml", "executor: slurm", (SNAKEMAKE, "-c2"))],
)  # fmt: skip  # a table
def test_a_graph_that_cannot_be_asked_for_without_harm_is_not(
    flow: Path, monkeypatch: pytest.MonkeyPatch, name: str, text: str, words: tuple[str, ...]
) -> None:
    """What make runs even with `-n`, what does not end, what fails, and what runs elsewhere."""
    monkeypatch.setattr("tracehint.app.first_run.DRY_RUN_S", 5.0)
    (flow / "Snakefile").write_text(SNAKEFILE)
    (flow / "part.mk").write_text("part.mk: in\n\ttouch ran\n")
    (flow / name).parent.mkdir(parents=True, exist_ok=True)
    (flow / name).write_text(text)
    assert graph_hints(words, "moosefs", 5) is None
    assert not (flow / "ran").exists() and not (flow / "last").exists()


def test_a_profile_of_the_user_may_run_tasks_elsewhere(
    flow: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (flow / "Snakefile").write_text(SNAKEFILE)
    assert graph_key((SNAKEMAKE, "-c2"), "moosefs", 5)
    monkeypatch.setenv("SNAKEMAKE_PROFILE", "slurm")
    assert not graph_key((SNAKEMAKE, "-c2"), "moosefs", 5)


@pytest.mark.parametrize(
    ("words", "cluster", "hosts"),
    [(("makeflow", "-T", "slurm", "w.mf"), "moosefs", 5), (("makeflow", "-Twq", "w.mf"), "nfs", 5),
     (("makeflow", "--batch-type=slurm", "w.mf"), "moosefs", 5),
     (("makeflow", "w.mf"), None, 5), (("makeflow", "w.mf"), "moosefs", 0),
     (("makeflow", "in"), "moosefs", 5), (("sh", "w.mf"), "moosefs", 5),
     (("makeflow", "w.mf"), "hdfs", 5), (("makeflow", "w.mf"), "no such cluster", 5)],
)  # fmt: skip  # a table
@pytest.mark.usefixtures("flow")
def test_otherwise_it_is_only_recorded(
    words: tuple[str, ...], cluster: str | None, hosts: int
) -> None:
    """On a batch system, on one node, on a store that cannot keep files on a node, where files are
    on their writer's node anyway (HDFS), and where there is no graph."""
    assert graph_hints(words, cluster, hosts) is None


def test_hints_that_are_kept_need_no_tables(flow: Path) -> None:
    """Neither for recognising the hints of this graph nor for setting them."""
    found = graph_hints(("makeflow", "w.mf"), "moosefs", 5)
    assert found is not None
    dump(found[0], flow / "hints.json")
    key = "from tracehint.app.first_run import *; assert graph_key(('makeflow', 'w.mf'), 'nfs', 2)"
    head, hints = [sys.executable, "-X", "importtime"], ["--no-record", "--hints", "hints.json"]
    run = ["-m", "tracehint", "run", *hints, "--store", "xattr", "--", "touch", "mid"]
    for words in (["-c", key], run):
        done = subprocess.run([*head, *words], capture_output=True, text=True, check=True)
        assert "tracehint.version" in done.stderr
        assert "numpy" not in done.stderr and "pyarrow" not in done.stderr
    assert os.getxattr(flow / "mid", "user.DP") == b"local"


def test_a_first_run_in_an_allocation_and_those_after_it(flow: Path) -> None:
    """If learned hints make the run slower, the next one uses the first run's hints again."""
    if shutil.which("makeflow") is None:
        pytest.skip("makeflow is not installed")
    (flow / "hosts.toml").write_text(HOSTS)
    (flow / "tracehint.toml").write_text('hosts = "hosts.toml"\ncluster = "moosefs"\n')
    words = ("run", "--collector", "strace", "--", "makeflow", "-T", "local", "w.mf")
    first = tracehint(*words, cwd=flow).stderr
    assert (
        "first run: hints from the workflow's graph" in first
        and "the next run applies them" in first
    )
    assert os.getxattr(flow / "mid", "user.DP") == os.getxattr(flow / "last", "user.DP") == b"local"
    again = _run_afresh(flow, words)
    assert "s in the first run, " in again and "first run: hints" not in again
    assert 0 < read_state(flow).runs[-1].around < 1000
    again = _run_afresh(flow, words, slow=2)
    assert "the first run's hints (" in again and "learned ones took 9" in again
    assert os.getxattr(flow / "mid", "user.DP") == b"local"
    assert "next run applies them" in again  # one slow run may have other reasons
    _run_afresh(flow, words)
    again = _run_afresh(flow, words, slow=4)
    assert "the first run's hints (" in again and "next run applies them" not in again


def _run_afresh(flow: Path, words: tuple[str, ...], slow: int = 0) -> str:
    """Return the messages of the next run, as if run `slow` had taken 9000 s and the others were
    trials on an idle machine. 9000 s are so much that a run of minutes, on a machine with other
    work, is no sign of noise that would explain it."""
    for name in ("mid", "last", "w.mf.makeflowlog"):
        (flow / name).unlink()
    kept = flow / ".tracehint" / "state.json"
    state = json.loads(kept.read_text())
    for run in state["runs"]:
        if run["number"] == slow:
            run["seconds"] = SLOW_S
        elif run["seconds"] != SLOW_S:
            run["seconds"] = min(run["seconds"], TRIAL_RUN_S / 2)
        run["around"] = 0.0
    kept.write_text(json.dumps(state))
    return tracehint(*words, cwd=flow).stderr
