"""Comparison of two recorded runs, the second with hints: hints in force and their effect."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypedDict, cast

from msgspec import Meta

from tracehint.hintgen import query
from tracehint.hintgen.hints.pathtext import to_text
from tracehint.hintgen.text.escape import shorten, terminal
from tracehint.hintgen.text.masks import masks_of
from tracehint.hintgen.text.units import seconds, size
from tracehint.schemas.fields import Count, Positive
from tracehint.schemas.wording import plural

if TYPE_CHECKING:
    import pyarrow as pa

    from tracehint.analyzer.model import Analysis
    from tracehint.hintgen.hints.model import HintFile
    from tracehint.hintgen.inputs import Input
    from tracehint.schemas.store import Bundle


# state of the table `settings` -> counter of Force
OUTCOMES = {
    "set": "in_force",
    "lost": "lost",
    "refused": "impossible",
    "unsaid": "impossible",
    "missed": "impossible",
}

_REASONS = """
    SELECT state, why AS reason, string_agg(DISTINCT split_part(hint, '=', 1), ', '
           ORDER BY split_part(hint, '=', 1)) AS hints, count(*) AS count, min(path) AS example
    FROM last WHERE state <> 'set' GROUP BY state, why ORDER BY count DESC, state, why"""


@dataclass(frozen=True)
class Force:
    """Counts of hints. `reasons`: state, reason, hints, count, example (path), by falling count."""

    in_force: int
    lost: int
    impossible: int
    reasons: tuple[dict[str, Any], ...] = ()

    @property
    def wanted(self) -> int:
        """Number of hints that the rules assigned to files of the run."""
        return self.in_force + self.lost + self.impossible


def force_of(bundle: Bundle | None) -> Force:
    """Count the hints of a run by outcome; all 0 if it was not run with hints."""
    if bundle is None or not bundle.tables["settings"].num_rows:
        return Force(0, 0, 0)
    rows = bundle.tables["settings"].sort_by("t_ns").group_by(["path", "hint"], use_threads=False)
    last = rows.aggregate([("state", "last"), ("why", "last")])
    last = last.rename_columns(["path", "hint", "state", "why"])
    counts = dict.fromkeys(OUTCOMES.values(), 0)
    for row in last.column("state").value_counts().to_pylist():
        counts[OUTCOMES.get(row["values"], "impossible")] += row["counts"]
    reasons: list[dict[str, Any]] = []
    if counts["in_force"] < last.num_rows:
        import duckdb

        con = duckdb.connect(":memory:")
        con.register("last", last)
        columns = ("state", "reason", "hints", "count", "example")
        reasons = [dict(zip(columns, row, strict=True)) for row in con.execute(_REASONS).fetchall()]
    return Force(**counts, reasons=tuple(reasons))


LOCATION = "location"

# A host name without its domain; addresses are unchanged.
_SHORT = """
    CREATE OR REPLACE TEMP MACRO short(name) AS
    CASE WHEN regexp_full_match(name, '[0-9]+([.][0-9]+){3}|.*:.*') THEN name
         ELSE split_part(name, '.', 1) END"""
_BYTES = """
    WITH listed AS (SELECT DISTINCT o.path, unnest(string_split(a.value, ',')) AS node
                  FROM b_attributes a JOIN b_opens o USING (file) WHERE a.name = 'location'),
         place AS (SELECT path, short(split_part(node, '=', 1)) AS host,
                          max(coalesce(try_cast(nullif(split_part(node, '=', 2), '') AS DOUBLE),
                                       1.0)) AS share
                   FROM listed GROUP BY ALL),
         known AS (SELECT DISTINCT path FROM place),
         rd AS (SELECT c.bytes, short(t.host) AS host, k.path
                FROM consumers c JOIN tasks t USING (task) JOIN files f USING (file)
                JOIN roots r ON true JOIN known k ON k.path = r.root || f.path
                WHERE NOT coalesce(t.engine, false))
    SELECT path, sum(bytes * coalesce(share, 0.0))::BIGINT AS local,
           sum(bytes * (1 - coalesce(share, 0.0)))::BIGINT AS remote
    FROM rd LEFT JOIN place USING (path, host) GROUP BY path"""


def located_bytes(analysis: Analysis, bundle: Bundle | None) -> tuple[int | None, int | None]:
    """Return (bytes read locally, bytes read from other nodes); None: unknown."""
    files = located_files(analysis, bundle)
    if files is None or not files.num_rows:
        return None, None
    local, remote = (sum(files.column(name).to_pylist()) for name in ("local", "remote"))
    return local, remote


def located_files(analysis: Analysis, bundle: Bundle | None) -> pa.Table | None:
    """Return these bytes by file: path (absolute), local, remote; None: no locations recorded."""
    import pyarrow as pa

    if bundle is None or LOCATION not in bundle.tables["attributes"].column("name").to_pylist():
        return None
    con = query.connect(analysis, bundle)
    roots = [root.encode("utf-8", "surrogateescape") for root in analysis.run["data_roots"]]
    con.execute(_SHORT)
    con.register("roots", pa.table({"root": pa.array([r.rstrip(b"/") + b"/" for r in roots])}))
    return con.sql(_BYTES).to_arrow_table()


MAX_ROWS = 200  # maximum length of a table in the report


@dataclass(frozen=True)
class Measure:
    """One figure of both runs, and what was predicted for the second; None: not known."""

    before: float | None
    after: float | None
    predicted: float | None = None


@dataclass(frozen=True)
class Stage:
    """Tasks of one type in both runs; seconds and bytes are sums over its tasks."""

    type: str
    tasks: Measure
    seconds: Measure
    read_bytes: Measure
    written_bytes: Measure

    @property
    def moved(self) -> float:
        """Absolute change of the type's seconds."""
        return abs((self.seconds.before or 0.0) - (self.seconds.after or 0.0))


