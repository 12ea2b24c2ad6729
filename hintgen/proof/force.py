"""Which hints were in force in a run, from its table `settings`.

The unit is one hint of one name: of several files that had the name one after the other the last
counts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tracehint.schemas.store import Bundle

# state of the table `settings` -> what it counts as here
OUTCOMES = {
    "set": "in_force", "lost": "lost", "refused": "impossible", "unsaid": "impossible",
    "missed": "impossible",
}  # fmt: skip  # a table

_LAST = """
    SELECT * FROM b_settings
    QUALIFY row_number() OVER (PARTITION BY path, hint ORDER BY t_ns DESC) = 1"""
_REASONS = f"""
    SELECT state, why AS reason, string_agg(DISTINCT split_part(hint, '=', 1), ', '
           ORDER BY split_part(hint, '=', 1)) AS hints, count(*) AS count, min(path) AS example
    FROM ({_LAST}) WHERE state <> 'set' GROUP BY state, why ORDER BY count DESC, state, why"""


@dataclass(frozen=True)
class Force:
    """Counts of hints. `reasons`: state, reason, hints, count, example (path), most first."""

    in_force: int
    lost: int
    impossible: int
    reasons: tuple[dict[str, Any], ...] = ()

    @property
    def wanted(self) -> int:
        """Hints that the rules gave to files of the run."""
        return self.in_force + self.lost + self.impossible


def force_of(bundle: Bundle | None) -> Force:
    """The hints of a run; none where it was not run with hints."""
    if bundle is None or not bundle.tables["settings"].num_rows:
        return Force(0, 0, 0)
    import duckdb

    con = duckdb.connect(":memory:")
    con.register("b_settings", bundle.tables["settings"])
    counts = dict.fromkeys(OUTCOMES.values(), 0)
    for state, count in con.execute(
        f"SELECT state, count(*) FROM ({_LAST}) GROUP BY state"
    ).fetchall():
        counts[OUTCOMES.get(state, "impossible")] += count
    columns = ("state", "reason", "hints", "count", "example")
    reasons = [dict(zip(columns, row, strict=True)) for row in con.execute(_REASONS).fetchall()]
    return Force(**counts, reasons=tuple(reasons))
