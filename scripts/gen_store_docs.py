#!/usr/bin/env python3
"""Write the stores' and emitters' tables in README.md and docs/reference; `--check` only compares.

A part is located between `<!-- generated: NAME -->` and `<!-- end -->`.
"""

from __future__ import annotations

import sys
from pathlib import Path

from generated import fill

from tracehint.adapters.engines.registry import EMITTERS
from tracehint.adapters.stores.registry import names
from tracehint.app.store_facts import matrix, overview, remarks, summary

ROOT = Path(__file__).resolve().parent.parent
REFERENCE = ROOT / "docs" / "reference"
PAGES = [ROOT / "README.md", REFERENCE / "stores.md", REFERENCE / "engines.md"]
WORDS = {"runs": "run by", "api": "the same as", "grammar": "not run; checked by"}


def emitters() -> str:
    """Return a table of how the files of each emitter were validated."""
    lines = ["| `--workflow-engine` | the emitted files are | test |", "| --- | --- | --- |"]
    for name, facts in EMITTERS.items():
        row = facts.accepted
        assert row is not None
        test = row.test.partition("::")[0]
        lines.append(f"| `{name}` | {WORDS[row.by]} {row.what} | `tests/{test}` |")
    return "\n".join(lines)


TABLES = {
    "matrix": matrix, "stores": overview, "stores-summary": summary, "emitters": emitters,
}  # fmt: skip  # a table


def part(name: str) -> str:
    """Return the text of one part. Raises KeyError for an unknown name."""
    return remarks(name) if name in names() else TABLES[name]()


def main() -> int:
    return max(fill(page, part, "gen_store_docs.py") for page in PAGES)


if __name__ == "__main__":
    sys.exit(main())