@dataclass(frozen=True)
class Proof:
    """Effect of hints between two runs."""

    before: str
    after: str
    hints: Force
    seconds: Measure
    local_bytes: Measure
    remote_bytes: Measure
    stages: tuple[Stage, ...]
    drift: tuple[str, ...] = ()  # why the runs may not be comparable

    @property
    def sentence(self) -> str:
        """Summary in one sentence."""
        if self.strangers:
            text = "The runs have no task type in common: times and bytes cannot be compared"
            return f"{text}; {_force(self.hints)}."
        return f"{_speed(self.seconds)}{_bytes(self.remote_bytes)}; {_force(self.hints)}."

    @property
    def strangers(self) -> bool:
        """Whether the workflows differ: both runs have task types, and none in common."""
        known = [(s.tasks.before is not None, s.tasks.after is not None) for s in self.stages]
        return (True, True) not in known and {(True, False), (False, True)} <= set(known)

    @property
    def doubt(self) -> str:
        """Reason why a change of time cannot be attributed to the hints; empty: it can."""
        if not self.hints.in_force or self.remote_bytes.after is not None:
            return ""
        return (
            "Data placement is unknown, so a change in run time cannot be attributed to hints:\n"
            "a plain file system stores the attributes and ignores them."
        )


def _speed(measure: Measure) -> str:
    if not measure.before or not measure.after:
        return "The run times are not known"
    times = f"{seconds(measure.before)} -> {seconds(measure.after)}"
    share = (measure.after - measure.before) / measure.before
    if abs(share) < 0.05:
        return f"The run took as long as before ({times})"
    word = "longer" if share > 0 else "less time"
    return f"The run took {abs(share):.0%} {word} ({times})"


def _bytes(measure: Measure) -> str:
    if measure.before is None or measure.after is None:
        return ""
    return f", from other nodes {size(measure.before)} -> {size(measure.after)}"


def _force(force: Force) -> str:
    if not force.wanted:
        return "no hint was set by `tracehint run`"
    share = f"{force.in_force:,} of {plural(force.wanted, 'hint')} were in force"
    parts = [(force.lost, "lost"), (force.impossible, "not possible")]
    return ", ".join([share, *(f"{count:,} {word}" for count, word in parts if count)])


class LostHints(TypedDict):
    """Hints that were not in force for one reason; `example`: a path."""

    state: Annotated[str, Meta(extra_json_schema={"enum": ["refused", "unsaid", "missed", "lost"]})]
    reason: str
    hints: str
    count: Positive
    example: str


class HintsInForce(TypedDict):
    """The unit is one hint of one file."""

    wanted: Count
    in_force: Count
    lost: Count
    impossible: Count
    reasons: list[LostHints]


