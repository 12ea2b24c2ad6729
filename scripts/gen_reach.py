#!/usr/bin/env python3
"""Write the table of docs/collectors/reach.md from the notes of `make reach`; --check compares."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from generated import fill

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "tests" / "reach" / "results"
TARGET = ROOT / "docs" / "collectors" / "reach.md"
ORDER = ("bullseye", "bookworm", "trixie", "sid")  # the oldest first
HEAD = (
    "system", "glibc", "Python", "wheel", "`profile` takes", "eBPF", "preload", "strace",
    "cases, preload", "`make demo`",
)  # fmt: skip  # a table


def notes(path: Path) -> dict[str, str]:
    """Return the notes by name."""
    rows = (line.partition(" ") for line in path.read_text(encoding="utf-8").splitlines())
    return {name: text for name, _, text in rows}


def share(found: dict[str, str], name: str) -> str:
    """Return the recorded share of the bytes, and the number of counted losses if any."""
    percent, _, _, lost, *differ = found[f"bytes-{name}"].split()
    text = f"{percent} %" + (f" (not all of {', '.join(differ)})" if differ else "")
    return text if lost == "0" else f"{text}, {lost} counted as lost"


def works(found: dict[str, str], name: str) -> str:
    """Return `yes` for a completed step, not its seconds, which depend on the machine's load."""
    text = found.get(name, "not tried")
    return re.sub(r"^\d+ s$", "yes", text)


def cells(found: dict[str, str]) -> tuple[str, ...]:
    """Return the row of one system."""
    _, files, moved, *_ = found["bytes-all.preload"].split()
    return (
        found["system"], found["glibc"], found["python"], works(found, "wheel"), found["auto"],
        f"{int(moved):,} bytes of {files} files", share(found, "all.preload"),
        share(found, "strace"), found.get("cases-result", "not tried").partition(" in ")[0],
        works(found, "demo"),
    )  # fmt: skip  # a table


def main() -> int:
    rows = [cells(notes(p)) for n in ORDER if (p := RESULTS / f"{n}.txt").exists()]
    table = [HEAD, ("---",) * len(HEAD), *rows]
    text = "".join(f"| {' | '.join(row)} |\n" for row in table)
    return fill(TARGET, lambda _: text, "gen_reach.py")


if __name__ == "__main__":
    sys.exit(main())
