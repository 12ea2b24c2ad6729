"""`tracehint place` under real engines: Snakemake's rules, and steps and jobs of Slurm.

The store is a table; the tests write its location attribute themselves.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.slurm import Cluster, cluster, missing

pytestmark = [pytest.mark.slow, pytest.mark.engine]

PLACE = f"{sys.executable} -m tracehint place --hosts hosts.toml --store ./store.toml"
STORE = 'name = "fake"\nlocation = "user.where"\n[hints."DP=local"]\nattribute = "user.dp"\n'
WHERE = {"a": "node1", "b": "node2", "c": "10.0.0.2:9422"}
NODES = '[[host]]\nname = "node1"\n[[host]]\nname = "node2"\nalso = ["10.0.0.2"]\n'
SNAKEFILE = """
rule all:
    input: expand("{n}.out", n=["a", "b", "c"])
rule one:
    input: "{n}", "small thing"
    output: "{n}.out"
    shell: "PLACE {input:q} -- sh -c 'echo $NODE > \\"$1\\"' x {output:q}"
"""


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """Three inputs with locations, one without, a host file and a store."""
    (tmp_path / "store.toml").write_text(STORE)
    (tmp_path / "small thing").write_text("x")
    for name, where in WHERE.items():
        (tmp_path / name).write_bytes(bytes(1000))
        try:
            os.setxattr(tmp_path / name, "user.where", where.encode())
        except OSError:
            pytest.skip("no user attributes on the disk of the tests")
    return tmp_path


def test_a_rule_of_snakemake_runs_where_its_input_lies(work: Path) -> None:
    pytest.importorskip("snakemake")
    (work / "hosts.toml").write_text('start = ["env", "NODE={host}", "{argv}"]\n' + NODES)
    (work / "Snakefile").write_text(SNAKEFILE.replace("PLACE", PLACE))
    done = subprocess.run(
        [sys.executable, "-m", "snakemake", "-c", "2"], cwd=work, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    found = {name: (work / f"{name}.out").read_text().strip() for name in WHERE}
    assert found == {"a": "node1", "b": "node2", "c": "node2"}


@pytest.fixture(scope="module")
def slurm() -> Iterator[Cluster]:
    reason = missing()
    if reason:
        pytest.skip(reason)
    with cluster(("node1", "node2")) as started:
        yield started


def test_a_step_of_slurm_runs_where_its_input_lies(slurm: Cluster, work: Path) -> None:
    (work / "hosts.toml").write_text('start = "srun"\n' + NODES)
    steps = [f"{PLACE} {n} -- sh -c 'hostname > \"$1 out\"' x {n}" for n in WHERE]
    (work / "job.sh").write_text("#!/bin/sh\n" + "\n".join(steps) + "\n")
    slurm.sbatch("--nodes=2", "--ntasks=2", "job.sh", cwd=work)
    slurm.wait()
    said = "".join(path.read_text() for path in work.glob("slurm-*.out"))
    found = {name: (work / f"{name} out").read_text().strip() for name in WHERE}
    assert found == {"a": "node1", "b": "node2", "c": "node2"}, said
    assert "1000 B of 1000 B" in said


def test_a_job_of_slurm_is_sent_to_the_printed_node(slurm: Cluster, work: Path) -> None:
    (work / "hosts.toml").write_text('start = "srun"\n' + NODES)
    (work / "job.sh").write_text("#!/bin/sh\nhostname > where\n")
    command = f'sbatch --wait --nodelist="$({PLACE} b c)" job.sh'
    slurm.run("sh", "-c", command, cwd=work)
    assert (work / "where").read_text() == "node2\n"
