"""Engines in a separate folder, fetched once by scripts/engines.sh.

The folder is `build/engines`, or TRACEHINT_ENGINES (a cache that outlives a checkout).
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.patience import PATIENCE_S

ROOT = Path(__file__).parent.parent.parent


SNAKEMAKES = (
    "8.0.0",
    "8.20.0",
    "8.30.0",
    "9.0.0",
)  # besides the newest, which the tests' own Python has


def engine(name: str) -> Path:
    """Return the program of an engine: nextflow, cwltool, python (with Parsl, Dask, Pegasus' API),
    or snakemake-VERSION/bin/snakemake, with the executors that submit jobs.

    Skips with the reason if it cannot be fetched.
    """
    folder = Path(os.environ.get("TRACEHINT_ENGINES") or ROOT / "build" / "engines")
    for tool in ("java", "mvn") if name in ("nextflow", "bin/hdfs") else ():
        if not shutil.which(tool):
            pytest.skip(f"{tool} is not installed")
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # several pytest workers: one fetches
        done = subprocess.run(
            [ROOT / "scripts" / "engines.sh", folder, name],
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
        )
    if done.returncode:
        pytest.skip(f"{name} cannot be fetched: {done.stdout[-500:]}{done.stderr[-500:]}")
    return folder / name if "/" in name else folder / "bin" / name
