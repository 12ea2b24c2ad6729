"""profile, report and hints begin with the gain that the run would have on a cluster."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.support.bundles import RunBuilder
from tests.support.cli import inside
from tests.support.planning import pairs, write
from tests.support.predicting import need_engine

pytestmark = pytest.mark.slow

SIZE = 50_000_000
CLUSTER = 'base = "moosefs"\nname = "mine"\n[nodes]\ncount = 4\ncores = 2\nlink_mbit = 100\n'


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """Four chains of two tasks, limited by data transfers."""
    need_engine()
    build = RunBuilder()
    driver = build.process(["sh", "wf.sh"])
    for i in range(4):
        maker = build.process(["make_it", str(i)], parent=driver, start=1, end=2)
        middle = build.file(f"/data/m{i}", existed=False, size=SIZE)
        build.write(maker, middle, 0, SIZE, at=2)
        user = build.process(["use_it", str(i)], parent=driver, start=3, end=4)
        build.read(user, middle, 0, SIZE, at=3)
        result = build.file(f"/data/r{i}", existed=False, size=1000)
        build.write(user, result, 0, 1000, at=4)
    (tmp_path / "mine.toml").write_text(CLUSTER)
    return Path(build.bundle(tmp_path).path.rename(tmp_path / "run.trace"))


def test_hints_are_those_that_win_on_the_cluster(run: Path) -> None:
    words = ("hints", run, "--cluster", "mine.toml", "-o", "h.json")
    done = inside(*words, cwd=run.parent)
    assert done.returncode == 0, done.stderr
    said = " ".join(done.stderr.split())
    found = re.search(r"On your cluster model \(mine, 4 nodes\) ([\d.]+) s -> ([\d.]+) s", said)
    assert found and float(found[2]) < float(found[1])
    file = json.loads((run.parent / "h.json").read_text())
    assert file["plan"]["cluster"] == "mine" and file["rules"]
    plain = inside("hints", run, "--format", "json", cwd=run.parent)
    assert "plan" not in json.loads(plain.stdout)


def test_a_cluster_that_cannot_be_is_an_error(run: Path) -> None:
    for words in (("hints", run), ("report", run, "-o", "r.html")):
        done = inside(*words, "--cluster", "none.toml", cwd=run.parent)
        assert done.returncode == 2 and "none.toml" in done.stderr, done.stderr


def test_profile_refuses_a_cluster_before_the_command_runs(tmp_path: Path) -> None:
    done = inside("profile", "--cluster", "none.toml", "--", "touch", "ran", cwd=tmp_path)
    assert done.returncode not in (0, 1) and "none.toml" in done.stderr
    assert not (tmp_path / "ran").exists()


def test_the_report_begins_with_the_decision(run: Path) -> None:
    done = inside("report", run, "-o", "r.html", "--cluster", "mine.toml", cwd=run.parent)
    assert done.returncode == 0, done.stderr
    assert "On your cluster model (mine, 4 nodes)" in (run.parent / "r.html").read_text()


def test_profile_begins_with_the_result(tmp_path: Path) -> None:
    (tmp_path / "wf.sh").write_text(
        "for i in 1 2 3; do head -c 3000000 /dev/zero > a$i; cat a$i > b$i; done\n"
    )
    (tmp_path / "mine.toml").write_text(CLUSTER)
    for name, words, cluster in (
        ("own", ("--cluster", "mine.toml"), "Simulated: mine, 4 nodes"),
        ("none", (), "Simulated: moosefs, 5 nodes (built-in model); use your own with --cluster"),
        ("nodes", ("--nodes", "3"), "Simulated: moosefs, 3 nodes (built-in model)"),
    ):
        done = inside("profile", "-o", f"{name}.trace", *words, "--", "sh", "wf.sh", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        text = " ".join(done.stderr.split())
        order = [text.index(part) for part in ("sh wf.sh: 6 tasks,", "Result ", cluster, "Next ")]
        assert order == sorted(order), done.stderr
        assert text.index(f"Next tracehint report {name}.trace --open") > 0
        kept = json.loads((tmp_path / f"{name}.tracehint" / "lint.json").read_text())
        every = kept["all"]
        base = kept["baseline"]["network_bytes"]
        pays = every["significant"] or every["network_bytes"] > 0.05 * base
        assert pays or "tracehint run --hints" not in text


def gains(run: Path, cluster: str) -> dict[str, Any]:
    done = inside("lint", run, "--cluster", cluster, "--format", "json", cwd=run.parent)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_analyze_lint_and_report_have_the_gain_on_the_cluster(run: Path) -> None:
    """Four chains of 50 MB over 100 Mbit links: the gain is from the simulation, not from bytes."""
    found = gains(run, "mine.toml")
    assert (found["baseline"]["cluster"], found["baseline"]["nodes"]) == ("mine", 4)
    gain = found["findings"][0]["gain"]
    assert gain["significant"] and 0 < gain["makespan_s"] <= found["baseline"]["makespan_s"]
    for command in ("analyze", "lint"):
        text = " ".join(
            inside(command, run, "--cluster", "mine.toml", cwd=run.parent).stdout.split()
        )
        assert "Makespan can fall by" in text and "Simulated: mine, 4 nodes" in text
    done = inside("report", run, "-o", "s.html", "--cluster", "mine.toml", cwd=run.parent)
    assert done.returncode == 0, done.stderr
    assert "Makespan can fall by" in (run.parent / "s.html").read_text()


def test_links_that_are_fast_save_no_time(run: Path) -> None:
    (run.parent / "fast.toml").write_text(CLUSTER.replace("100", "100000"))
    slow, quick = (gains(run, name)["all"]["makespan_s"] for name in ("mine.toml", "fast.toml"))
    assert quick < slow / 50


def test_a_cluster_of_the_project_file_is_enough(run: Path) -> None:
    (run.parent / "tracehint.toml").write_text('cluster = "mine.toml"\n')
    for command in ("analyze", "lint"):
        done = inside(command, run, cwd=run.parent)
        assert done.returncode in (0, 1) and "mine, 4 nodes" in " ".join(done.stdout.split())


def test_a_graph_of_which_nothing_is_known_is_not_called_unworthy(tmp_path: Path) -> None:
    data = pairs(6)
    data["workflow"]["execution"]["tasks"].clear()
    for file in data["workflow"]["specification"]["files"]:
        del file["sizeInBytes"]
    path = write(tmp_path, data)
    done = inside("plan", path, "--cluster", tmp_path / "rig.toml", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("No prediction is possible yet")
    assert "--learned RUN" in done.stdout and "Run the workflow unchanged" not in done.stdout


def test_the_text_of_a_prediction_has_the_longest_types(tmp_path: Path) -> None:
    path = write(tmp_path, pairs(12))  # WfFormat's names make each task a type of its own
    data = json.loads(path.read_text())
    for row in data["workflow"]["execution"]["tasks"]:
        del row["command"]
    path.write_text(json.dumps(data))
    done = inside("predict", path, "--cluster", tmp_path / "rig.toml", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "and 12 shorter types of tasks: --format json" in done.stdout
