"""Thresholds that hold rules back, one check function each.

Each limit is an option of `tracehint hints`; each refusal contains the figures.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from tracehint.hintgen.hints.mapping import replicas
from tracehint.hintgen.hints.model import Refusal, Rule
from tracehint.hintgen.text.units import size
from tracehint.schemas.wording import plural

CAPACITY_SHARE = 0.5  # maximum share of a node filled by one placed file or group


@dataclass(frozen=True)
class Limits:
    """Thresholds; 0 disables one."""

    min_paying: float = 0.5  # share of a rule's files for which the cost model predicts a gain
    min_file_bytes: int = 0  # mean size below which a call costs more than it saves
    min_confidence: float = 0.3
    node_bytes: int = 0  # capacity of a node; one file or group may fill half of it
    replica_budget: float = 2.0  # bytes of further copies, as a multiple of all hinted bytes
    call_ms: float = 0.0  # duration of a call that sets a hint; 0: only the cost model counts it
    link_mbit: float = 1000.0  # link rate of a node, converts saved bytes to time

    def as_json(self) -> dict[str, Any]:
        """Return the limits as stored in the hint file."""
        return asdict(self)


NO_LIMITS = Limits(0.0, 0, 0.0, 0, 0.0)

Check = Callable[[Rule, Limits], str]


def _no_gain(rule: Rule, limits: Limits) -> str:
    files, paying = rule.evidence["files"], rule.evidence["paying_files"]
    if paying < limits.min_paying * files:
        return (
            f"by the cost model the hint saves more than its call costs for {paying} of "
            f"{plural(files, 'file')}; {limits.min_paying:.0%} are wanted (--min-paying)"
        )
    return ""


def _too_small(rule: Rule, limits: Limits) -> str:
    mean = rule.evidence["bytes"] / max(1, rule.evidence["files"])
    if mean < limits.min_file_bytes:
        return (
            f"its files have {mean:.0f} bytes on average: setting a hint costs more than it "
            f"saves below {limits.min_file_bytes} bytes (--min-bytes)"
        )
    return ""


def _unsure(rule: Rule, limits: Limits) -> str:
    sure = rule.evidence["label_confidence"]
    if sure < limits.min_confidence:
        return (
            f"its label has confidence {sure:.2f}, {limits.min_confidence:.2f} is wanted "
            "(--min-confidence)"
        )
    return ""


def _call_cost(rule: Rule, limits: Limits) -> str:
    calls = sum(hint.level == "placement" for hint in rule.hints)
    saved = rule.evidence["saves_bytes"] / max(1, rule.evidence["files"])
    gain_ms = saved * 8e-3 / limits.link_mbit if limits.link_mbit else 0.0
    if limits.call_ms and gain_ms < calls * limits.call_ms:
        return (
            f"it saves {saved:.0f} bytes a file, {gain_ms:.2f} ms at {limits.link_mbit:g} Mbit/s, "
            f"and {calls} calls of {limits.call_ms:g} ms set it (--call-ms, --link-mbit)"
        )
    return ""


def _capacity(rule: Rule, limits: Limits) -> str:
    group = rule.evidence["largest_group_bytes"]
    placed = group if rule.pattern == "reduce" else rule.evidence["largest_file_bytes"]
    on_one_node = any(h.name == "DP" and h.value.startswith(("local", "coll")) for h in rule.hints)
    if limits.node_bytes and on_one_node and placed > CAPACITY_SHARE * limits.node_bytes:
        what = "a group" if rule.pattern == "reduce" else "a file"
        return (
            f"{what} of {placed} bytes would fill more than {CAPACITY_SHARE:.0%} of a node of "
            f"{limits.node_bytes} bytes (--node-capacity)"
        )
    return ""


# reason -> check; the first check that returns a text refuses the rule.
CHECKS: tuple[tuple[str, Check], ...] = (
    ("unsure", _unsure),
    ("too_small", _too_small),
    ("no_gain", _no_gain),
    ("call_cost", _call_cost),
    ("capacity", _capacity),
)


def extra_copies(rule: Rule, nodes: int) -> int:
    """Return the bytes that the rule's additional copies would have needed in the observed run."""
    for hint in rule.hints:
        if hint.name == "Replication":
            copies = replicas(rule.evidence["max_readers"], nodes, hint.formula.per)
            return int((copies - 1) * rule.evidence["bytes"])
    return 0


def restrain(rules: list[Rule], limits: Limits, nodes: int) -> tuple[list[Rule], list[Refusal]]:
    """Return the accepted rules and the refusals. The rules that save most use the budget first."""
    budget = limits.replica_budget * sum(rule.evidence["bytes"] for rule in rules)
    kept: set[str] = set()
    refused: list[Refusal] = []
    spent = 0
    for rule in sorted(rules, key=lambda r: (-r.evidence["saves_bytes"], r.id)):
        found = ((name, check(rule, limits)) for name, check in CHECKS)
        reason, text = next((pair for pair in found if pair[1]), ("", ""))
        copies = extra_copies(rule, nodes)
        if not reason and limits.replica_budget and spent + copies > budget:
            reason = "replica_budget"
            text = (
                f"its copies take {size(copies)}; {size(spent)} of {size(int(budget))} for copies "
                "are spent on rules that save more (--replica-budget)"
            )
        if reason:
            refused.append(
                Refusal(
                    rule.template,
                    rule.pattern,
                    reason,
                    text,
                    rule.evidence["files"],
                    rule.evidence["bytes"],
                )
            )
        else:
            spent += copies
            kept.add(rule.id)
    return [rule for rule in rules if rule.id in kept], refused
