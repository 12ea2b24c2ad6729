"""Shared by the Slurm tests: the environment of sbatch jobs and their merged bundles."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from tests.e2e.support import Run, analyze, tracehint
from tests.support.slurm import Cluster

PROGRAM = f"{sys.executable} -m tracehint"


def merged(slurm: Cluster, work: Path, *options: str | Path) -> Run:
    """Merge all bundles of a folder after the jobs have ended. An engine that waits for a job's
    output file ends before the job, whose recorder is still writing."""
    slurm.wait()
    tracehint(
        "merge", *sorted((work / "bundles").glob("*.trace")), "-o", work / "run.trace", *options
    )
    return analyze(work / "run.trace")


def environment(work: Path) -> dict[str, str]:
    """Return the environment that sbatch passes to the jobs."""
    return {
        "TRACEHINT_BUNDLE_DIR": str(work / "bundles"),
        "TRACEHINT_SHARED": str(work),
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
    }
