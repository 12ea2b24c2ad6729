"""Network traffic of a recording: jobs of a real Slurm on nodes that share a real MooseFS.

The criterion is bytes on the links, not seconds.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support import slurm
from tests.support.cli import TRACEHINT
from tests.support.needs import needs_preload
from tests.support.patience import until
from tracehint.collectors.registry import check
from tracehint.schemas.store import read_bundle

pytestmark = [pytest.mark.slow, pytest.mark.engine, pytest.mark.store, needs_preload()]
RUN = [*TRACEHINT, "run", "--"]
MOST = 1_000_000  # bytes that a recorded command may transfer
QUIET_S = 1.5  # until the clients of the store are idle
JOB = ("srun", "-w", "A", "sh", "-c", "sort in >out; cat out >out2")


@dataclass(frozen=True)
class Site(slurm.Site):
    """A site with `work`, a directory of the store."""

    work: Path

    def moved(self, *command: str, env: Mapping[str, str] = {}) -> tuple[int, str]:
        """Return the bytes that all links carried for a command on the head, and its output."""
        self.slurm.wait()
        time.sleep(QUIET_S)
        before = self.bed.received() + self.bed.returned()
        said = self.slurm.run(*command, cwd=self.work, env=env).stdout
        self.slurm.wait()
        time.sleep(QUIET_S)
        return self.bed.received() + self.bed.returned() - before, said


@pytest.fixture(scope="module")
def site(site: slurm.Site) -> Site:
    work = site.bed.mount / "w"
    work.mkdir()
    (work / "in").write_text("a\n" * 500)
    return Site(site.bed, site.slurm, work)


def test_a_recorded_job_moves_hardly_more_than_a_plain_one(site: Site) -> None:
    """A plain job moves about 40 kB; the bundle of the run itself, also in the store, is 200 kB."""
    moved, _ = site.moved(*RUN, *JOB)
    assert moved < MOST
    bundles = sorted((site.work / ".tracehint/runs").glob("*.trace"))
    hosts = {host.name for host in read_bundle(bundles[0]).manifest.hosts}
    assert "A" in hosts


@pytest.mark.parametrize("collector", ["preload", "ebpf", "strace"])
def test_a_recording_on_the_store_is_written_at_its_end(
    site: Site, collector: str, tmp_path: Path
) -> None:
    """While the command runs, the bundle holds only its manifest, however much the command does."""
    if not check(collector).usable:
        pytest.skip(f"{collector} cannot run here")
    loop = "i=0; while [ $i -lt 1000 ]; do read x </etc/passwd; i=$((i+1)); done; ls -lR r.trace"
    record = ["record", "--quiet", "--collector", collector, "--force", "-o", "r.trace", "--"]
    env = {"TMPDIR": str(tmp_path)}
    moved, said = site.moved(*TRACEHINT, *record, "sh", "-c", loop, env=env)
    assert moved < MOST
    names = {line.split()[-1] for line in said.splitlines() if line.startswith("-")}
    assert names == {"manifest.json"}
    assert not list(tmp_path.iterdir())
    bundle = read_bundle(site.work / "r.trace")
    assert bundle.manifest.complete and not bundle.problems
    rows = bundle.tables["opens"].to_pylist()
    assert sum(row["path"] == b"/etc/passwd" and row["read_bytes"] > 0 for row in rows) >= 1000


ENDS = {  # how a job ends early -> its script, the command, whether it leaves a recording
    "scancel": ("exec sleep 300", "scancel {job}", True),
    "all killed": ("kill -9 $PPID $$", "true {job}", False),  # with the recorder, the job's parent
}


@pytest.mark.parametrize("how", ENDS)
def test_nothing_is_left_on_the_node_of_a_job_that_ends_early(
    site: Site, tmp_path: Path, how: str
) -> None:
    script, end, arrives = ENDS[how]
    local = tmp_path / "local"
    local.mkdir()
    work = site.work / how.replace(" ", "_")
    work.mkdir()
    (work / "job").write_text(f"#!/bin/sh\necho >begun\n{script}\n")
    outer = (
        "job=$(sbatch --parsable -w A job); until [ -e begun ]; do sleep 0.2; done; "
        f"{end.format(job='$job')}; while squeue -h | grep -q .; do sleep 0.2; done"
    )
    env = {"TMPDIR": str(local)}
    said = site.slurm.run(*RUN, "sh", "-c", outer, cwd=work, env=env).stderr
    assert ("1 recording of jobs on 1 host joined" in said) == arrives, said
    assert ("1 of 1 job left no recording" in said) != arrives, said
    until(lambda: not list(local.iterdir()), "the node is clean")
    assert not list(Path("/dev/shm").glob("*tracehint*"))  # others' files appear and vanish there
