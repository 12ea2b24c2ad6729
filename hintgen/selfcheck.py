"""Every rule is tried on the names it was learned from.

By its name alone a rule must not catch a file of another pattern, or of none:
such files are excluded, or the rule is dropped and the refusal said.
"""

from __future__ import annotations

from dataclasses import replace

from tracehint.hintgen.match import Matcher
from tracehint.hintgen.model import HintFile, Refusal, Rule
from tracehint.hintgen.nodes import Node

MAX_EXCLUDE = 16


def self_check(rules: list[Rule], leaves: list[Node]) -> tuple[list[Rule], list[Refusal]]:
    """Exclude, or drop, where a rule would catch a file of another pattern by its name alone."""
    refused: list[Refusal] = []
    for _ in range(3):
        matcher = Matcher(HintFile((), {}, tuple(rules)))
        wrong: dict[str, dict[str, Node]] = {}
        for leaf in leaves:
            samples = [(cell, path) for cell in leaf.cells for path, _ in cell.samples[:3]]
            found = matcher.match([path for _, path in samples])
            for (cell, _), match in zip(samples, found, strict=True):
                if match.rule is not None and match.pattern != cell.pattern:
                    wrong.setdefault(match.rule.id, {})[leaf.template.text] = leaf
        if not wrong:
            break
        kept = []
        for rule in rules:
            others = wrong.get(rule.id)
            if others is None:
                kept.append(rule)
            elif rule.template in others or len(rule.exclude) + len(others) > MAX_EXCLUDE:
                refused.append(_catches(rule, others))
            else:
                kept.append(replace(rule, exclude=(*rule.exclude, *sorted(others))))
        rules = kept
    return rules, refused


def _catches(rule: Rule, others: dict[str, Node]) -> Refusal:
    some = ", ".join(sorted(others)[:3])
    return Refusal(
        template=rule.template, pattern=rule.pattern, reason="would_catch",
        text=f"it would also catch {len(others)} kinds of files of another pattern or none: {some}",
        files=rule.evidence["files"], bytes=rule.evidence["bytes"],
    )  # fmt: skip
