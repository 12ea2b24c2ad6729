"""Pages that are made from the program: write them, or with `--check` compare only."""

from __future__ import annotations

import sys
from pathlib import Path


def write_or_check(target: Path, text: str, script: str) -> int:
    """Exit code: 1 when `--check` is given and the page is not current."""
    if "--check" in sys.argv:
        current = target.read_text(encoding="utf-8") if target.exists() else ""
        if current != text:
            print(f"{target}: not current; run python scripts/{script}", file=sys.stderr)
            return 1
        return 0
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(text, encoding="utf-8")
    return 0
