"""Two runs side by side: `proof_of(before, after)`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tracehint.hintgen import query
from tracehint.hintgen.proof.force import force_of
from tracehint.hintgen.proof.located import located_bytes
from tracehint.hintgen.proof.result import Measure, Proof, Stage
from tracehint.hintgen.text.masks import masks_of
from tracehint.hintgen.text.units import plural

if TYPE_CHECKING:
    from tracehint.analyzer.model import Analysis
    from tracehint.hintgen.hints.model import HintFile
    from tracehint.hintgen.inputs import Input

_STAGES = """
    WITH rd AS (SELECT task, sum(bytes) AS bytes FROM consumers GROUP BY task),
         wr AS (SELECT task, sum(bytes) AS bytes FROM producers GROUP BY task)
    SELECT kind, count(*) AS tasks, sum(end_s - start_s) AS seconds,
           coalesce(sum(rd.bytes), 0)::BIGINT AS read_bytes,
           coalesce(sum(wr.bytes), 0)::BIGINT AS written_bytes
    FROM work JOIN kinds USING (task) LEFT JOIN rd USING (task) LEFT JOIN wr USING (task)
    GROUP BY kind ORDER BY min(start_s), kind"""
MOST_NAMED = 3
_FIGURES = ("tasks", "seconds", "read_bytes", "written_bytes")


def proof_of(before: Input, after: Input, hints: HintFile | None) -> Proof:
    """What hints did between two runs; `hints`: those of the second, where it carries them."""
    places = [located_bytes(run.analysis, run.bundle) for run in (before, after)]
    plan = hints.plan if hints is not None else None
    moved = plan.planned_bytes if plan is not None else None
    return Proof(
        before=before.name,
        after=after.name,
        hints=force_of(after.bundle),
        seconds=Measure(
            before.analysis.run.get("duration_s"),
            after.analysis.run.get("duration_s"),
            plan.planned_seconds if plan is not None else None,
        ),
        local_bytes=Measure(places[0][0], places[1][0], _rest(places[0], moved)),
        remote_bytes=Measure(places[0][1], places[1][1], moved),
        stages=_stages(before.analysis, after.analysis),
        drift=tuple(drift(before.analysis, after.analysis)),
    )


def _rest(read: tuple[int | None, int | None], moved: float | None) -> float | None:
    """Of the bytes read before those that need not cross the network."""
    local, remote = read
    if local is None or remote is None or moved is None:
        return None
    return max(0.0, local + remote - moved)


def _stages(before: Analysis, after: Analysis) -> tuple[Stage, ...]:
    """Types of both runs, those whose seconds changed most first."""
    sides = [_by_type(run) for run in (before, after)]
    found = []
    for kind in dict.fromkeys([*sides[0], *sides[1]]):
        rows = [side.get(kind, {}) for side in sides]
        measures = {name: Measure(rows[0].get(name), rows[1].get(name)) for name in _FIGURES}
        found.append(Stage(kind, **measures))
    return tuple(sorted(found, key=lambda stage: -stage.moved))


def _by_type(analysis: Analysis) -> dict[str, dict[str, Any]]:
    import pyarrow as pa
    import pyarrow.compute as pc

    con = query.connect(analysis)
    types = pc.fill_null(analysis.tasks.column("type"), "")
    kinds = {"task": analysis.tasks.column("task"), "kind": masks_of(types)}
    con.register("kinds", pa.table(kinds))
    return {row.pop("kind"): row for row in query.rows(con, _STAGES)}


def _named(kinds: list[str]) -> str:
    """The first of them, and how many more."""
    more = len(kinds) - MOST_NAMED
    return ", ".join([*kinds[:MOST_NAMED], *([f"and {more:,} more"] if more > 0 else [])])


def drift(before: Analysis, after: Analysis) -> list[str]:
    """Why the two may not be the same work."""
    sides = [_by_type(run) for run in (before, after)]
    lines = []
    for which, here, there in (("first", *sides), ("second", *sides[::-1])):
        only = [kind for kind in here if kind not in there]
        if only:
            lines.append(
                f"{plural(len(only), 'task type')} in the {which} run alone: {_named(only)}"
            )
    counts = [sum(row["tasks"] for row in side.values()) for side in sides]
    if counts[0] != counts[1]:
        lines.append(f"{plural(counts[0], 'task')} before, {counts[1]:,} after")
    for which, run in (("first", before.run), ("second", after.run)):
        if run.get("exit_status"):
            lines.append(f"the {which} run failed (exit status {run['exit_status']})")
    return lines
