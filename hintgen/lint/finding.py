"""A finding is a value: rules return it, renderers print it, nobody else decides anything."""

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
    """What following the advice would save, as counted in the run; 0 is nothing known."""

    storage_bytes: int = 0
    gb_hours: float = 0.0
    operations: int = 0  # file-system calls


@dataclass(frozen=True)
class Finding:
    """One thing that a run leaves on the table.

    `template` stands for all files concerned (`files` of them, `bytes` in
    all); `examples` are up to five of their paths, as bytes. `assumed` lists
    what the trace could not tell and the finding takes for granted. `gain` is that of placing the
    files `placed` (ids of the analysis) as their labels ask, alone; None: not simulated.
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
        """The finding as plain JSON values; paths as visible text."""
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

    `needs` names facts without which the rule stays silent: "bundle" (raw
    facts beside the analysis), "declared" (the engine's graph), "hosts" (two
    or more recording hosts).
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
    """Makes a rule of a function; the rule has the function's name, with dashes."""

    def rule(check: Callable[..., Iterator[Finding]]) -> LintRule:
        name = check.__name__.replace("_", "-")
        return LintRule(code, name, severity, since, page, check, needs)

    return rule


def freed_storage(findings: Sequence[Finding]) -> int:
    """Bytes that could be deleted or need not be stored, at most.

    Rules can offer two ways to free the same files: of these, the better one counts.
    """
    by_files: dict[str, dict[str, int]] = {}
    for finding in findings:
        by_rule = by_files.setdefault(finding.template or finding.fingerprint, {})
        by_rule[finding.code] = by_rule.get(finding.code, 0) + finding.saves.storage_bytes
    return sum(max(by_rule.values()) for by_rule in by_files.values())


def by_rule(findings: Sequence[Finding]) -> list[list[Finding]]:
    """The findings of each rule, in the order in which the rules come first."""
    found: dict[str, list[Finding]] = {}
    for finding in findings:
        found.setdefault(finding.code, []).append(finding)
    return list(found.values())


def sum_findings(own: Sequence[Finding]) -> Savings:
    """The counts of all findings of one rule; gains are not added."""
    names = [field.name for field in fields(Savings)]
    return Savings(**{name: sum(getattr(f.saves, name) for f in own) for name in names})


def rank(finding: Finding) -> tuple[Any, ...]:
    """Sort key: errors first, then by significant gain in time, by traffic, then by bytes."""
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
