"""Which rules are held back, and why: stated thresholds, one function each.

Every limit is an option of `tracehint hints`; every refusal says the figures.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from tracehint.hintgen.formulas import replicas
from tracehint.hintgen.model import Refusal, Rule


@dataclass(frozen=True)
class Limits:
    """Thresholds; 0 switches one off. Bytes unless said otherwise."""

    min_file_bytes: int = 0  # mean bytes per file below which a call costs more than it saves
    node_capacity: int = 0  # what one node can hold of the run's files
    replica_budget: int = 0  # bytes that further copies may take, over all files
    min_confidence: float = 0.0
    max_replicas: int = 0

    def as_json(self) -> dict[str, Any]:
        """The limits as the hint file records them."""
        return asdict(self)


Check = Callable[[Rule, Limits, int], str]


def _too_small(rule: Rule, limits: Limits, nodes: int) -> str:  # noqa: ARG001
    mean = rule.evidence["bytes"] / max(1, rule.evidence["files"])
    if limits.min_file_bytes and mean < limits.min_file_bytes:
        return (
            f"its files have {mean:.0f} bytes on average: setting a hint costs more than it "
            f"saves below {limits.min_file_bytes} (--min-bytes)"
        )
    return ""


def _unsure(rule: Rule, limits: Limits, nodes: int) -> str:  # noqa: ARG001
    if rule.confidence < limits.min_confidence:
        return f"confidence {rule.confidence:.2f} is below {limits.min_confidence:.2f}"
    return ""


def _capacity(rule: Rule, limits: Limits, nodes: int) -> str:  # noqa: ARG001
    largest = rule.evidence.get("largest_group_bytes", 0)
    if limits.node_capacity and largest > limits.node_capacity:
        return (
            f"a group of {largest} bytes does not fit on a node of {limits.node_capacity} "
            "(--node-capacity)"
        )
    return ""


# reason -> check; the first that objects refuses the rule.
CHECKS: tuple[tuple[str, Check], ...] = (
    ("too_small", _too_small),
    ("unsure", _unsure),
    ("capacity", _capacity),
)


def extra_copies(rule: Rule, nodes: int) -> int:
    """Bytes that the rule's further replicas took in the observed run's sizes."""
    for hint in rule.hints:
        if hint.name == "Replication":
            per = float(hint.formula.get("per", 3))
            copies = replicas(rule.evidence["max_readers"], nodes, per)
            return int((copies - 1) * rule.evidence["bytes"])
    return 0


def restrain(rules: list[Rule], limits: Limits, nodes: int) -> tuple[list[Rule], list[Refusal]]:
    """(rules that stay, refusals)."""
    kept: list[Rule] = []
    refused: list[Refusal] = []
    spent = 0
    by_value = sorted(rules, key=lambda r: (-r.evidence["saves_bytes"], r.id))
    for rule in by_value:
        reason, text = next(
            ((name, said) for name, check in CHECKS if (said := check(rule, limits, nodes))),
            ("", ""),
        )
        copies = extra_copies(rule, nodes) if rule.evidence.get("level", 0) == 0 else 0
        if not reason and limits.replica_budget and spent + copies > limits.replica_budget:
            reason = "budget"
            text = (
                f"its copies take {copies} bytes, {spent} of the budget of "
                f"{limits.replica_budget} are spent (--replica-budget)"
            )
        if reason:
            refused.append(
                Refusal(rule.template, rule.pattern, reason, text, rule.evidence["files"],
                        rule.evidence["bytes"])
            )  # fmt: skip
            continue
        spent += copies
        kept.append(rule)
    order = {rule.id: at for at, rule in enumerate(rules)}
    return sorted(kept, key=lambda rule: order[rule.id]), refused
