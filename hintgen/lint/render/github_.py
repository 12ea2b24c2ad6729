"""Findings as GitHub workflow commands: annotations on the workflow file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tracehint.hintgen.lint.render.text_ import savings_text
from tracehint.hintgen.text.escape import github, github_property

if TYPE_CHECKING:
    from tracehint.hintgen.lint.finding import Finding
    from tracehint.hintgen.lint.render import Info

_LEVEL = {"error": "error", "warning": "warning", "info": "notice"}


def render(findings: Sequence[Finding], info: Info) -> str:
    """One `::warning ...::message` line per finding."""
    return "\n".join(_line(f, info) for f in findings)


def _line(finding: Finding, info: Info) -> str:
    properties = [f"title={github_property(f'{finding.code} {finding.name}')}"]
    if info.workflow:
        properties.insert(0, f"file={github_property(info.workflow)}")
    saved = savings_text(finding.saves)
    parts = [finding.template, finding.message, f"saves {saved}" if saved else "", finding.fix]
    message = github(" | ".join(p for p in parts if p))
    return f"::{_LEVEL[finding.severity]} {','.join(properties)}::{message}"
