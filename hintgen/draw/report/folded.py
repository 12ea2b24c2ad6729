"""Findings folded by rule: what all of one rule save, and the largest of them."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tracehint.hintgen.lint.finding import by_rule, together
from tracehint.hintgen.lint.render.json_ import as_dict
from tracehint.hintgen.lint.render.text_ import savings_text

if TYPE_CHECKING:
    from tracehint.hintgen.lint.finding import Finding


def folded(findings: Sequence[Finding]) -> list[dict[str, Any]]:
    """A row for each rule, in the order of the findings."""
    return [
        {
            "count": len(own),
            "said": savings_text(own[0].saves if len(own) == 1 else together(own)),
            "saves": dataclasses.asdict(together(own)),
            "first": as_dict(own[0]),
            "first_said": savings_text(own[0].saves) if len(own) > 1 else "",
        }
        for own in by_rule(findings)
    ]
