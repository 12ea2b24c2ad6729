"""profile, report and hints begin with what the run would gain on a cluster."""

from __future__ import annotations

import json
import re
from pathlib import Path

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
    """Four chains of two tasks, bound by data."""
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
    found = re.search(r"On your cluster \(mine, 4 nodes\) ([\d.]+) s -> ([\d.]+) s", said)
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
    assert "On your cluster (mine, 4 nodes)" in (run.parent / "r.html").read_text()


@pytest.mark.slow
def test_profile_begins_with_the_decision(tmp_path: Path) -> None:
    (tmp_path / "wf.sh").write_text(
        "for i in 1 2 3; do head -c 3000000 /dev/zero > a$i; cat a$i > b$i; done\n"
    )
    (tmp_path / "mine.toml").write_text(CLUSTER)
    for name, words, begin in (
        ("own", ("--cluster", "mine.toml"), "On your cluster (mine, 4 nodes)"),
        ("none", (), "On a ready-made cluster (moosefs,"),
        ("named", ("--cluster", "moosefs"), "On a ready-made cluster (moosefs, 5 nodes; yours:"),
    ):
        done = inside("profile", "-o", f"{name}.trace", *words, "--", "sh", "wf.sh", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        text = " ".join(done.stderr.split())
        at = text.find(begin)
        assert 0 <= at < text.index("6 tasks of"), done.stderr
        plan = json.loads((tmp_path / f"{name}.tracehint" / "hints.json").read_text()).get("plan")
        assert bool(plan) is bool(words)


def test_analyze_lint_and_report_tell_savings_in_seconds(run: Path) -> None:
    """Four chains of 50 MB over links of 100 Mbit: the simulation, not the bytes, gives them."""
    words = ("--cluster", "mine.toml")
    told = inside("analyze", run, *words, cwd=run.parent)
    assert told.returncode == 0, told.stderr
    said = " ".join(told.stdout.split())
    found = re.search(r"all hints together ([\d.]+) s -> ([\d.]+) s \(simulated on mine", said)
    assert found and float(found[2]) < float(found[1]) - 1
    assert re.search(r"alone save: pipeline [\d.]+ s to [\d.]+ s", said)
    done = inside("lint", run, *words, "--format", "json", cwd=run.parent)
    findings = json.loads(done.stdout)["findings"]
    least, most = findings[0]["saves"]["seconds"]
    assert 0 < least < most <= 2 * float(found[1])
    text = inside("lint", run, *words, cwd=run.parent).stdout
    assert f"{found[1]} s -> {found[2]} s on mine, 4 nodes" in " ".join(text.split())
    plain = json.loads(inside("lint", run, "--format", "json", cwd=run.parent).stdout)
    assert (
        "seconds" not in plain["findings"][0]["saves"]
        or not plain["findings"][0]["saves"]["seconds"]
    )
    done = inside("report", run, "-o", "s.html", *words, cwd=run.parent)
    assert done.returncode == 0, done.stderr
    assert "all hints together" in (run.parent / "s.html").read_text()


def test_links_that_are_fast_save_no_time(run: Path) -> None:
    fast = CLUSTER.replace("100", "100000")
    (run.parent / "fast.toml").write_text(fast)
    slow, quick = (
        json.loads(
            inside("lint", run, "--cluster", name, "--format", "json", cwd=run.parent).stdout
        )["findings"][0]["saves"]["seconds"][1]
        for name in ("mine.toml", "fast.toml")
    )
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
    assert done.stdout.startswith("Nothing can be said yet")
    assert "--learned RUN" in done.stdout and "Run it as it is" not in done.stdout


def test_the_text_of_a_prediction_has_the_longest_types(tmp_path: Path) -> None:
    path = write(tmp_path, pairs(12))  # by WfFormat's names each task is of a type of its own
    data = json.loads(path.read_text())
    for row in data["workflow"]["execution"]["tasks"]:
        del row["command"]
    path.write_text(json.dumps(data))
    done = inside("predict", path, "--cluster", tmp_path / "rig.toml", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "and 12 shorter types of tasks: --format json" in done.stdout
