"""`tracehint analyze` on both backends; `make bench-spark`.

Prints a Markdown table: of generated runs, or with `--bundle` of the given ones, then also for
`--command hints` and `lint`; `--master` as of analyze (two workers: "local-cluster[2,1,2048]").
CPU time is that of all processes: Java and its Python workers belong to the command. Peak memory is
the sum over all processes at one moment (pages that processes share count once), sampled every
50 ms; "driver" is the largest of the Python process that analyzes.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import os
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

_SUBREAPER = 36  # PR_SET_CHILD_SUBREAPER: orphans of the command become ours, with their CPU time


@dataclass(frozen=True)
class Cost:
    """Seconds and MiB of a command with all its processes."""

    wall_s: float
    cpu_s: float
    peak_mib: float
    driver_mib: float


def run(command: list[str], env: dict[str, str], most: int = 0) -> Cost:
    """The cost of one run. Raises RuntimeError when its exit code is more than `most`."""
    begin = time.perf_counter()
    before = os.times()
    process = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=os.environ | env
    )
    peak = driver = 0
    while process.poll() is None:
        sizes = _sizes(process.pid)
        driver = max(driver, sizes.get(process.pid, 0))
        peak = max(peak, sum(sizes.values()))
        time.sleep(0.05)
    wall = time.perf_counter() - begin
    with contextlib.suppress(ChildProcessError):
        while True:
            os.wait()
    after = os.times()
    if not 0 <= process.returncode <= most:
        assert process.stderr is not None
        raise RuntimeError(process.stderr.read().decode()[-2000:])
    cpu = after.children_user + after.children_system
    cpu -= before.children_user + before.children_system
    return Cost(wall, cpu, peak / 1024, driver / 1024)


def _sizes(root: int) -> dict[int, int]:
    """KiB of each process at or below `root`."""
    parents: dict[int, list[int]] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            parent = int((folder / "stat").read_text().rsplit(")", 1)[1].split()[1])
            parents.setdefault(parent, []).append(int(folder.name))
    found, open_ = {}, [root]
    while open_:
        one = open_.pop()
        open_ += parents.get(one, [])
        with contextlib.suppress(OSError, IndexError, ValueError):
            text = Path(f"/proc/{one}/smaps_rollup").read_text()
            found[one] = int(text.split("\nPss:")[1].split()[0])
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--tasks", type=int, nargs="+", default=[1_000, 30_000, 100_000])
    parser.add_argument("--pieces", type=int, nargs="+", default=[1, 30])
    parser.add_argument("--bundle", type=Path, nargs="+", help="measure these")
    parser.add_argument("--command", nargs="+", default=["analyze"])
    parser.add_argument("--master", default="local[*]")
    args = parser.parse_args()
    ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0)
    if args.bundle:
        _given(args)
        return
    from tracehint.datasets.synthetic import TASKS_PER_UNIT, write

    print("| tasks | extents | backend | wall s | CPU s | peak MiB, all | peak MiB, driver |")
    print("|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as name:
        for tasks in args.tasks:
            for pieces in args.pieces:
                units = max(1, tasks // TASKS_PER_UNIT)
                path = write(Path(name) / "b.trace", units, pieces)
                costs: dict[str, list[Cost]] = {"local": [], "spark": []}
                for _ in range(args.runs):
                    for backend, found in costs.items():
                        found.append(_analyze(path, Path(name), backend))
                for backend, found in costs.items():
                    wall, cpu, peak, driver = (
                        statistics.median(getattr(c, f) for c in found)
                        for f in ("wall_s", "cpu_s", "peak_mib", "driver_mib")
                    )
                    print(
                        f"| {units * TASKS_PER_UNIT:,} | {units * 70 * pieces:,} | {backend} "
                        f"| {wall:.1f} | {cpu:.1f} | {peak:.0f} | {driver:.0f} |",
                        flush=True,
                    )


def _given(args: argparse.Namespace) -> None:
    """The table of bundles that are there."""
    print("| bundle | command | backend | wall s | CPU s | peak MiB, all | peak MiB, driver |")
    print("|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as name:
        for path in args.bundle:
            for command in args.command:
                for backend in ("local", "spark"):
                    words = [sys.executable, "-m", "tracehint", command, str(path)]
                    words += ["--backend", backend]
                    words += ["--master", args.master] if backend == "spark" else []
                    words += [] if command == "lint" else ["-o", f"{name}/{command}", "--force"]
                    words += ["--format", "parquet"] if command == "analyze" else []
                    cost = run(
                        words, {"TMPDIR": name, "TRACEHINT_CACHE": "off"}, most=command == "lint"
                    )
                    print(
                        f"| {path.stem} | {command} | {backend} | {cost.wall_s:.1f} "
                        f"| {cost.cpu_s:.1f} | {cost.peak_mib:.0f} | {cost.driver_mib:.0f} |",
                        flush=True,
                    )


def _analyze(path: Path, folder: Path, backend: str) -> Cost:
    command = [
        sys.executable, "-m", "tracehint", "analyze", str(path), "--backend", backend,
        "--format", "parquet", "-o", str(folder / "out"), "--force",
    ]  # fmt: skip  # a table
    return run(command, {"TMPDIR": str(folder)})


if __name__ == "__main__":
    main()
