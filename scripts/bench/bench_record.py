"""What recording costs, side by side in one run: alternating rounds, medians.

    python -m scripts.bench.bench_record [--rounds 5] [--quick] [-o docs/collectors/ebpf-cost.md]

Columns: native, tracehint (eBPF), one event per call (scripts/bench/peers, the
usual design of eBPF tools), strace --seccomp-bpf, bpftrace, DFTracer (a preloaded
library); one that is not installed is left out and named. CPU is user + system time of the command
with the recorder's own process, less what recording `true` costs (that is
stated apart as load and attach). It tells on stderr how far it has come and what each took.
--quick: a quarter of the work, one round for the recorders that take ten times as long.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from scripts.bench.record_peers import COSTLY, LOADER, Bench, Result, workloads
from scripts.bench.record_table import HEAD, render


def untraced(bench: Bench, rounds: int) -> tuple[float, float]:
    """getppid of a process that is not followed: ns without and with a recorder attached."""
    plain: list[float] = []
    attached: list[float] = []
    command = (str(bench.calls), "getppid", "1000000")
    for _ in range(rounds):
        plain.append(_own_count(command, bench.work))
        with tempfile.TemporaryDirectory(dir=bench.work) as out:
            recorder = subprocess.Popen([LOADER, "-o", out, "--", "sleep", "30"])
            time.sleep(0.5)
            attached.append(_own_count(command, bench.work))
            recorder.terminate()
            recorder.wait()
    return statistics.median(plain), statistics.median(attached)


def _own_count(command: tuple[str, ...], work: Path) -> float:
    done = subprocess.run(command, cwd=work, capture_output=True, text=True, check=True)
    return float(done.stderr.split()[-1])


def load_time(bench: Bench, rounds: int) -> tuple[float, int]:
    """Seconds until the command runs, less those of a plain start; the loader's memory in KiB."""
    times: list[float] = []
    memory = 0
    for _ in range(max(rounds, 5)):
        with tempfile.TemporaryDirectory(dir=bench.work) as out:
            subprocess.run([LOADER, "-o", out, "--", "true"], check=True)
            end = json.loads((Path(out) / "end.json").read_bytes())
            times.append(end["load_ms"] / 1e3)
            memory = max(memory, end["max_rss_kb"])
    return statistics.median(times), memory


def trace_sizes(bench: Bench) -> str:
    """Bytes of the finished bundle per call, or per short process."""
    cells = []
    many = 100_000 if bench.quick else 1_000_000
    for kind, count, unit in (
        ("read", many, "sequential read"),
        ("random", many // 5, "random 4 KiB read"),
        ("processes", 500, "short process with 20 files"),
    ):
        bundle = bench.work / f"{kind}.trace"
        subprocess.run(
            [
                sys.executable,
                "-m",
                "tracehint",
                "record",
                "--quiet",
                "--collector",
                "ebpf",
                "-o",
                bundle,
                "--",
                bench.calls,
                kind,
                str(count),
            ],
            cwd=bench.work,
            stderr=subprocess.DEVNULL,
            check=True,
        )
        size = sum(p.stat().st_size for p in bundle.rglob("*") if p.is_file())
        cells.append(
            f"{size / count:.2g} per {unit}"
            if size < 10 * count
            else f"{size / count:.0f} per {unit}"
        )
    return "Bytes of trace: " + ", ".join(cells) + "."


def measure(bench: Bench, rounds: int) -> dict[str, dict[str, Result]]:
    """All recorders on all workloads, alternating."""
    table: dict[str, dict[str, Result]] = {}
    once = COSTLY if bench.quick else COSTLY[:2]
    for workload in workloads(bench):
        row = table[workload.name] = {name: Result() for name in bench.recorders}
        for turn in range(rounds):
            for name, result in row.items():
                if name in COSTLY[:2] and not workload.slow:
                    continue
                if name not in once or not turn:
                    bench.once(name, workload, result)
        taken = ", ".join(f"{name} {sum(r.wall):.1f}" for name, r in row.items())
        _tell(f"{workload.name}: {rounds} rounds, seconds: {taken}")
    return table


def _tell(text: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="a quarter of the work")
    parser.add_argument("-o", "--output", type=Path, help="also write the tables there")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as text:
        bench = Bench(Path(text), quick=options.quick)
        table = measure(bench, options.rounds)
        _tell("a process that is not followed")
        plain, attached = untraced(bench, options.rounds)
        _tell("loading")
        load, memory = load_time(bench, options.rounds)
        report = render(bench, table, options.rounds)
        _tell("sizes")
        sizes = trace_sizes(bench)
    report += (
        f"\n\nA process that is not followed, per system call while a recorder is attached: "
        f"+{attached - plain:.0f} ns (native {plain:.0f} ns).\n"
        f"Load and attach: {load * 1e3:.0f} ms. Loader's memory: {memory / 1024:.0f} MiB.\n"
        f"{sizes}\n"
    )
    print(report)
    if options.output:
        options.output.write_text(HEAD + report, encoding="utf-8")


if __name__ == "__main__":
    main()
