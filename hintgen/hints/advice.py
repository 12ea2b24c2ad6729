"""Advisory hints: nice to know, never needed for placement."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tracehint.hintgen.hints.model import Hint
from tracehint.hintgen.hints.vocabulary import safe_name

REREAD = 1.5  # bytes read per distinct byte from which a cache pays

Traits = tuple[tuple[str, Any], ...]


def advisory_hints(cells: Sequence[Traits], consumers: Sequence[str]) -> tuple[Hint, ...]:
    """Lifetime, last reader and access order, where all cells of a rule agree."""
    rows = [dict(cell) for cell in cells]
    out: list[Hint] = []

    def advise(name: str, value: str) -> None:
        out.append(Hint(name, value, "any", {}, "advisory"))

    last = {row["last_reader"] for row in rows}
    reader = next(iter(last)) if len(last) == 1 and all(row["last_known"] for row in rows) else None
    # A file that is still there may be a result, whatever read it last: what the run itself
    # deleted is temporary.
    if all(row["role"] == "intermediate" and row["roles"] == 1 and row["deleted"] for row in rows):
        advise("Lifetime", f"temporary|{safe_name(reader)}" if reader else "temporary")
    if reader and len(consumers) > 1:
        advise("LastReader", safe_name(reader))
    if all(row["reread"] >= REREAD for row in rows) and max(row["size"] for row in rows):
        advise("CacheSize", str(max(row["size"] for row in rows)))
    if all(row["random"] for row in rows):
        advise("Access", "random")
    return tuple(out)
