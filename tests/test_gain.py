"""The gain of a remedy is the simulated run without it minus the one with it."""

from __future__ import annotations

import importlib
import json
import random
from pathlib import Path

import numpy as np
import pytest
from datasets.synthetic import write

from tests.support.bundles import RunBuilder
from tests.support.cli import tracehint
from tests.support.gains import check_outputs
from tests.support.runs import parse_run
from tracehint.analyzer.analyze import analyze
from tracehint.analyzer.predict.cluster_file import parse_cluster, read_cluster
from tracehint.app.profile import Work
from tracehint.app.user_cluster import where_of
from tracehint.commands.profile import _propose_commands
from tracehint.hintgen.gain import NO_CHANGE, Baseline, Gain
from tracehint.hintgen.hints.model import HintFile
from tracehint.hintgen.lint import run_rules
from tracehint.hintgen.lint.context import Context
from tracehint.hintgen.lint.formats import Info, render
from tracehint.hintgen.summary.gain import Simulation, Where
from tracehint.hintgen.summary.rule_gains import with_gains
from tracehint.schemas.store import read_bundle

MB = 1 << 20
RUNS = Path(__file__).parent / "runs"
SLOW = Where(
    parse_cluster(
        'base = "moosefs"\nname = "slow"\n[nodes]\ncount = 4\ncores = 2\nlink_mbit = 50\n', "slow"
    )
)
CLUSTERS = {"slow": SLOW} | {
    name: Where(read_cluster(name)) for name in ("moosefs", "nfs", "local", "cephfs", "striped")
}


def chains(count: int = 6, size: int = 40 * MB, work_s: float = 0.2) -> RunBuilder:
    """Return a run of chains; in each, a file goes from the first task to the second."""
    run = RunBuilder(cwd="/proj")
    make = run.process(["make"], start=0.0, end=100.0)
    start = 1.0 + work_s
    for k in range(count):
        first = run.process(["gen", str(k)], parent=make, start=0.1, end=0.1 + work_s)
        second = run.process(["use", str(k)], parent=make, start=start, end=start + work_s)
        middle, out = run.file(f"/proj/mid_{k}.dat"), run.file(f"/proj/out_{k}.dat")
        run.write(first, middle, 0, size, at=0.1 + work_s / 2)
        run.read(second, middle, 0, size, at=start + work_s / 4)
        run.write(second, out, 0, 1000, at=start + work_s / 2)
    return run


def generated(seed: int) -> RunBuilder:
    """Return a random run: stages of tasks that read files of earlier stages."""
    rng = random.Random(seed)
    run, made = RunBuilder(cwd="/proj"), list[tuple[int, int]]()
    make = run.process(["make"], start=0.0, end=200.0)
    for stage in range(rng.randint(2, 4)):
        start, fresh = 10.0 * stage, list[tuple[int, int]]()
        for k in range(rng.randint(1, 7)):
            task = run.process(
                [f"step{stage}", str(k)], parent=make, start=start, end=start + rng.uniform(0.1, 5)
            )
            for file, size in rng.sample(made, min(len(made), rng.randint(0, 4))):
                part = size if rng.random() < 0.7 else size // 3
                run.read(task, file, 0, part, at=start + 0.02)
            size = rng.choice([10_000, MB, 30 * MB])
            file = run.file(f"/proj/s{stage}_{k}.dat")
            run.write(task, file, 0, size, at=start + 0.05)
            fresh.append((file, size))
        made += fresh
    return run


def many_stages() -> RunBuilder:
    """Return more groups of files than are simulated, of nearly equal sizes."""
    run = RunBuilder(cwd="/proj")
    make = run.process(["make"], start=0.0, end=400.0)
    for k in range(40):
        name, at = chr(97 + k // 26) + chr(97 + k % 26), 3.0 * k
        size = (30 + k % 7) * MB
        file = run.file(f"/proj/{name}.dat")
        first = run.process([f"gen{name}"], parent=make, start=at, end=at + 1)
        second = run.process([f"use{name}"], parent=make, start=at + 1, end=at + 2)
        run.write(first, file, 0, size, at=at + 0.5)
        run.read(second, file, 0, size, at=at + 1.5)
    return run


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "cluster"),
    [*(("six_patterns", cluster) for cluster in CLUSTERS), ("montage", "slow"), ("montage", "nfs")],
)
def test_invariants_of_written_runs(name: str, cluster: str, tmp_path: Path) -> None:
    run = parse_run((RUNS / f"{name}.txt").read_text())
    assert check_outputs(run.analysis(), None, CLUSTERS[cluster], tmp_path) > 0


