"""Shared by the tests on Slurm: what sbatch carries into jobs, and the run of all their bundles."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from tests.e2e.support import Run, analyze, tracehint
from tests.support.slurm import Cluster

PROGRAM = f"{sys.executable} -m tracehint"


def merged(slurm: Cluster, work: Path, *options: str | Path) -> Run:
    """All bundles of a folder as one run, when the jobs have ended: an engine that looks for a
    file that the job makes ends before the job, whose recorder is still writing."""
    slurm.wait()
    tracehint(
        "merge", *sorted((work / "bundles").glob("*.trace")), "-o", work / "run.trace", *options
    )
    return analyze(work / "run.trace")


def environment(work: Path) -> dict[str, str]:
    """What sbatch carries into the jobs."""
    return {
        "TRACEHINT_BUNDLE_DIR": str(work / "bundles"),
        "TRACEHINT_SHARED": str(work),
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
    }
