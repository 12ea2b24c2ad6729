"""What recording adds to the Montage run of the tutorial; `make bench-montage`.

Alternating pairs of the same Makeflow run, plain and recorded with eBPF; medians of the
processor time of all processes. Then how long `profile` works after the command has ended,
and the size of the bundle.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from scripts.bench.measure import median, pairs

DATASET = Path(__file__).parents[2] / "datasets" / "montage"
FRESH = "rm -rf run && cp -r base run && cd run && exec "


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--columns", type=int, default=4, help="of tiles")
    parser.add_argument("--rows", type=int, default=3)
    parser.add_argument("--convert", choices=("now", "later"), default="now", help="as of record")
    args = parser.parse_args()
    # else Python would compile our files anew in each run, which no user's does
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        base = work / "base"
        for script, target in (("make_tiles.py", base / "archive"), ("make_workflow.py", base)):
            size = [f"--columns={args.columns}", f"--rows={args.rows}"]
            subprocess.run([sys.executable, DATASET / script, target, *size], check=True)
        flow = "makeflow montage.makeflow"
        tracehint = f"{sys.executable} -m tracehint"
        record = f"{tracehint} record --collector ebpf --force --quiet -o ../r.trace"
        record += f" --option convert={args.convert} -- {flow}"
        recorded, plain = pairs(
            ["sh", "-c", FRESH + record], ["sh", "-c", FRESH + flow], args.pairs, work
        )
        ratios = [a.cpu_s / b.cpu_s for a, b in zip(recorded, plain, strict=True)]
        print("| | CPU s | wall s |\n|---|---|---|")
        for label, costs in (("plain", plain), ("recorded", recorded)):
            print(f"| {label} | {median(costs).cpu_s:.2f} | {median(costs).wall_s:.2f} |")
        print(
            f"\nCPU ratio, median of {args.pairs} pairs: {statistics.median(ratios):.3f}"
            f" ({min(ratios):.3f} to {max(ratios):.3f})"
        )
        _profile(f"{tracehint} profile --force -o ../p.trace -- {flow}", work)


def _profile(command: str, work: Path) -> None:
    """How long `profile` works after the command, and how large its bundle is."""
    begin = time.perf_counter()
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    subprocess.run(["sh", "-c", FRESH + command], cwd=work, check=True, **quiet)
    wall = time.perf_counter() - begin
    run = json.loads((work / "p.tracehint" / "analysis.json").read_text())["run"]
    print(f"profile: {wall - run['duration_s']:.2f} s more than the command's own time")
    trace_bytes = sum(p.stat().st_size for p in (work / "p.trace").rglob("*") if p.is_file())
    print(f"bundle: {trace_bytes:,} bytes; lost events: {run['lost_events']}")


if __name__ == "__main__":
    main()
