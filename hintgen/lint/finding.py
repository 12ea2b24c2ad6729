"""A finding is a value: rules return it, renderers print it, nobody else decides anything."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import Any

RawPath = bytes  # Finding has a field named bytes
SEVERITIES = ("error", "warning", "info")


@dataclass(frozen=True)
class LintRule:
    """What the registry knows of a rule; its documentation is the module's docstring.

    `needs` names facts without which the rule stays silent: "bundle" (raw
    facts beside the analysis), "declared" (the engine's graph), "hosts" (two
    or more recording hosts).
    """

    code: str
    name: str
    severity: str
    since: str
    needs: tuple[str, ...] = ()


@dataclass(frozen=True)
class Savings:
    """What following the advice would save, by the cost model; 0 is nothing known."""

    network_bytes: int = 0
    waiting_bytes: int = 0  # on the busiest link while tasks wait for them
    storage_bytes: int = 0
    gb_hours: float = 0.0
    operations: int = 0  # file-system calls
    seconds: tuple[float, float] | None = None  # of a calibration or a simulation: least and most


@dataclass(frozen=True)
class Finding:
    """One thing that a run leaves on the table.

    `template` stands for all files concerned (`files` of them, `bytes` in
    all); `examples` are up to five of their paths, as bytes. `assumed` lists
    what the trace could not tell and the finding takes for granted.
    """

    code: str
    name: str
    severity: str
    message: str
    template: str
    files: int
    bytes: int
    saves: Savings
    confidence: float
    fix: str
    examples: tuple[RawPath, ...] = ()
    producers: str = ""  # task types, comma-separated
    consumers: str = ""
    evidence: dict[str, Any] = field(default_factory=dict)
    assumed: tuple[str, ...] = ()

    @property
    def fingerprint(self) -> str:
        """Identity across runs of one workflow: rule, files and tasks, no numbers."""
        import hashlib

        # ascii(): a task type may hold a byte that is not UTF-8
        key = "\0".join((self.code, self.template, self.producers, self.consumers))
        return hashlib.sha256(ascii(key).encode()).hexdigest()[:16]


def total(findings: Sequence[Finding], what: str) -> int:
    """What all findings together save at most, of one field of `Savings` in bytes.

    Rules can offer two ways to save the same bytes of the same files (copies of a file, or its
    readers at its node): of these, the better one counts.
    """
    by_files: dict[str, dict[str, int]] = {}
    for finding in findings:
        by_rule = by_files.setdefault(finding.template or finding.fingerprint, {})
        by_rule[finding.code] = by_rule.get(finding.code, 0) + getattr(finding.saves, what)
    return sum(max(by_rule.values()) for by_rule in by_files.values())


def by_rule(findings: Sequence[Finding]) -> list[list[Finding]]:
    """The findings of each rule, in the order in which the rules come first."""
    found: dict[str, list[Finding]] = {}
    for finding in findings:
        found.setdefault(finding.code, []).append(finding)
    return list(found.values())


def together(own: Sequence[Finding]) -> Savings:
    """What findings of one rule save in all; seconds of one are not added to those of another."""
    names = [field.name for field in fields(Savings) if field.name != "seconds"]
    return Savings(**{name: sum(getattr(f.saves, name) for f in own) for name in names})


def rank(finding: Finding) -> tuple[Any, ...]:
    """Sort key: errors first, then by seconds where they are known, by saving, then by bytes."""
    saves = finding.saves
    network = saves.network_bytes + saves.waiting_bytes  # docs/rationale/saved-bytes.md
    return (
        finding.severity != "error",
        -saves.seconds[1] if saves.seconds else 0,
        -network,
        -saves.storage_bytes,
        -finding.bytes,
        finding.code,
        finding.template,
    )
