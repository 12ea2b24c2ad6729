"""Time and memory of `tracehint analyze` on generated runs; `make bench-analyze`.

Prints a Markdown table: whole-process medians, start-up included. Sizes are
given in tasks; every task makes about 6.4 accesses (datasets/synthetic.py).
`--large` adds the run of 1,000,000 tasks, `--extents` the run of 100M extents.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from tests.bench.measure import median, run

TRACEHINT = [sys.executable, "-m", "tracehint"]
REFERENCES = {
    "networkx": """
import sys, networkx as nx, pyarrow.parquet as pq, glob
g = nx.DiGraph()
for f in glob.glob(sys.argv[1] + "/extents/*/*.parquet"):
    t = pq.read_table(f, columns=["proc", "file", "op", "bytes"]).to_pydict()
    for p, x, o, b in zip(*t.values()):
        g.add_edge(("t", p), ("f", x), bytes=b) if o == "write" else g.add_edge(
            ("f", x), ("t", p), bytes=b)
print(sum(1 for n in g if n[0] == "f" and g.out_degree(n) > 1))
""",
    "pandas group-by": """
import sys, pandas as pd, glob
t = pd.concat(pd.read_parquet(f, columns=["proc", "file", "op", "bytes"])
              for f in glob.glob(sys.argv[1] + "/extents/*/*.parquet"))
print(t.groupby(["file", "op"]).agg({"proc": "nunique", "bytes": "sum"}).shape)
""",
}


def bundle(folder: Path, tasks: int, pieces: int = 1) -> Path:
    """A generated bundle of about that many tasks."""
    from tracehint.datasets.synthetic import TASKS_PER_UNIT, write

    return write(folder / f"{tasks}x{pieces}.trace", max(1, tasks // TASKS_PER_UNIT), pieces)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--large", action="store_true")
    parser.add_argument("--extents", action="store_true")
    args = parser.parse_args()
    cases = [(280, 1, "json"), (10_000, 1, "json"), (100_000, 1, "json"), (100_000, 1, "parquet")]
    if args.large:
        cases.append((1_000_000, 1, "parquet"))
    if args.extents:
        cases.append((1_571_000, 10, "parquet"))
    print("| tasks | extents per access | program | wall s | CPU s | peak MiB |")
    print("|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for tasks, pieces, form in cases:
            path = bundle(folder, tasks, pieces)
            command = [
                *TRACEHINT, "analyze", path, "--format", form, "-o", folder / "out", "--force"
            ]  # fmt: skip
            programs: dict[str, list[str | Path]] = {f"analyze, {form}": command}
            if form == "json" and tasks <= 100_000:
                programs |= {n: [sys.executable, "-c", c, path] for n, c in REFERENCES.items()}
            runs = {n: [run(c) for _ in range(args.runs)] for n, c in programs.items()}
            for label, costs in runs.items():
                cost = median(costs)
                print(
                    f"| {tasks:,} | {pieces} | {label} | {cost.wall_s:.2f} | {cost.cpu_s:.2f} "
                    f"| {cost.peak_mib:.0f} |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
