"""The comparison as one record, as JSON (schemas/compare.schema.json) and as text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tracehint.hintgen.hints.pathtext import to_text
from tracehint.hintgen.proof.force import Force
from tracehint.hintgen.text.escape import shorten, terminal
from tracehint.hintgen.text.units import plural, seconds, size

SCHEMA = "tracehint.compare/1"
MOST_ROWS = 200  # of a table in the report


@dataclass(frozen=True)
class Measure:
    """One figure of both runs, and what was predicted for the second; None: not known."""

    before: float | None
    after: float | None
    predicted: float | None = None

    def as_json(self) -> dict[str, float | None]:
        """before, after, predicted."""
        return {"before": self.before, "after": self.after, "predicted": self.predicted}


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
        """Seconds by which the type changed."""
        return abs((self.seconds.before or 0.0) - (self.seconds.after or 0.0))


@dataclass(frozen=True)
class Proof:
    """What hints did between two runs."""

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
        """What it comes to."""
        if self.strangers:
            text = "The runs have no type of task in common, so their times and bytes tell nothing"
            return f"{text}; {_force(self.hints)}."
        return f"{_speed(self.seconds)}{_bytes(self.remote_bytes)}; {_force(self.hints)}."

    @property
    def strangers(self) -> bool:
        """Whether they are runs of different workflows: both have types, and share none."""
        known = [(s.tasks.before is not None, s.tasks.after is not None) for s in self.stages]
        return (True, True) not in known and {(True, False), (False, True)} <= set(known)

    @property
    def doubt(self) -> str:
        """Why a change of the time says nothing of the hints; empty: it may."""
        if not self.hints.in_force or self.remote_bytes.after is not None:
            return ""
        return (
            "No store told where the files lay, so a difference in time need not be the hints' "
            "doing:\na plain file system keeps attributes and does nothing with them."
        )


def _speed(measure: Measure) -> str:
    if not measure.before or not measure.after:
        return "Nobody knows how long both runs took"
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
    said = f"{force.in_force:,} of {plural(force.wanted, 'hint')} were in force"
    parts = [(force.lost, "lost"), (force.impossible, "not possible")]
    return ", ".join([said, *(f"{count:,} {word}" for count, word in parts if count)])


def to_json(proof: Proof) -> dict[str, Any]:
    """As the schema says."""
    hints = proof.hints
    return {
        "schema": SCHEMA,
        "before": proof.before,
        "after": proof.after,
        "sentence": proof.sentence,
        "hints": {
            "wanted": hints.wanted,
            "in_force": hints.in_force,
            "lost": hints.lost,
            "impossible": hints.impossible,
            "reasons": [{**r, "example": to_text(r["example"])} for r in hints.reasons],
        },
        "seconds": proof.seconds.as_json(),
        "local_bytes": proof.local_bytes.as_json(),
        "remote_bytes": proof.remote_bytes.as_json(),
        "types": [
            {
                "type": stage.type,
                "tasks": stage.tasks.as_json(),
                "seconds": stage.seconds.as_json(),
                "read_bytes": stage.read_bytes.as_json(),
                "written_bytes": stage.written_bytes.as_json(),
            }
            for stage in proof.stages
        ],
        "drift": list(proof.drift),
    }


def for_page(proof: Proof) -> dict[str, Any]:
    """The same for the report: the first types and reasons."""
    data = {**to_json(proof), "doubt": proof.doubt.replace("\n", " ")}
    data["types"] = data["types"][:MOST_ROWS]
    data["hints"]["reasons"] = data["hints"]["reasons"][:MOST_ROWS]
    return data


def to_text_lines(proof: Proof, most: int = 20) -> list[str]:
    """For people: the sentence, the reasons, then a row per task type."""
    lines = [proof.sentence, *proof.doubt.splitlines()]
    if proof.seconds.predicted is not None:
        lines.append(f"Predicted: {seconds(proof.seconds.predicted)}")
    for name, measure in (("own", proof.local_bytes), ("other", proof.remote_bytes)):
        if measure.after is not None:
            lines.append(f"Read from {name} nodes: {_pair(measure, size)}{_expected(measure)}")
    if proof.hints.reasons:
        lines += ["", "Not in force"]
    for reason in proof.hints.reasons[:most]:
        example = shorten(terminal(to_text(reason["example"])), 50)
        why = f"{reason['hints']}: {terminal(reason['reason'])}"
        lines.append(f"  {reason['count']:>6,}  {why}, as {example}")
    lines += ["", *_table(proof, most)]
    lines += [f"Not the same: {text}" for text in proof.drift]
    return lines


def _expected(measure: Measure) -> str:
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
