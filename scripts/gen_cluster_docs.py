"""Write docs/reference/cluster-file.md from the parser's own table; `--check` only compares."""

from __future__ import annotations

import sys
from importlib import resources
from pathlib import Path

from generated import write_or_check

from tracehint.analyzer.predict.cluster_fields import TABLES, Field, Flag, Number

TARGET = Path(__file__).parent.parent / "docs" / "reference" / "cluster-file.md"
INTRO = """# Cluster files

Made from the parser's table by `make docs`. `tracehint predict RUN --cluster FILE` reads TOML:

```toml
base = "moosefs"              # a ready-made cluster; what stands below replaces its keys
name = "mine"

[nodes]
count = 8
cores = 16
link_mbit = [900, 940, 950]   # lowest, usual, highest as measured; [900, 950] has its middle
idle_watts = 90
price_per_hour = 0.8
```

A number may be a range wherever the table does not say *whole*: each simulated run draws its own
values, and the 90 % interval follows. Without `base`, keys without default must be given.
`[nodes]` may be repeated as `[[nodes]]` for machines of several kinds; `[servers]` are the store's
own machines (`servers = "apart"` or `"one"`; else like the first nodes). Nodes that are one
machine (virtual machines, containers, name spaces) name it in `host`: they share its processors,
`[[hosts]]`, for computing and for what the store needs of them. What a file must not say is
refused with the key, the limit and the remedy.
"""


def row(key: str, field: Field) -> str:
    """One line of a table."""
    if isinstance(field, Number):
        default = "must be given" if field.default is None else f"{field.default:g}"
        kind = f"{field.least:g} to {field.most:,g}" + (", whole" if field.whole else "")
    elif isinstance(field, Flag):
        default, kind = str(field.default).lower(), "true, false"
    else:
        default = field.default or '""'
        kind = ", ".join(field.choices) or "a name"
    return f"| `{key}` | {kind} | {default} | {field.meaning} |\n"


def page() -> str:
    """The whole page."""
    parts = [INTRO]
    for name, (fields, _) in TABLES.items():
        parts.append(f"\n## {name}\n\n| key | values | default | meaning |\n|---|---|---|---|\n")
        parts += [row(key, field) for key, field in fields.items()]
    parts.append("\n## Ready-made clusters\n\nTheir nodes are placeholders: say your own.\n")
    folder = resources.files("tracehint.analyzer.predict") / "clusters"
    for path in sorted(folder.iterdir(), key=lambda p: p.name):
        parts.append(f"\n```toml\n{path.read_text(encoding='utf-8')}```\n")
    return "".join(parts)


if __name__ == "__main__":
    sys.exit(write_or_check(TARGET, page(), "gen_cluster_docs.py"))
