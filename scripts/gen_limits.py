#!/usr/bin/env python3
"""Write docs/reference/limits.md from the table of limits; `--check` only compares."""

from __future__ import annotations

import sys
from pathlib import Path

from generated import write_or_check

from tracehint.limits import LIMITS, VARIABLE

TARGET = Path(__file__).resolve().parent.parent / "docs" / "reference" / "limits.md"
HEAD = f"""# Limits

Traces, logs, workflow files and hint files may come from strangers, and a small file can mean much:
a packed line of gigabytes, a billion rows, names that fit a rule in too many ways. So every reader
stops at a limit and says which. Real files are far below them; a larger one is read after

```text
{VARIABLE}=rows=50_000_000,yaml-values=20_000_000 tracehint ...
```

A limit can be lowered in the same way. What a Parquet file of a bundle states beyond its limits is
left out like any damaged part: `analyze` says so, and `losses` counts it.

| name | most | of what |
|---|---|---|
"""


def main() -> int:
    rows = [
        f"| `{name}` | {row.most:,} {row.unit} | {row.bounds} |\n" for name, row in LIMITS.items()
    ]
    return write_or_check(TARGET, HEAD + "".join(rows), "gen_limits.py")


if __name__ == "__main__":
    sys.exit(main())
