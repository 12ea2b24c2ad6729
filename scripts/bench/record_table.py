"""The tables of `bench_record` as Markdown."""

from __future__ import annotations

import statistics

from scripts.bench.record_peers import COSTLY, Bench, Result

HEAD = """# What recording costs

From `make bench-record` (`python -m scripts.bench.bench_record --rounds 5 -o
docs/collectors/ebpf-cost.md`) on a two-core virtual machine with Linux 6.18 that had other work
to do at the same time: ratios and added CPU time are of use, wall times less so. The CPU time is
that of the command and the recorder together, less what recording `true` costs.

"""


def render(bench: Bench, table: dict[str, dict[str, Result]], rounds: int) -> str:
    """The tables as Markdown."""
    names = list(bench.recorders)
    lines = ["| added CPU ns per call | native ns | " + " | ".join(names[1:]) + " |"]
    lines.append("|---" * (len(names) + 1) + "|")
    for workload, row in table.items():
        if not row["native"].per_call:
            continue
        base = statistics.median(row["native"].per_call)
        cells = [_added(row[n].per_call, base) for n in names[1:]]
        lines.append(f"| {workload} | {base:.0f} | " + " | ".join(cells) + " |")
    lines += ["", "| CPU ratio to native (wall) | native s | " + " | ".join(names[1:]) + " |"]
    lines.append("|---" * (len(names) + 1) + "|")
    start = {n: statistics.median(table["true"][n].cpu) for n in names}
    for workload, row in table.items():
        if row["native"].per_call or workload == "true":
            continue
        base = statistics.median(row["native"].cpu)
        cells = [_ratio(row["native"], row[n], start[n] - start["native"]) for n in names[1:]]
        lines.append(f"| {workload} | {base:.2f} | " + " | ".join(cells) + " |")
    once = COSTLY if bench.quick else COSTLY[:2]
    lines += ["", f"Medians of {rounds} alternating rounds (one round: {', '.join(once)})."]
    lines += [f"Left out: {text}." for text in bench.missing]
    return "\n".join(lines)


def _added(values: list[float], base: float) -> str:
    return f"{statistics.median(values) - base:+.0f}" if values else "-"


def _ratio(native: Result, other: Result, start: float) -> str:
    if not other.cpu:
        return "-"
    cpu = (statistics.median(other.cpu) - start) / statistics.median(native.cpu)
    wall = statistics.median(other.wall) / statistics.median(native.wall)
    return f"{cpu:.2f} ({wall:.2f})"
