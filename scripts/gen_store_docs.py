#!/usr/bin/env python3
"""Write the stores' and emitters' tables in README.md and docs/reference; `--check` only compares.

A part stands between `<!-- generated: NAME -->` and `<!-- end -->`.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from generated import write_or_check

from tracehint.adapters.engines.accepted import accepted
from tracehint.adapters.stores.matrix import matrix, overview, remarks, summary
from tracehint.adapters.stores.registry import names

ROOT = Path(__file__).resolve().parent.parent
REFERENCE = ROOT / "docs" / "reference"
PAGES = [ROOT / "README.md", REFERENCE / "stores.md", REFERENCE / "engines.md"]
PART = re.compile(r"(<!-- generated: ([a-z0-9-]+) -->\n).*?(\n<!-- end -->)", re.DOTALL)
TABLES = {
    "matrix": matrix, "stores": overview, "stores-summary": summary, "emitters": accepted,
}  # fmt: skip  # a table


def part(name: str) -> str:
    """The text of one part; raises KeyError for a marker that names nothing."""
    return remarks(name) if name in names() else TABLES[name]()


def main() -> int:
    wrong = 0
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        made = PART.sub(lambda found: found[1] + part(found[2]) + found[3], text)
        wrong |= write_or_check(page, made, "gen_store_docs.py")
    return wrong


if __name__ == "__main__":
    sys.exit(main())
