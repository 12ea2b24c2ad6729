"""`task` and `profile`: the other commands that run a command."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest

from tests.support.cli import inside, record, tracehint
from tracehint.collectors.registry import check
from tracehint.schemas.store import read_bundle

pytestmark = pytest.mark.slow

USABLE = [name for name in ("ebpf", "preload", "strace") if check(name).usable]


def test_task_becomes_the_command(tmp_path: Path) -> None:
    work = 'echo "$TRACEHINT_TASK|$0|$1"; exit 6'
    done = tracehint("task", "align 7; $(x)", "--", "sh", "-c", work, "a", "b", cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (6, "align 7; $(x)|a|b\n", "")


def test_task_without_dashes_and_with_options(tmp_path: Path) -> None:
    assert tracehint("task", "n", "printf", "%s", "-x", cwd=tmp_path).stdout == "-x"


def test_task_keeps_sigpipe_as_it_was(tmp_path: Path) -> None:
    done = tracehint("task", "n", "--", "sh", "-c", "trap - PIPE; kill -PIPE $$", cwd=tmp_path)
    assert done.returncode == -signal.SIGPIPE


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["n", "--", "no-such-program"], 127),
        (["n", "--", "/etc/passwd"], 126),
        (["", "--", "true"], 125),
        (["x" * 2000, "--", "true"], 125),
        (["n"], 125),
        (["n", "--"], 127),
        ([], 125),
    ],
)
def test_task_errors(tmp_path: Path, arguments: list[str], code: int) -> None:
    done = inside("task", *arguments, cwd=tmp_path)
    assert done.returncode == code
    assert done.stderr and "Traceback" not in done.stderr


@pytest.mark.parametrize(
    "collector",
    [pytest.param(name, marks=pytest.mark.slow if name == "ebpf" else ()) for name in USABLE],
)
def test_task_names_reach_the_analysis(tmp_path: Path, collector: str) -> None:
    import sys

    task = f"{sys.executable} -m tracehint task"
    done = record(
        "sh",
        "-c",
        f"{task} make-it -- sh -c 'echo x > a'; {task} use-it -- cat a > b",
        collector=collector,
        to="r.trace",
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    result = tracehint("analyze", "r.trace", "--format", "json", cwd=tmp_path)
    data = json.loads(result.stdout)
    names = {t["id"]: t["name"] for t in data["tasks"]}
    edges = {(names[e["producer"]], names[e["consumer"]]) for e in data["edges"]}
    assert ("make-it", "use-it") in edges


PIPELINE = "seq 20000 > in; sort -r in > out; wc -l < out; exit 3"


@pytest.mark.skipif(not USABLE, reason="no collector can run here")
def test_profile_writes_its_files_and_passes_the_exit_code(tmp_path: Path) -> None:
    done = tracehint("profile", "-o", "run.trace", "--", "sh", "-c", PIPELINE, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (3, "20000\n")
    assert "sort" in done.stderr and "Next " in done.stderr
    assert f"tracehint run --hints run.tracehint/hints.json -- sh -c '{PIPELINE}'" in done.stderr
    folder = tmp_path / "run.tracehint"
    made = {p.name for p in folder.iterdir()}
    assert {"hints.json", "hints.sh", "hints.sh.data", "lint.txt", "analysis.json"} <= made
    assert json.loads((folder / "analysis.json").read_text())["schema"] == "tracehint.analysis/1"
    assert json.loads((folder / "hints.json").read_text())["rules"]
    assert folder.stat().st_mode & 0o777 == 0o700
    assert read_bundle(tmp_path / "run.trace").manifest.exit_status == 3


def test_next_steps_name_the_workflow_that_ran(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tracehint.commands.profile import _annotations

    monkeypatch.chdir(tmp_path)
    end = "--workflow-engine snakemake -o tagged.snakemake"
    assert _annotations("snakemake", ["snakemake", "-c2"]) == f"Snakefile {end}"
    Path("workflow").mkdir()
    for name in ("workflow/Snakefile", "my config.yaml", "a flow.makeflow"):
        Path(name).touch()
    ran = ["snakemake", "-c2", "--configfile", "my config.yaml"]
    assert _annotations("snakemake", ran) == f"workflow/Snakefile {end}"
    assert _annotations("snakemake", [*ran, "-s", "b.smk"]) == f"b.smk {end}"
    end = "--workflow-engine makeflow -o tagged.makeflow"
    assert _annotations("makeflow", ["makeflow"]) == f"Makeflow {end}"
    assert _annotations("makeflow", ["makeflow", "a flow.makeflow"]) == f"'a flow.makeflow' {end}"
    assert _annotations("nextflow", ["nextflow", "run", "x.nf"]).startswith("--workflow-engine")


@pytest.mark.skipif(not USABLE, reason="no collector can run here")
def test_profile_twice_and_forced(tmp_path: Path) -> None:
    for _ in range(2):
        assert tracehint("profile", "--quiet", "--", "true", cwd=tmp_path).returncode == 0
    assert {p.name for p in tmp_path.iterdir()} == {
        "true.trace",
        "true-2.trace",
        "true.tracehint",
        "true-2.tracehint",
    }
    again = tracehint(
        "profile", "--quiet", "--force", "-o", "true.trace", "--", "true", cwd=tmp_path
    )
    assert again.returncode == 0
    assert len(list(tmp_path.iterdir())) == 4


@pytest.mark.skipif(not USABLE, reason="no collector can run here")
def test_profile_of_a_failing_command_and_a_failing_analysis(tmp_path: Path) -> None:
    assert tracehint("profile", "--", "no-such-program", cwd=tmp_path).returncode == 127
    (tmp_path / "run.tracehint").write_text("in the way")
    locked = tmp_path / "locked"
    locked.mkdir()
    spoil = "touch ../x 2>/dev/null; rm -rf locked/run.trace/manifest.json; exit 9"
    words = ("profile", "--quiet", "-o", "locked/run.trace", "--", "sh", "-c", spoil)
    done = tracehint(*words, cwd=tmp_path)
    assert done.returncode == 9  # whatever happened to the bundle
    assert "Traceback" not in done.stderr
