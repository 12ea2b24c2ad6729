"""Cost that a collector (`make bench-calls`) or setting hints (`make bench-creation`) adds to small
calls and processes, in runs that alternate with plain ones.

python -m scripts.bench.bench_calls --collector preload [--release trixie]
python -m scripts.bench.bench_calls --hints --folder /dev/shm
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from scripts.bench.load import prefer
from tests.support.hints import rule, save

SOURCE = Path(__file__).with_name("calls.c")
_SCRIPTS = Path(__file__).parents[1]
LIBC = [str(_SCRIPTS / "libc.sh"), str(_SCRIPTS.parent / "build" / "libc")]
OPENS = ("open + close", "in a thread: open + close")
MADE = "make + remove"
HINTED, OWN = f"{MADE} with a hint", f"{MADE} with an own attribute"
GOALS_NS = {MADE: "", HINTED: "", OWN: "", **dict.fromkeys(OPENS, 900)}  # 60 for all others
GOALS_RATIO = {"fork + exit": 1.15, "spawn of /bin/true": 1.3, "program of 20 files": 1.3}
HINTS_NS = {HINTED: 3_000, "read": 25, "spawn of /bin/true": 400_000}  # without the store's call


def nanoseconds(folder: Path, words: list[str]) -> dict[str, float]:
    """Run the program by these words; return call -> nanoseconds."""
    out = folder / "out.txt"
    subprocess.run(words, cwd=folder, env={**os.environ, "OUT": str(out)}, check=True)
    return {
        name: float(value)
        for name, _, value in (line.partition("\t") for line in out.read_text().splitlines())
    }


def compiled(folder: Path) -> str:
    """Compile the program; return its path."""
    program = str(folder / "calls")
    words = ["gcc", "-O2", "-Wall", "-Wextra", "-pthread", str(SOURCE), "-o", program]
    subprocess.run(words, check=True)
    return program


def main() -> None:
    """Measure pairs of runs and print the table of medians."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--collector", default="preload")
    parser.add_argument("--hints", action="store_true", help="with hints, and no recording")
    parser.add_argument("--folder", type=Path, help="where files are made")
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--release", help="with the C library of this one (make engines)")
    given = parser.parse_args()
    libc = [*LIBC, given.release] if given.release else []
    plain, changed = [], []
    with tempfile.TemporaryDirectory(prefix="calls-", dir=given.folder) as name:
        folder, load, preferred = Path(name).resolve(), os.getloadavg()[0], prefer()
        program = compiled(folder)
        ours = [*libc, sys.executable, "-m", "tracehint"]
        if given.hints:
            rules = save(folder, rule("h_{n}.dat", DP="local"))
            ours += ["run", "--no-record", "--quiet", "--hints", str(rules), "--store", "xattr"]
        else:
            ours += f"record --quiet --force -o t.trace --collector {given.collector}".split()
        for _ in range(given.pairs):
            plain.append(nanoseconds(folder, [*libc, program]))
            changed.append(nanoseconds(folder, [*ours, "--", program]))
    print(f"load {load:.1f}{', in a preferred group' * preferred}; medians of {given.pairs} pairs,")
    print("each the least of 120 batches\n\n| | native | added | goal, ns |\n|---|---|---|---|")
    for call in plain[0]:
        pairs = [(a[call], b[call]) for a, b in zip(plain, changed, strict=True)]
        native = statistics.median(a for a, _ in pairs)
        if call in GOALS_RATIO and not given.hints:
            ratio, goal = statistics.median(b / a for a, b in pairs), GOALS_RATIO[call]
            print(f"| {call} | {native / 1e3:,.0f} us | {ratio:.2f} x | {goal} x |")
            continue
        own = [a[OWN] - a[MADE] if given.hints and call == HINTED else 0.0 for a in plain]
        added = statistics.median(b - a - store for (a, b), store in zip(pairs, own, strict=True))
        goal_ns = HINTS_NS.get(call, "") if given.hints else GOALS_NS.get(call, 60)
        print(f"| {call} | {native:,.0f} ns | {added:,.0f} ns | {goal_ns} |")


if __name__ == "__main__":
    main()
