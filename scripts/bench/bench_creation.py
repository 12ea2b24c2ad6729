"""`make bench-creation`: what `tracehint run` costs a program, by each way, alternating with none.

python -m scripts.bench.bench_creation --folder /dev/shm
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from scripts.bench.bench_calls import nanoseconds as told
from scripts.bench.load import prefer

from tracehint.adapters.creation.ways import answers
from tracehint.hintgen.hints.hintfile import dump
from tracehint.hintgen.hints.model import Hint, HintFile, Rule
from tracehint.hintgen.hints.template import parse

SOURCE = Path(__file__).with_name("creation.c")
MADE, HINTED = "makes a file that no rule is for", "makes a file and hints it"
ITSELF, READ, START = (
    "makes a file and sets an attribute itself",
    "reads a byte",
    "starts /bin/true",
)
# microseconds that a way may add; a hinted file's besides the store's own call
GOALS = {
    ("preload", HINTED): 3.0, ("fanotify", HINTED): 12.0, ("preload", READ): 0.025,
    ("preload", START): 400.0,
}  # fmt: skip  # a table


def hints(folder: Path) -> Path:
    """One rule, for h_N.dat."""
    template = parse("h_{n}.dat")
    rule = Rule(
        id="r1", template=template.text, regex=template.regex, directory="", producer="make",
        consumers=("use",), pattern="pipeline", hints=(Hint("DP", "local", "create"),),
        confidence=1.0, evidence={"files": 1, "bytes": 1}, producers=("make",),
    )  # fmt: skip  # a table
    dump(HintFile((), {}, (rule,)), folder / "hints.json", force=True)
    return folder / "hints.json"


def measured(folder: Path, pairs: int) -> dict[str, list[dict[str, float]]]:
    """Way ("": none) -> for each pair, call -> microseconds."""
    program, rules = folder / "creation", hints(folder)
    subprocess.run(["gcc", "-O2", "-Wall", "-Wextra", SOURCE, "-o", program], check=True)
    ways = ["", *(answer.name for answer in answers() if answer.usable)]
    found: dict[str, list[dict[str, float]]] = {way: [] for way in ways}
    for _ in range(pairs):
        for way in ways:
            words = [sys.executable, "-m", "tracehint", "run", "--no-record", "--quiet"]
            words += ["--hints", str(rules), "--store", "xattr", "--via", way, "--"]
            found[way].append(told(folder, [*words * bool(way), str(program)]))
    return found


def main() -> None:
    """Measure and print the table of medians."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=Path())
    parser.add_argument("--pairs", type=int, default=5)
    given = parser.parse_args()
    load, preferred = os.getloadavg()[0], prefer()
    with tempfile.TemporaryDirectory(prefix="creation-", dir=given.folder) as name:
        found = measured(Path(name).resolve(), given.pairs)
    print(f"load {load:.1f}{', in a preferred group' * preferred}; medians of {given.pairs} pairs")
    print("of the least of 150 batches, microseconds\n")
    print("| | plain | way | added | goal |\n|---|---|---|---|---|")
    plain = found.pop("")
    for call in plain[0]:
        native = statistics.median(run[call] for run in plain)
        for way, runs in found.items():
            own = [run[ITSELF] - run[MADE] if call == HINTED else 0.0 for run in plain]
            added = statistics.median(
                b[call] - a[call] - store for a, b, store in zip(plain, runs, own, strict=True)
            )
            goal = GOALS.get((way, call))
            print(f"| {call} | {native:.3f} | {way} | {added:+.3f} | {goal or ''} |")


if __name__ == "__main__":
    main()