@dataclass(frozen=True)
class Comparison:
    """Output of `tracehint compare BEFORE AFTER --format json`; null: not known. Fields are only
    ever added: `baseline`, `all` and `no_gain_because` are those of a hint file."""

    schema: Literal["tracehint.compare/1"]
    before: str
    after: str
    sentence: str
    hints: HintsInForce
    seconds: Measure
    local_bytes: Measure
    remote_bytes: Measure
    types: tuple[Stage, ...]
    drift: tuple[str, ...]


def to_json(proof: Proof) -> dict[str, Any]:
    """Return the JSON object that `Comparison` describes."""
    hints = proof.hints
    document = Comparison(
        schema="tracehint.compare/1",
        before=proof.before,
        after=proof.after,
        sentence=proof.sentence,
        hints={
            "wanted": hints.wanted,
            "in_force": hints.in_force,
            "lost": hints.lost,
            "impossible": hints.impossible,
            "reasons": [
                cast(LostHints, {**r, "example": to_text(r["example"])}) for r in hints.reasons
            ],
        },
        seconds=proof.seconds,
        local_bytes=proof.local_bytes,
        remote_bytes=proof.remote_bytes,
        types=proof.stages,
        drift=proof.drift,
    )
    return asdict(document)


def for_page(proof: Proof) -> dict[str, Any]:
    """Return the object for the report, with the first MAX_ROWS types and reasons."""
    data = {**to_json(proof), "doubt": proof.doubt.replace("\n", " ")}
    data["types"] = data["types"][:MAX_ROWS]
    data["hints"]["reasons"] = data["hints"]["reasons"][:MAX_ROWS]
    return data


def to_text_lines(proof: Proof, most: int = 20) -> list[str]:
    """Return lines of text: the sentence, the reasons, then a row per task type."""
    lines = [proof.sentence, *proof.doubt.splitlines()]
    if proof.seconds.predicted is not None:
        lines.append(f"Predicted: {seconds(proof.seconds.predicted)}")
    for name, measure in (("own", proof.local_bytes), ("other", proof.remote_bytes)):
        if measure.after is not None:
            lines.append(
                f"Read from {name} nodes: {_pair(measure, size)}{_predicted_text(measure)}"
            )
    if proof.hints.reasons:
        lines += ["", "Not in force"]
    for reason in proof.hints.reasons[:most]:
        example = shorten(terminal(to_text(reason["example"])), 50)
        why = f"{reason['hints']}: {terminal(reason['reason'])}"
        lines.append(f"  {reason['count']:>6,}  {why}, e.g. {example}")
    lines += ["", *_table(proof, most)]
    lines += [f"Difference: {text}" for text in proof.drift]
    return lines


def _predicted_text(measure: Measure) -> str:
    return "" if measure.predicted is None else f" (predicted {size(measure.predicted)})"


def _table(proof: Proof, most: int) -> list[str]:
    rows = [("task type", "tasks", "seconds", "read", "written"), *map(_row, proof.stages[:most])]
    width = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(f"{cell:<{w}}" for cell, w in zip(row, width, strict=True)) for row in rows]
    if len(proof.stages) > most:
        lines.append(f"... and {len(proof.stages) - most:,} more types")
    return [line.rstrip() for line in lines]


def _row(stage: Stage) -> tuple[str, ...]:
    return (
        shorten(terminal(stage.type), 40),
        _pair(stage.tasks, lambda v: f"{v:,.0f}"),
        _pair(stage.seconds, lambda v: f"{v:.2f}"),
        _pair(stage.read_bytes, size),
        _pair(stage.written_bytes, size),
    )


def _pair(measure: Measure, shown: Any) -> str:
    sides = ["-" if v is None else shown(v) for v in (measure.before, measure.after)]
    return sides[0] if sides[0] == sides[1] else " -> ".join(sides)


_STAGES = """
    WITH rd AS (SELECT task, sum(bytes) AS bytes FROM consumers GROUP BY task),
         wr AS (SELECT task, sum(bytes) AS bytes FROM producers GROUP BY task)
    SELECT kind, count(*) AS tasks, sum(end_s - start_s) AS seconds,
           coalesce(sum(rd.bytes), 0)::BIGINT AS read_bytes,
           coalesce(sum(wr.bytes), 0)::BIGINT AS written_bytes
    FROM work JOIN kinds USING (task) LEFT JOIN rd USING (task) LEFT JOIN wr USING (task)
    GROUP BY kind ORDER BY min(start_s), kind"""
MAX_NAMED = 3
_FIGURES = ("tasks", "seconds", "read_bytes", "written_bytes")


