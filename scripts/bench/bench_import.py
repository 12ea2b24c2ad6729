"""What `tracehint import` costs on large input; `make bench-import`.

Whole commands, median of 3; memory is the largest of any one process. The WfFormat file (1,000,000
tasks, about 900 MB) is made from the instances below TRACEHINT_DATA and left out without them.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
from scripts.bench.measure import median, run
from tests.support.darshan_logs import File, segments, write_log

_RUNS = 3


def wfformat(folder: Path) -> Path | None:
    """A million tasks: real instances, many times over."""
    data = Path(os.environ.get("TRACEHINT_DATA") or "/nonexistent") / "wfinstances"
    instances = sorted(data.glob("*.json.gz"))
    if not instances:
        return None
    path = folder / "million.json"
    command = [sys.executable, data / "make_ensemble.py", "--tasks", "1000000", "-o", path]
    subprocess.run([*command, *instances], check=True, capture_output=True)
    return path


def one_log(folder: Path) -> Path:
    """A million DXT segments of 16 files at random places, none of which continues another."""
    dice = np.random.default_rng(1)
    path = folder / "big.darshan"
    files = [
        File(f"/scratch/f{k}", reads=segments(dice.integers(0, 1 << 30, 62_500), 4096))
        for k in range(16)
    ]
    write_log(path, files)
    return path


def many_logs(folder: Path) -> Path:
    """5,000 logs of jobs that read one file and write one each."""
    logs = folder / "logs"
    logs.mkdir()
    common = File("/scratch/in", reads=segments(np.arange(20) * 4096, 4096))
    for k in range(5000):
        own = File(f"/scratch/out{k}", writes=segments(np.arange(10) * 4096, 4096))
        write_log(logs / f"u_app_id{k}-{1000 + k}_1-1-1-1_1.darshan", [common, own], jobid=k)
    return logs


ROWS: dict[str, Callable[[Path], Path | None]] = {
    "WfFormat, 1,000,000 tasks": wfformat,
    "Darshan, 1,000,000 DXT segments": one_log,
    "Darshan, 5,000 logs": many_logs,
}


def main() -> None:
    for name, make in ROWS.items():
        with tempfile.TemporaryDirectory() as temporary:
            folder = Path(temporary)
            source = make(folder)
            if source is None:
                print(f"{name}: left out, TRACEHINT_DATA names no instances")
                continue
            command: list[str | Path] = [
                sys.executable, "-m", "tracehint", "import", source, "-o", folder / "b.trace",
                "--force", "--quiet",
            ]  # fmt: skip  # a table
            cost = median([run(command) for _ in range(_RUNS)])
            print(
                f"{name}: {cost.wall_s:.1f} s wall, {cost.cpu_s:.1f} s CPU, {cost.peak_mib:.0f} MiB"
            )


if __name__ == "__main__":
    main()
