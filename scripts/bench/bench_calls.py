"""`make bench-calls`: what a collector adds to small calls and processes, alternating with none.

python -m scripts.bench.bench_calls --collector preload
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

SOURCE = Path(__file__).with_name("calls.c")
GOAL_NS = {"open + close": 500}  # 30 for all others
GOAL_RATIO = {"fork + exit": 1.15, "spawn of /bin/true": 1.3, "program of 20 files": 1.3}


def nanoseconds(folder: Path, words: list[str]) -> dict[str, float]:
    """Call -> nanoseconds of the program, started by these words."""
    out = folder / "out.txt"
    subprocess.run(words, cwd=folder, env={**os.environ, "OUT": str(out)}, check=True)
    return {
        name: float(value)
        for name, _, value in (line.partition("\t") for line in out.read_text().splitlines())
    }


def main() -> None:
    """Measure pairs and print the table of medians."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--collector", default="preload")
    parser.add_argument("--pairs", type=int, default=5)
    given = parser.parse_args()
    plain, recorded = [], []
    with tempfile.TemporaryDirectory(prefix="calls-") as name:
        folder, load = Path(name), os.getloadavg()[0]
        program = str(folder / "calls")
        subprocess.run(["gcc", "-O2", "-Wall", "-Wextra", SOURCE, "-o", program], check=True)
        for number in range(given.pairs):
            plain.append(nanoseconds(folder, [program]))
            words = [sys.executable, "-m", "tracehint", "record", "--quiet"]
            words += ["--collector", given.collector, "-o", f"{number}.trace", "--", program]
            recorded.append(nanoseconds(folder, words))
    print(f"load {load:.1f}; medians of {given.pairs} pairs, each the least of 120 batches\n")
    print("| | native | added | goal |\n|---|---|---|---|")
    for call in plain[0]:
        native = statistics.median(run[call] for run in plain)
        added = statistics.median(b[call] - a[call] for a, b in zip(plain, recorded, strict=True))
        if call in GOAL_RATIO:
            ratio = statistics.median(
                b[call] / a[call] for a, b in zip(plain, recorded, strict=True)
            )
            print(f"| {call} | {native / 1e3:,.0f} us | {ratio:.2f} x | {GOAL_RATIO[call]} x |")
        else:
            print(f"| {call} | {native:,.0f} ns | {added:,.0f} ns | {GOAL_NS.get(call, 30)} ns |")


if __name__ == "__main__":
    main()
