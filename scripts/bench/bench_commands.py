"""Time and memory of every command that reads a run, on ensembles of real DAGs; `make
bench-commands`.

The ensembles are made from the WfInstances below TRACEHINT_DATA (`--bundle`: any bundle instead).
Prints Markdown: whole processes, start-up included, one run each; on a machine that does other
things as well, only CPU s are of use.
"""

from __future__ import annotations

import argparse
import math
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from scripts.bench.measure import run

TRACEHINT = (sys.executable, "-m", "tracehint")
FINDINGS = {"lint": (0, 1), "diff": (0, 1)}  # exit codes of those that tell by them what they found
# Name -> arguments. `{run}` is the bundle; `hints` comes before what reads its output.
COMMANDS = {
    "analyze": "analyze {run} --format parquet -o analysis --force",
    "hints": "hints {run} -o hints.json --force",
    "lint": "lint {run} -o lint.txt --force",
    "report": "report {run} -o run.html --force",
    "graph": "graph {run} -o run.dot --force",
    "diff": "diff {run} {run} -o diff.txt --force",
    "emit": "emit hints.json --store xattr --like {run} -o hints.sh --force",
    "score": "hints {run} --score {run}",
    "anonymize": "anonymize {run} -o other.trace --key k --force",
    "wfformat": "export {run} --to wfformat -o run.wf --force",
    "prov": "export {run} --to prov -o run.prov --force",
    "ro-crate": "export {run} --to ro-crate -o crate --force",
    "perfetto": "export {run} --to perfetto -o run.perfetto --force",
    "graphml": "export {run} --to graphml -o run.graphml --force",
    "parquet": "export {run} --to parquet -o tables --force",
}


def ensemble(folder: Path, tasks: int) -> Path:
    """A bundle of at least that many tasks: copies of real workflows side by side."""
    source = Path(os.environ["TRACEHINT_DATA"]) / "wfinstances"
    graph, bundle = folder / f"{tasks}.json", folder / f"{tasks}.trace"
    inputs = sorted(source.glob("*-001.json*"))
    maker = [sys.executable, source / "make_ensemble.py", "--tasks", str(tasks), "-o", graph]
    subprocess.run([*maker, *inputs], check=True, capture_output=True)
    cost = run([*TRACEHINT, "import", graph, "-o", bundle], folder)
    line(f"{tasks:,} tasks", "import", cost.wall_s, cost.cpu_s, cost.peak_mib)
    graph.unlink()
    return bundle


def line(label: str, name: str, wall: float, cpu: float, peak: float) -> None:
    print(f"| {label} | {name} | {wall:.1f} | {cpu:.1f} | {peak:.0f} |", flush=True)


def exponents(sizes: list[int], seconds: dict[str, list[float]]) -> None:
    """CPU time as a power of the tasks, from the first size to the last; the goal is 1.1."""
    print("\n| command | CPU s grow like tasks^ |\n|---|---|")
    for command, spent in seconds.items():
        power = math.log(spent[-1] / spent[0]) / math.log(sizes[-1] / sizes[0])
        print(f"| {command} | {power:.2f} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--tasks", type=int, action="append", help="default: 10000, 40000 and 100000"
    )
    parser.add_argument("--bundle", type=Path, action="append", default=[])
    parser.add_argument("--command", action="append", choices=[*COMMANDS], help="default: all")
    args = parser.parse_args()
    os.environ["TRACEHINT_CACHE"] = "off"  # each command as if it were the first on the bundle
    if not args.bundle and "TRACEHINT_DATA" not in os.environ:
        parser.error("TRACEHINT_DATA does not name a folder with wfinstances/; give --bundle")
    print("| run | command | wall s | CPU s | peak MiB |\n|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        sizes = [] if args.bundle else args.tasks or [10_000, 40_000, 100_000]
        runs = {path.name: path.resolve() for path in args.bundle}
        runs |= {f"{tasks:,} tasks": ensemble(folder, tasks) for tasks in sizes}
        seconds: dict[str, list[float]] = {}
        for label, bundle in runs.items():
            for command in args.command or COMMANDS:
                words = [word.format(run=bundle) for word in COMMANDS[command].split()]
                cost = run([*TRACEHINT, *words], folder, ok=FINDINGS.get(command, (0,)))
                line(label, command, cost.wall_s, cost.cpu_s, cost.peak_mib)
                seconds.setdefault(command, []).append(cost.cpu_s)
        if len(sizes) > 1:
            exponents(sizes, seconds)


if __name__ == "__main__":
    main()