def proof_of(before: Input, after: Input, hints: HintFile | None) -> Proof:
    """Measure the effect of hints between two runs; `hints`: those of the second, if recorded."""
    places = [located_bytes(run.analysis, run.bundle) for run in (before, after)]
    plan = hints.plan if hints is not None else None
    moved = plan.network_bytes.planned if plan is not None else None
    sides = [_by_type(run.analysis) for run in (before, after)]
    return Proof(
        before=before.name,
        after=after.name,
        hints=force_of(after.bundle),
        seconds=Measure(
            before.analysis.run.get("duration_s"),
            after.analysis.run.get("duration_s"),
            plan.seconds.planned if plan is not None else None,
        ),
        local_bytes=Measure(places[0][0], places[1][0], _bytes_kept_local(places[0], moved)),
        remote_bytes=Measure(places[0][1], places[1][1], moved),
        stages=_compare_types(sides),
        drift=tuple(_list_drift(before.analysis, after.analysis, sides)),
    )


def _bytes_kept_local(read: tuple[int | None, int | None], moved: float | None) -> float | None:
    """Return the bytes read in the first run minus those planned to cross the network."""
    local, remote = read
    if local is None or remote is None or moved is None:
        return None
    return max(0.0, local + remote - moved)


_TaskTypes = dict[str, dict[str, Any]]  # figures of each task type of a run


def _compare_types(sides: Sequence[_TaskTypes]) -> tuple[Stage, ...]:
    """Return the task types of both runs, largest change of seconds first."""
    found = []
    for kind in dict.fromkeys([*sides[0], *sides[1]]):
        rows = [side.get(kind, {}) for side in sides]
        measures = {name: Measure(rows[0].get(name), rows[1].get(name)) for name in _FIGURES}
        found.append(Stage(kind, **measures))
    return tuple(sorted(found, key=lambda stage: -stage.moved))


def _by_type(analysis: Analysis) -> _TaskTypes:
    import pyarrow as pa
    import pyarrow.compute as pc

    con = query.connect(analysis)
    types = pc.fill_null(analysis.tasks.column("type"), "")
    kinds = {"task": analysis.tasks.column("task"), "kind": masks_of(types)}
    con.register("kinds", pa.table(kinds))
    return {row.pop("kind"): row for row in query.rows(con, _STAGES)}


def _name_kinds(kinds: list[str]) -> str:
    """List the first kinds, and the number of further ones."""
    more = len(kinds) - MAX_NAMED
    return ", ".join([*kinds[:MAX_NAMED], *([f"and {more:,} more"] if more > 0 else [])])


def drift(before: Analysis, after: Analysis) -> list[str]:
    """Return the reasons why the two runs may differ in their work."""
    return _list_drift(before, after, [_by_type(run) for run in (before, after)])


def _list_drift(before: Analysis, after: Analysis, sides: Sequence[_TaskTypes]) -> list[str]:
    lines = []
    for which, own, other in (("first", *sides), ("second", *sides[::-1])):
        only = [kind for kind in own if kind not in other]
        if only:
            lines.append(
                f"{plural(len(only), 'task type')} in the {which} run alone: {_name_kinds(only)}"
            )
    counts = [sum(row["tasks"] for row in side.values()) for side in sides]
    if counts[0] != counts[1]:
        lines.append(f"{plural(counts[0], 'task')} before, {counts[1]:,} after")
    for which, run in (("first", before.run), ("second", after.run)):
        if run.get("exit_status"):
            lines.append(f"the {which} run failed (exit status {run['exit_status']})")
    return lines


MIN_READ_BYTES = 1 << 20  # minimum bytes read in each run to judge a rule
MIN_DECREASE = 0.02  # minimum decrease of the remote share of bytes for a rule to count as helpful

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
    """Return the rules (or the plan's strategy) of the second run that did not help.

    They are named as in `settings`. Files are compared by name; a rule is judged only
    if the store reported the location of its files after both runs.
    """
    import duckdb

    sides = [located_files(run.analysis, run.bundle) for run in (before, after)]
    if sides[0] is None or sides[1] is None or after.bundle is None:
        return []
    con = duckdb.connect(":memory:")
    con.register("settings", after.bundle.tables["settings"])
    for name, files in zip(("before", "after"), sides, strict=True):
        con.register(name, files)
    found = con.execute(_SHARES, {"enough": MIN_READ_BYTES, "nearer": MIN_DECREASE}).fetchall()
    return [rule for (rule,) in found]
