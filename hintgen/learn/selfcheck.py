"""Every rule is tried on the names it was learned from.

By its name alone a rule must not catch a file of another pattern, or of none:
such files are excluded, or the rule is dropped and the refusal said.
"""

from __future__ import annotations

from dataclasses import replace

from tracehint.hintgen.hints.model import HintFile, Refusal, Rule
from tracehint.hintgen.learn.candidates import Candidate
from tracehint.hintgen.match.match import Matcher

MAX_EXCLUDE = 16


def self_check(rules: list[Rule], leaves: list[Candidate]) -> tuple[list[Rule], list[Refusal]]:
    """Exclude, or drop, where a rule would catch a file of another pattern by its name alone."""
    refused: list[Refusal] = []
    for _ in range(3):
        wrong, ties = _wrong(rules, leaves)
        if not wrong and not ties:
            break
        kept = []
        for rule in rules:
            others = wrong.get(rule.id, {})
            if rule.id in ties:
                refused.append(_refusal(rule, "conflict", _conflict(ties[rule.id])))
            elif not others:
                kept.append(rule)
            elif rule.template in others or len(rule.exclude) + len(others) > MAX_EXCLUDE:
                refused.append(_refusal(rule, "would_catch", _catches(others)))
            else:
                kept.append(replace(rule, exclude=(*rule.exclude, *sorted(others))))
        rules = kept
    return rules, refused


def _wrong(
    rules: list[Rule], leaves: list[Candidate]
) -> tuple[dict[str, dict[str, Candidate]], dict[str, Rule]]:
    """(rule id -> candidates wrongly caught, rule id -> the rule that it loses a tie to)."""
    matcher = Matcher(HintFile((), {}, tuple(rules)))
    by_id = {rule.id: rule for rule in rules}
    wrong: dict[str, dict[str, Candidate]] = {}
    ties: dict[str, Rule] = {}
    names = frozenset(
        path for leaf in leaves for file_group in leaf.file_groups for path, _ in file_group.samples
    )
    for leaf in leaves:
        samples = [
            (file_group, path)
            for file_group in leaf.file_groups
            for path, _ in file_group.samples[:3]
        ]
        found = matcher.match([path for _, path in samples], names=names, counted=False)
        for (file_group, _), match in zip(samples, found, strict=True):
            if match.rule is not None and match.pattern != file_group.pattern:
                wrong.setdefault(match.rule.id, {})[leaf.template.text] = leaf
            tied = [by_id[name] for name, why in match.candidates if why == "tie"]
            if tied:
                first, *rest = sorted(tied, key=lambda r: (-r.evidence["saves_bytes"], r.id))
                ties.update({rule.id: first for rule in rest})
    return wrong, ties


def _refusal(rule: Rule, reason: str, text: str) -> Refusal:
    files, size = rule.evidence["files"], rule.evidence["bytes"]
    return Refusal(rule.template, rule.pattern, reason, text, files, size)


def _catches(others: dict[str, Candidate]) -> str:
    some = ", ".join(sorted(others)[:3])
    return f"it would also catch {len(others)} kinds of files of another pattern or none: {some}"


def _conflict(winner: Rule) -> str:
    return (
        f"it fits the same names as {winner.template} ({winner.pattern}), which saves more, and "
        "says something else"
    )
