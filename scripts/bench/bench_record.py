"""`make bench-record`: the same calls and workflows under every available recorder.

    python -m scripts.bench.bench_record [--pairs 5] [-o docs/reference/recorders.md]
    python -m scripts.bench.bench_record --only none,preload,eBPF --workflows-only

Calls: scripts/bench/calls.c, nanoseconds of wall time, minimum of some batches. Workflows: seconds
of processor and wall time, recorder included, minus the cost of recording `true`; medians of
alternating pairs. $DFTRACER, $DARSHAN_LIB and $REPROZIP locate recorders installed elsewhere.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

from scripts.bench.bench_calls import compiled, nanoseconds
from scripts.bench.load import prefer
from scripts.bench.measure import Cost, run
from scripts.bench.recorded_workflows import WORKFLOWS
from scripts.bench.recorders import SLOW, Peer, peers

HEAD = """# What recorders cost, side by side

From `make bench-record` on a two-core virtual machine with Linux 6.18, which had other work to do
at the same time; the benchmark went before it. {versions}

## Calls

Nanoseconds (microseconds for processes) on the wall, the least of {batches} batches ({slow} for
{slow_names}), in brackets how many times as long as without a recorder.

"""
MIDDLE = """
## Workflows

How many times the processor time of the plain run, recorder and conversion included, less what
recording `true` takes; in brackets the same of seconds on the wall. Medians of {pairs} alternating
pairs; one run where it says so. {together}

"""
TOGETHER = (
    "Measured together, each row's columns in turn: {names}. What another table says was measured "
    "at another time."
)
BATCHES, FEW = 60, 2


def calls_table(recorders: dict[str, Peer], work: Path) -> str:
    """Measure calls.c under each recorder; return the rows."""
    program = compiled(work)
    found: dict[str, dict[str, float]] = {}
    for name in (*recorders, "none"):  # none twice, as the machine's load changes
        env = ("env", "WALL=1", f"BATCHES={FEW if name in SLOW else BATCHES}")
        with tempfile.TemporaryDirectory(dir=work) as out:
            words = [*env, *recorders[name].words(Path(out), (program,))]
            values = nanoseconds(Path(out), words)
        before = found.get(name, values)
        found[name] = {call: min(value, before[call]) for call, value in values.items()}
        print_progress(f"calls: {name}")
    lines = ["| | " + " | ".join(found) + " |", "|---" * (len(found) + 1) + "|"]
    for call, native in found["none"].items():
        cells = [_call(found[name].get(call), native) for name in found]
        lines.append(f"| {call} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def _call(value: float | None, native: float) -> str:
    if value is None:
        return "-"
    text = f"{value:,.0f} ns" if native < 50_000 else f"{value / 1e3:,.0f} us"
    return text if value == native else f"{text} ({value / native:.2f})"


def workflows_table(recorders: dict[str, Peer], work: Path, pairs: int) -> str:
    """Measure real workflows; return rows of CPU and wall time ratios."""
    names = list(recorders)
    start = {n: _least([_once(recorders[n], work, ("true",)) for _ in range(3)]) for n in names}
    lines = ["| | none | " + " | ".join(names[1:]) + " |", "|---" * (len(names) + 1) + "|"]
    taken = " | ".join(f"{c.cpu_s:.2f} s ({c.wall_s:.2f} s)" for c in start.values())
    lines.append(f"| `true`, which is taken off below | {taken} |")
    for title, make in WORKFLOWS.items():
        folder = work / title.split(",")[0]
        folder.mkdir()
        command = make(folder)
        costs: dict[str, list[Cost]] = {n: [] for n in names}
        _once(recorders["none"], work, command)
        for turn in range(pairs):
            for name in names:
                if not turn or name in ("none", "preload", "eBPF"):
                    try:
                        costs[name].append(_once(recorders[name], work, command))
                    except RuntimeError as error:
                        print_progress(f"{title}: {name}: {error}")
        print_progress(title)
        native = costs["none"]
        cells = [_ratio(costs[n], native, start[n], start["none"]) for n in names[1:]]
        mine = f"{statistics.median(c.cpu_s for c in native):.1f} s"
        wall = f"{statistics.median(c.wall_s for c in native):.1f} s"
        lines.append(f"| {title} | {mine} ({wall}) | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def _once(peer: Peer, work: Path, command: tuple[str, ...]) -> Cost:
    with tempfile.TemporaryDirectory(dir=work) as out:
        return run(peer.words(Path(out), command), cwd=work)


def _least(costs: list[Cost]) -> Cost:
    return Cost(min(c.wall_s for c in costs), min(c.cpu_s for c in costs), 0.0)


def _ratio(mine: list[Cost], native: list[Cost], start: Cost, plain: Cost) -> str:
    if not mine:
        return "the run fails"
    cpu = [
        (a.cpu_s - start.cpu_s + plain.cpu_s) / b.cpu_s for a, b in zip(mine, native, strict=False)
    ]
    wall = [
        (a.wall_s - start.wall_s + plain.wall_s) / b.wall_s
        for a, b in zip(mine, native, strict=False)
    ]
    once = ", once" if len(mine) == 1 and len(native) > 1 else ""
    return f"{statistics.median(cpu):.3f} ({statistics.median(wall):.2f}{once})"


def _only(
    found: dict[str, Peer], names: list[str], parser: argparse.ArgumentParser
) -> dict[str, Peer]:
    unknown = [name for name in ("none", *names) if name not in found or name not in names]
    if unknown:
        parser.error(f"--only: {unknown[0]}: not there, or left out; there are {', '.join(found)}")
    return {name: peer for name, peer in found.items() if name in names}


def print_progress(text: str) -> None:
    """Print progress."""
    print(f"{time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)


def main() -> None:
    """Measure and print, or write the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("-o", "--output", type=Path)
    parser.add_argument("--calls-only", action="store_true")
    parser.add_argument("--workflows-only", action="store_true")
    parser.add_argument("--only", help="recorders, comma-separated; none is one of them")
    options = parser.parse_args()
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    found, missing = peers()
    if options.only:
        found, missing = _only(found, options.only.split(","), parser), []
    prefer()
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        about = " ".join(p.about for p in found.values() if p.about)
        together = TOGETHER.format(names=", ".join(found))
        page = HEAD.format(versions=about, batches=BATCHES, slow=FEW, slow_names=", ".join(SLOW))
        page = "" if options.workflows_only else page + calls_table(found, work)
        if not options.calls_only:
            page += MIDDLE.format(pairs=options.pairs, together=together)
            page += workflows_table(found, work, options.pairs)
    page += "".join(f"\nNot there: {text}." for text in missing) + "\n"
    print(page)
    if options.output:
        options.output.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
