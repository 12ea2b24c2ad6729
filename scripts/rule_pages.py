#!/usr/bin/env python3
"""Write docs/rules/ from the docstrings of the lint rules; `--check` only compares."""

from __future__ import annotations

import sys
from pathlib import Path

from tracehint.hintgen.lint.registry import pages

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "rules"


def stale(wanted: dict[str, str]) -> list[Path]:
    """Return the pages that differ from the rules, are missing, or have no rule."""
    there = {path.name for path in FOLDER.glob("*.md")}
    return sorted(
        FOLDER / name
        for name in there | set(wanted)
        if name not in there or (FOLDER / name).read_text(encoding="utf-8") != wanted.get(name)
    )


def main() -> int:
    wanted = pages()
    found = stale(wanted)
    if "--check" in sys.argv:
        for path in found:
            print(f"{path}: not current; run python scripts/rule_pages.py", file=sys.stderr)
        return 1 if found else 0
    FOLDER.mkdir(parents=True, exist_ok=True)
    for path in found:
        if path.name in wanted:
            path.write_text(wanted[path.name], encoding="utf-8")
        else:
            path.unlink()
    return 0


if __name__ == "__main__":
    sys.exit(main())
