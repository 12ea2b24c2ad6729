"""Write pages that are generated from the program, or with `--check` only compare them."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from pathlib import Path

EXIT_CODES = (
    ("0", "Fine."),
    ("1", "Findings (lint, diff, verify); a file with unknown nodes (locate); no "
          "collector can run (doctor)."),
    ("2", "It could not be done; standard error gives the reason and the remedy."),
    ("125", "record, profile, task, place: tracehint failed; the command was not run."),
    ("126, 127", "record, profile, task, place: the command is not executable; was not found."),
)  # fmt: skip  # a table

_PART = re.compile(r"(<!-- generated: ([a-z0-9-]+) -->\n).*?(\n<!-- end -->)", re.DOTALL)


def fill(page: Path, part: Callable[[str], str], script: str) -> int:
    """Replace text between `<!-- generated: NAME -->` and `<!-- end -->` by `part(NAME)`; return
    the exit code."""
    text = page.read_text(encoding="utf-8")
    made = _PART.sub(lambda found: found[1] + part(found[2]).rstrip("\n") + found[3], text)
    return write_or_check(page, made, script)


def write_or_check(target: Path, text: str, script: str) -> int:
    """Write the page; return the exit code: 1 if `--check` is given and the page is not current."""
    if "--check" in sys.argv:
        current = target.read_text(encoding="utf-8") if target.exists() else ""
        if current != text:
            print(f"{target}: not current; run python scripts/{script}", file=sys.stderr)
            return 1
        return 0
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(text, encoding="utf-8")
    return 0
