"""Time and memory of `tracehint analyze` on generated runs; `make bench-analyze`.

Prints Markdown: whole processes, start-up included, medians; ratios against a networkx graph
and a plain pandas group-by of the same data in the same run; a straight line through the cost
from 10^4 to 10^6 tasks. Sizes are given in tasks; every task makes about 6.4 accesses
(datasets/synthetic.py). Where TRACEHINT_DATA names a folder with WfInstances, real workflows joined
to 10,000, 100,000 and 1,000,000 tasks stand beside them. `--extents` adds 10,000,000 accesses with
100,000,000 extents (about ten minutes more and 25 GB of temporary space), `--bundle` any bundle, a
recorded Montage say.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scripts.bench.bench_commands import ensemble
from scripts.bench.measure import Cost, median, run

PYTHON = sys.executable
REFERENCES = {
    "networkx graph": """
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


@dataclass(frozen=True)
class Case:
    """One line: about so many tasks, extents per access, output, runs; more options."""

    tasks: int
    pieces: int
    form: str
    runs: int
    more: tuple[str, ...] = ()
    compared: bool = False  # with the references
    fitted: bool = False  # part of the line through the cost


CASES = (
    Case(280, 1, "json", 5),
    Case(10_000, 1, "parquet", 5, fitted=True),
    Case(30_000, 1, "parquet", 3, fitted=True),
    Case(100_000, 1, "json", 3, compared=True),
    Case(100_000, 1, "parquet", 3, fitted=True),
    Case(300_000, 1, "parquet", 1, fitted=True),
    Case(1_000_000, 1, "parquet", 1, fitted=True),
    Case(157_100, 10, "parquet", 1, ("--memory-limit", "1G")),
)
REAL = (10_000, 100_000, 1_000_000)
EXTENTS = Case(1_571_000, 10, "parquet", 1, ("--memory-limit", "4G"))


def bundle(folder: Path, tasks: int, pieces: int) -> Path:
    """A generated bundle of about that many tasks; made once."""
    from tracehint.datasets.synthetic import TASKS_PER_UNIT, write

    path = folder / f"{tasks}x{pieces}.trace"
    return path if path.exists() else write(path, max(1, tasks // TASKS_PER_UNIT), pieces)


def analyze(path: Path, folder: Path, form: str, *more: str) -> list[str | Path]:
    command: list[str | Path] = [PYTHON, "-m", "tracehint", "analyze", path, "--format", form]
    return [*command, "-o", folder / f"out.{form}", "--force", *more]


def line(label: str, what: str, cost: Cost) -> None:
    print(
        f"| {label} | {what} | {cost.wall_s:.2f} | {cost.cpu_s:.2f} | {cost.peak_mib:.0f} |",
        flush=True,
    )


def measure(case: Case, folder: Path) -> tuple[Cost, dict[str, Cost]]:
    """The cost of analyze, and of the references if it is compared, run in turn."""
    path = bundle(folder, case.tasks, case.pieces)
    programs = {"": analyze(path, folder, case.form, *case.more)}
    if case.compared:
        programs |= {name: [PYTHON, "-c", code, path] for name, code in REFERENCES.items()}
    costs: dict[str, list[Cost]] = {name: [] for name in programs}
    for _ in range(case.runs):
        for name, command in programs.items():
            costs[name].append(run(command))
    found = {name: median(several) for name, several in costs.items()}
    extents = f", {case.pieces} extents per access" if case.pieces > 1 else ""
    label = f"{case.tasks:,} tasks{extents}"
    line(label, " ".join(("analyze", case.form, *case.more)), found[""])
    for name in REFERENCES if case.compared else ():
        line(label, name, found[name])
    return found.pop(""), found


def real(tasks: int, folder: Path) -> None:
    """The line of as many tasks of real workflows, side by side in one run."""
    path = ensemble(folder, tasks)
    line(
        f"{tasks:,} tasks, real workflows", "analyze parquet", run(analyze(path, folder, "parquet"))
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--extents", action="store_true")
    parser.add_argument("--most", type=int, default=1_000_000, help="leave larger runs out")
    parser.add_argument("--bundle", type=Path, action="append", default=[])
    args = parser.parse_args()
    cases = [c for c in CASES if c.tasks <= args.most] + ([EXTENTS] if args.extents else [])
    print("| run | program | wall s | CPU s | peak MiB |\n|---|---|---|---|---|")
    ratios: list[str] = []
    fitted: list[tuple[int, Cost]] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for path in args.bundle:
            for form in ("text", "json"):
                cost = median([run(analyze(path, folder, form)) for _ in range(5)])
                line(path.name, f"analyze {form}", cost)
        for case in cases:
            cost, others = measure(case, folder)
            ratios += [
                f"| {case.tasks:,} | {name} | {other.wall_s / cost.wall_s:.2f} "
                f"| {other.cpu_s / cost.cpu_s:.2f} |"
                for name, other in others.items()
            ]
            if case.fitted:
                fitted.append((case.tasks, cost))
            if case.fitted and case.tasks in REAL and "TRACEHINT_DATA" in os.environ:
                real(case.tasks, folder)
    print("\n| tasks | compared with analyze | wall | CPU |\n|---|---|---|---|", *ratios, sep="\n")
    if len(fitted) > 2:
        print(f"\n{fit(fitted)}")


def fit(costs: list[tuple[int, Cost]]) -> str:
    """A straight line through the CPU time, every size of the same weight, and how far it is
    off; and the exponent of the power of the tasks that the cost beyond the start follows."""
    tasks = np.array([n for n, _ in costs], float)
    cpu = np.array([c.cpu_s for _, c in costs])
    terms = np.stack([np.ones_like(tasks), tasks], axis=1)
    (start, slope), *_ = np.linalg.lstsq(terms / cpu[:, None], np.ones_like(cpu), rcond=None)
    off = np.abs((start + slope * tasks) / cpu - 1).max()
    beyond = np.log(np.maximum(cpu - start, 1e-3))
    exponent = np.polyfit(np.log(tasks), beyond, 1)[0]
    return (
        f"CPU s = {start:.2f} + {slope * 1e6:.1f} per million tasks, at most {off:.0%} off from "
        f"{tasks.min():,.0f} to {tasks.max():,.0f} tasks; beyond the start it grows like "
        f"tasks^{exponent:.2f}"
    )


if __name__ == "__main__":
    main()
