"""Findings: values that rules return and renderers print."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any

from tracehint.hintgen.text.escape import text

if TYPE_CHECKING:
    from tracehint.analyzer.arrays import Ints
    from tracehint.hintgen.gain import Gain

RawPath = bytes  # Finding has a field named bytes
SEVERITIES = ("error", "warning", "info")


@dataclass(frozen=True)
class Savings:
    """Savings of the fix, as counted in the run; 0 if unknown."""

    storage_bytes: int = 0
    gb_hours: float = 0.0
    operations: int = 0  # file-system calls


@dataclass(frozen=True)
class Finding:
    """One inefficiency or error of a run.

    `template` describes all affected files (`files` of them, `bytes` in
    total); `examples` are up to five of their paths, as bytes. `assumed` lists
    assumptions that the trace cannot confirm. `gain`: simulated gain of placing only the files
    `placed` (ids of the analysis) as their labels ask; None: not simulated.
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
    gain: Gain | None = None
    placed: Ints | None = field(default=None, compare=False, repr=False)

    def as_dict(self) -> dict[str, Any]:
        """Return the finding as plain JSON values, paths as visible text."""
        data = asdict(replace(self, placed=None))
        del data["placed"]
        data["examples"] = [text(path) for path in self.examples]
        data["assumed"] = list(self.assumed)
        data["fingerprint"] = self.fingerprint
        return data

    @property
    def fingerprint(self) -> str:
        """Identity across runs of one workflow: rule, files and tasks, no numbers."""
        import hashlib

        # ascii(): a task type may hold a byte that is not UTF-8
        key = "\0".join((self.code, self.template, self.producers, self.consumers))
        return hashlib.sha256(ascii(key).encode()).hexdigest()[:16]


@dataclass(frozen=True)
class LintRule:
    """One rule: `check` yields its findings, `page` is its documentation in Markdown.

    `needs`: facts without which the rule is skipped: "bundle" (raw records in
    addition to the analysis), "declared" (the engine's graph), "hosts" (two or
    more recording hosts).
    """

    code: str
    name: str
    severity: str
    since: str
    page: str
    check: Callable[[Any], Iterator[Finding]]  # of a lint.context.Context
    needs: tuple[str, ...] = ()


def lint_rule(
    code: str, severity: str, since: str, page: str, needs: tuple[str, ...] = ()
) -> Callable[[Callable[..., Iterator[Finding]]], LintRule]:
    """Decorate a function as a rule; the rule has the function's name, with dashes."""

    def rule(check: Callable[..., Iterator[Finding]]) -> LintRule:
        name = check.__name__.replace("_", "-")
        return LintRule(code, name, severity, since, page, check, needs)

    return rule


def freed_storage(findings: Sequence[Finding]) -> int:
    """Return the maximum of bytes that could be deleted or need not be stored.

    Several rules may free the same files: of these, the largest saving counts.
    """
    by_files: dict[str, dict[str, int]] = {}
    for finding in findings:
        by_rule = by_files.setdefault(finding.template or finding.fingerprint, {})
        by_rule[finding.code] = by_rule.get(finding.code, 0) + finding.saves.storage_bytes
    return sum(max(by_rule.values()) for by_rule in by_files.values())


def by_rule(findings: Sequence[Finding]) -> list[list[Finding]]:
    """Group the findings by rule, in the order of the first finding of each."""
    found: dict[str, list[Finding]] = {}
    for finding in findings:
        found.setdefault(finding.code, []).append(finding)
    return list(found.values())


def sum_findings(own: Sequence[Finding]) -> Savings:
    """Sum the counted savings of all findings of one rule; gains are not summed."""
    names = [field.name for field in fields(Savings)]
    return Savings(**{name: sum(getattr(f.saves, name) for f in own) for name in names})


def rank(finding: Finding) -> tuple[Any, ...]:
    """Return the sort key: errors first, then significant gain in time, traffic, bytes."""
    gain = finding.gain
    return (
        finding.severity != "error",
        -gain.makespan_s if gain and gain.significant else 0,
        -gain.network_bytes if gain else 0,
        -finding.saves.storage_bytes,
        -finding.bytes,
        finding.code,
        finding.template,
    )
