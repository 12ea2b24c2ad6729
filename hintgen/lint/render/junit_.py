"""Findings as JUnit XML: one test case per rule, failed where it found something."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tracehint.hintgen.lint.render.text_ import savings_text
from tracehint.hintgen.text.escape import xml

if TYPE_CHECKING:
    from tracehint.hintgen.lint.finding import Finding
    from tracehint.hintgen.lint.render import Info


def render(findings: Sequence[Finding], info: Info) -> str:
    """A `testsuites` document; rules without their facts count as skipped."""
    by_code: dict[str, list[Finding]] = {code: [] for code in info.rules}
    for finding in findings:
        by_code.setdefault(finding.code, []).append(finding)
    failed = sum(bool(found) for found in by_code.values())
    counts = f'tests="{len(by_code)}" failures="{failed}" skipped="{len(info.skipped)}"'
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        f'<testsuites {counts} errors="0">',
        f'<testsuite name="{xml(info.subject)}" {counts} errors="0">',
    ]
    for code, found in by_code.items():
        name = info.rules.get(code) or (found[0].name if found else code)
        lines.append(f'<testcase classname="{xml(info.tool)}" name="{xml(f"{code} {name}")}">')
        if code in info.skipped:
            lines.append(f'<skipped message="{xml("needs " + info.skipped[code])}"/>')
        lines += [_failure(f) for f in found]
        lines.append("</testcase>")
    return "\n".join([*lines, "</testsuite>", "</testsuites>"])


def _failure(finding: Finding) -> str:
    body = [finding.template, savings_text(finding.saves), finding.fix]
    inner = "\n".join(xml(part) for part in body if part)
    return (
        f'<failure type="{xml(finding.severity)}" message="{xml(finding.message)}">'
        f"{inner}</failure>"
    )
