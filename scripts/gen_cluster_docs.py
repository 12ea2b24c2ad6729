"""Write docs/reference/cluster-file.md from the parser's own table; `--check` only compares."""

from __future__ import annotations

import sys
from importlib import resources
from pathlib import Path

from generated import fill

from tracehint.analyzer.predict.cluster import TABLES, Field, Flag, Number

TARGET = Path(__file__).parent.parent / "docs" / "reference" / "cluster-file.md"


def row(key: str, field: Field) -> str:
    """Return one row of a table."""
    if isinstance(field, Number):
        default = "must be given" if field.default is None else f"{field.default:g}"
        kind = f"{field.least:g} to {field.most:,g}" + (", whole" if field.whole else "")
    elif isinstance(field, Flag):
        default, kind = str(field.default).lower(), "true, false"
    else:
        default = field.default or '""'
        kind = ", ".join(field.choices) or "a name"
    return f"| `{key}` | {kind} | {default} | {field.meaning} |\n"


def tables() -> str:
    """Return the tables and the built-in clusters as Markdown."""
    parts = list[str]()
    for name, (fields, _) in TABLES.items():
        parts.append(f"\n## {name}\n\n| key | values | default | meaning |\n|---|---|---|---|\n")
        parts += [row(key, field) for key, field in fields.items()]
    parts.append("\n## Built-in clusters\n\nTheir nodes are placeholders: set your own.\n")
    folder = resources.files("tracehint.analyzer.predict") / "clusters"
    for path in sorted(folder.iterdir(), key=lambda p: p.name):
        parts.append(f"\n```toml\n{path.read_text(encoding='utf-8')}```\n")
    return "".join(parts).removeprefix("\n")


if __name__ == "__main__":
    sys.exit(fill(TARGET, lambda _: tables(), "gen_cluster_docs.py"))
