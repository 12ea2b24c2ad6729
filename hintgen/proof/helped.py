"""Rules that did not help: their files were read from other nodes as much as without them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tracehint.hintgen.proof.located import located_files

if TYPE_CHECKING:
    from tracehint.hintgen.inputs import Input

ENOUGH = 1 << 20  # bytes that must have been read: less decides nothing
NEARER = 0.02  # of the bytes, by which a rule must bring them nearer

_SHARES = """
    WITH hinted AS (SELECT DISTINCT path, rule FROM settings WHERE state = 'set'),
         was AS (SELECT rule, sum(local) AS local, sum(remote) AS remote
                 FROM before JOIN hinted USING (path) GROUP BY rule),
         is_ AS (SELECT rule, sum(local) AS local, sum(remote) AS remote
                 FROM after JOIN hinted USING (path) GROUP BY rule)
    SELECT rule FROM was JOIN is_ USING (rule)
    WHERE least(was.local + was.remote, is_.local + is_.remote) >= $enough
      AND is_.remote > 0
      AND is_.remote / (is_.local + is_.remote)
          > was.remote / (was.local + was.remote) - $nearer
    ORDER BY rule"""


def not_helped(before: Input, after: Input) -> list[str]:
    """Rules (or the plan's strategy) of the second run, as its settings name them.

    Files are compared by name; a rule is judged only where the store told, after both runs, where
    its files lie.
    """
    import duckdb

    sides = [located_files(run.analysis, run.bundle) for run in (before, after)]
    if sides[0] is None or sides[1] is None or after.bundle is None:
        return []
    con = duckdb.connect(":memory:")
    con.register("settings", after.bundle.tables["settings"])
    for name, files in zip(("before", "after"), sides, strict=True):
        con.register(name, files)
    found = con.execute(_SHARES, {"enough": ENOUGH, "nearer": NEARER}).fetchall()
    return [rule for (rule,) in found]
