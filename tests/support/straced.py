"""Parse strace logs in tests: from a text to the bundle's rows."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from tracehint.collectors.strace.finish import finish
from tracehint.collectors.strace.lexer import LexStats, lex
from tracehint.collectors.strace.model import StraceSettings
from tracehint.collectors.strace.parse import Parser


def parse(text: str | bytes, **settings: Any) -> tuple[dict[str, pa.Table], LexStats]:
    """Return the tables of a log; `settings` are fields of StraceSettings."""
    raw = text.encode("latin-1") if isinstance(text, str) else text
    lines = [line + b"\n" for line in raw.split(b"\n") if line.strip()]
    stats = LexStats()
    state = Parser(StraceSettings(**{"cwd": b"/w", **settings}), stats).feed(
        lex(lines, stats, tid=1)
    )
    return finish(state, stats), stats


def rows(tables: dict[str, pa.Table], name: str, **match: Any) -> list[dict[str, Any]]:
    """Return the rows of a table whose columns have the given values."""
    found: list[dict[str, Any]] = tables[name].to_pylist()
    return [r for r in found if all(r[k] == v for k, v in match.items())]


def moved(tables: dict[str, pa.Table], path: bytes) -> list[str]:
    """Return every extent of the files with this name, in order: `read 10+5` is five bytes from
    offset 10, and `read by mmap 0+9` includes the way if it differs from the operation."""
    files = {r["file"] for r in rows(tables, "names") if path in (r["path"], r["new_path"])}
    found = [r for r in rows(tables, "extents") if r["file"] in files]
    found.sort(key=lambda r: (r["first_ns"], r["op"]))
    ways = [r["op"] if r["how"] == r["op"] else f"{r['op']} by {r['how']}" for r in found]
    return [f"{way} {r['start']}+{r['length']}" for way, r in zip(ways, found, strict=True)]