@pytest.mark.slow
@pytest.mark.parametrize("name", ["append_retry", "pipeline", "scatter_gather"])
def test_invariants_of_worked_examples(name: str, tmp_path: Path) -> None:
    bundle = importlib.import_module(f"tests.examples.{name}").build().bundle(tmp_path)
    check_outputs(analyze(bundle), bundle, SLOW, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_invariants_of_generated_runs(seed: int, tmp_path: Path) -> None:
    bundle = generated(seed).bundle(tmp_path)
    where = list(CLUSTERS.values())[seed % len(CLUSTERS)]
    check_outputs(analyze(bundle), bundle, where, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("size", ["many tasks", "many groups"])
def test_invariants_of_a_large_run_of_which_not_all_is_simulated(size: str, tmp_path: Path) -> None:
    if size == "many tasks":
        bundle = read_bundle(write(tmp_path / "run.trace", 300))
    else:
        bundle = many_stages().bundle(tmp_path)
    assert check_outputs(analyze(bundle), bundle, SLOW, tmp_path) > 0


def test_a_local_file_of_a_chain_saves_its_traffic_and_time(tmp_path: Path) -> None:
    simulation = Simulation(analyze(chains().bundle(tmp_path)), SLOW)
    base, gain = simulation.baseline, simulation.all
    assert (base.cluster, base.nodes) == ("slow", 4)
    assert gain.significant and gain.makespan_s > 0.5 * base.makespan_s
    assert gain.network_bytes > 0.9 * base.network_bytes
    assert "Makespan can fall by" in simulation.lines()[0]
    assert "network traffic" in gain.text(base)


def test_without_a_remedy_nothing_is_saved(tmp_path: Path) -> None:
    simulation = Simulation(analyze(chains().bundle(tmp_path)), SLOW)
    (none,) = simulation.gains([np.array([], np.int64)])
    assert none is not None and not none.pays(simulation.baseline)
    assert abs(none.makespan_s) < 0.02 * simulation.baseline.makespan_s


@pytest.mark.parametrize(
    ("run", "where", "reason"),
    [
        (chains(2, 1000, 20.0), SLOW, "compute-bound"),
        (chains(), Where(SLOW.cluster.with_nodes(1)), "the cluster has one node"),
        (chains(0), SLOW, "no task"),
    ],
)
def test_a_run_that_gains_nothing_says_so_and_why(
    run: RunBuilder, where: Where, reason: str, tmp_path: Path
) -> None:
    first = Simulation(analyze(run.bundle(tmp_path)), where).lines()[0]
    assert reason in first and ("No significant" in first or "No gain simulated" in first)


def test_inside_the_uncertainty_there_is_no_significant_change() -> None:
    base = Baseline("c", 4, 100.0, 1000 * MB)
    small = Gain(3.0, -4.0, 10.0, 20 * MB, False)
    assert not small.pays(base) and small.text(base) == NO_CHANGE


def test_the_number_of_nodes_is_not_the_number_of_tasks_at_one_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "")
    found = [
        where_of(None, None, analyze(chains(count).bundle(tmp_path / str(count))))
        for count in (2, 9)
    ]
    assert {where.cluster.count for where in found} == {5}
    assert all(where.assumed for where in found)


@pytest.mark.slow
@pytest.mark.parametrize("store", ["nfs", "striped"])
def test_a_store_of_servers_apart_gains_by_files_staged_on_the_nodes(
    store: str, tmp_path: Path
) -> None:
    """The intermediate files stay on their nodes: almost none of their bytes are transferred."""
    where = where_of(store, None, analyze(chains(1).bundle(tmp_path / "one")))
    simulation = Simulation(analyze(chains().bundle(tmp_path / "run")), where)
    base, gain = simulation.baseline, simulation.all
    assert gain.significant and gain.network_bytes > 0.9 * base.network_bytes
    assert "node-local storage" in " ".join(simulation.lines())
    found = run_rules(Context(simulation.analysis, where=where), ["TP003"])
    (fix,) = {f.fix for f in found}
    emit = "tracehint emit plan.json --workflow-engine json -o placement.json"
    assert fix == f"tracehint plan RUN.trace --cluster {store} -o plan.json && {emit}"
    assert not where.takes_hints
    simulation.analysis.run["command"] = ["makeflow", "-T", "slurm", "w.mf"]
    (finding,) = run_rules(Context(simulation.analysis, where=where), ["TP003"])
    emit = "tracehint emit plan.json w.mf --workflow-engine slurm --local-dir /tmp -o jobs.sh"
    assert finding.fix.endswith(f" && {emit}")
    simulation.analysis.run["command"] = ["snakemake"]
    (finding,) = run_rules(Context(simulation.analysis, where=where), ["TP003"])
    assert finding.fix.startswith('rule gen:\n    group: "gen-use"\n')
    text = render("text", [finding], Info(tool="t", subject="s", width=40))
    assert '    rule gen:\n        group: "gen-use"\n' in text


def test_a_run_with_hints_is_not_proposed_on_a_store_that_takes_none(tmp_path: Path) -> None:
    saved = chains().save(tmp_path / "run.trace")
    work = Work(saved, tmp_path / "run.tracehint", cluster="nfs")
    assert work.lint.simulation.all.pays(work.lint.simulation.baseline)
    first, *steps = _propose_commands(work)
    assert "report" in first and "--hints" not in " ".join(steps)
    assert steps[0].startswith("tracehint plan ") and "--cluster nfs" in steps[0]


@pytest.mark.parametrize(
    ("fstype", "cluster"),
    [
        ("nfs4", "nfs"),
        ("lustre", "striped"),
        ("fuse.mfs", "moosefs"),
        ("ext4", "moosefs"),
        ("fuse.glusterfs", "moosefs"),
    ],
)
def test_the_store_is_that_of_the_recorded_mount(
    fstype: str, cluster: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "")
    run = chains(2)
    saved = run.save(tmp_path / "run.trace")
    path = saved / "manifest.json"
    manifest = json.loads(path.read_text())
    mount = {"path": "/proj", "fstype": fstype, "source": "server:/proj"}
    manifest["hosts"][0]["mounts"] = [{"path": "/", "fstype": "ext4", "source": "a"}, mount]
    path.write_text(json.dumps(manifest))
    where = where_of(None, None, analyze(read_bundle(saved)), saved)
    assert (where.cluster.name, where.cluster.count, where.assumed) == (cluster, 5, True)
    assert ("--store lustre" in where.remark) == (fstype == "lustre")
    assert where.takes_hints == (fstype in ("fuse.mfs", "ext4"))


def test_nodes_come_from_the_batch_system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, text in (("sbatch", ""), ("sinfo", "printf 'a idle\\nb mixed\\nc down*\\n'")):
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.delenv("SLURM_JOB_NUM_NODES", raising=False)
    where = where_of(None, None, analyze(chains(2).bundle(tmp_path / "run")))
    assert where.cluster.count == 2
    assert where.source == "built-in model, nodes of sinfo"


def test_a_run_without_files_has_rules_and_gains_of_nothing(tmp_path: Path) -> None:
    run = RunBuilder(cwd="/proj")
    run.process(["false"], start=0.0, end=1.0)
    simulation = Simulation(analyze(run.bundle(tmp_path)), SLOW)
    assert with_gains(HintFile((), {}, ()), simulation).rules == ()


def test_the_cluster_of_tracehint_toml_takes_the_rules_of_several_runs(tmp_path: Path) -> None:
    for name, count in (("a", 2), ("b", 3)):
        chains(count).save(tmp_path / f"{name}.trace")
    (tmp_path / "mine.toml").write_text('base = "moosefs"\nname = "mine"\n[nodes]\ncount = 7\n')
    (tmp_path / "tracehint.toml").write_text('cluster = "mine.toml"\n')
    done = tracehint("hints", "a.trace", "b.trace", "--format", "json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["baseline"]["nodes"] == 7
