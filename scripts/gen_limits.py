#!/usr/bin/env python3
"""Write docs/reference/limits.md from the table of limits; `--check` only compares."""

from __future__ import annotations

import sys
from pathlib import Path

from generated import fill

from tracehint.limits import LIMITS

TARGET = Path(__file__).resolve().parent.parent / "docs" / "reference" / "limits.md"


def main() -> int:
    rows = [
        f"| `{name}` | {row.most:,} {row.unit} | {row.bounds} |\n" for name, row in LIMITS.items()
    ]
    text = "| name | most | of what |\n|---|---|---|\n" + "".join(rows)
    return fill(TARGET, lambda _: text, "gen_limits.py")


if __name__ == "__main__":
    sys.exit(main())
