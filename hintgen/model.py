"""Hint rules as typed records and as JSON (schemas/hints.schema.json)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

HINTS_SCHEMA = "tracehint.hints/1"


@dataclass(frozen=True)
class Hint:
    """One neutral hint, e.g. DP=local. `value` is what the observed run would get.

    `formula` says how the value follows from the scale of another run, e.g.
    {"replicas": "ceil(readers / 3)", "max": "nodes"}; empty: constant.
    `when`: create (before the first byte), before_read, any.
    """

    name: str
    value: str
    when: str
    formula: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Rule:
    """A rule about files that may not exist yet.

    `template` is for people (`proj/p_tile_{n}.fits`), `regex` (full match, on
    the path below the data root) is what decides. `exclude` are full-match
    regexes of files that the rule must not catch.
    """

    id: str
    template: str
    regex: str
    directory: str  # fixed leading directory of the template; "" is the data root
    producer: str | None  # task type; null: an input of the run
    consumers: tuple[str, ...]  # task types
    pattern: str
    hints: tuple[Hint, ...]
    confidence: float
    evidence: dict[str, Any]  # files, bytes, saves_bytes, fan_in, ..., numbers only
    conditions: dict[str, Any] = field(default_factory=dict)  # e.g. min_size_bytes
    exclude: tuple[str, ...] = ()
    examples: tuple[str, ...] = ()  # up to 5 observed paths
    per_file: dict[str, dict[str, str]] = field(default_factory=dict)  # path -> hint name -> value


@dataclass(frozen=True)
class Refusal:
    """A hint that was considered and not given."""

    template: str
    pattern: str
    reason: str  # code, e.g. "too_small", "conflict", "capacity"
    text: str
    files: int
    bytes: int


@dataclass(frozen=True)
class HintFile:
    """Everything in a hint file."""

    learned_from: tuple[dict[str, Any], ...]
    parameters: dict[str, Any]
    rules: tuple[Rule, ...]
    refused: tuple[Refusal, ...] = ()
