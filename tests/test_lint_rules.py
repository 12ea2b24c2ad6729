"""Every rule against its page in tests/lint/: runs that it must and must not report.

A page consists of prose and pairs of blocks: ```run (tests/support/runs.py) and ```findings. The
quick suite runs the page's own rule on every example, the slow one all rules, so a finding that a
page does not list is a false positive.
"""

from __future__ import annotations

import dataclasses
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.support.gains import check_gains, document_of
from tests.support.run_model import parse_size
from tests.support.runs import parse_run
from tracehint.hintgen.lint import run_rules
from tracehint.hintgen.lint.config import Settings
from tracehint.hintgen.lint.context import Context
from tracehint.hintgen.lint.finding import SEVERITIES, Finding
from tracehint.hintgen.lint.registry import FAMILIES, RULES, SECTIONS, load, pages

PAGES = Path(__file__).parent / "lint"
ROOT = Path(__file__).parent.parent
_EXAMPLE = re.compile(r"## (.+?)\n.*?```run\n(.*?)```.*?```findings\n(.*?)```", re.DOTALL)


def examples() -> list[tuple[str, str, str, str]]:
    found = []
    for page in sorted(PAGES.glob("*.md")):
        for title, run, expected in _EXAMPLE.findall(page.read_text()):
            found.append((page.stem, title, run, expected))
    return found


def lint(text: str, codes: Sequence[str] = tuple(RULES)) -> list[Finding]:
    run = parse_run(text)
    settings = Settings()
    for name, value in re.findall(r"^# setting (\w+) (\S+)$", text, re.MULTILINE):
        settings = dataclasses.replace(settings, **{name: parse_size(value)})
    context = Context(run.analysis(), run.bundle(), settings)
    findings = run_rules(context, codes)
    if len(codes) > 1:  # checking all findings together also checks each one
        check_gains(document_of(findings, context.simulation))
    return findings


def fields(finding: Finding) -> dict[str, str]:
    return {
        "files": str(finding.files),
        "bytes": str(finding.bytes),
        "storage": str(finding.saves.storage_bytes),
        "gbh": f"{finding.saves.gb_hours:.2f}",
        "calls": str(finding.saves.operations),
        "severity": finding.severity,
        "confidence": f"{finding.confidence:.2f}",
        "producers": finding.producers,
        "consumers": finding.consumers,
    }


@pytest.mark.parametrize(
    ("code", "run", "expected"),
    [pytest.param(e[0], *e[2:], id=f"{e[0]}-{e[1]}") for e in examples()],
)
def test_example(code: str, run: str, expected: str) -> None:
    lines = [line for line in expected.splitlines() if line.startswith(code)]
    compare(lint(run, [code]), lines)


def crossed() -> list[Any]:
    """Examples to run with all rules: one per rule, the others only in `make test-full`."""
    seen, found = Counter[str](), []
    for code, name, *texts in examples():
        seen[code] += 1
        marks = [pytest.mark.full] if seen[code] > 1 else []
        found.append(pytest.param(*texts, id=f"{code}-{name}", marks=marks))
    return found


@pytest.mark.slow
@pytest.mark.parametrize(("run", "expected"), crossed())
def test_no_other_rule_fires(run: str, expected: str) -> None:
    compare(lint(run), [line for line in expected.splitlines() if line.strip()])


def compare(findings: list[Finding], lines: list[str]) -> None:
    shown = [(f.code, f.template, fields(f), f.message) for f in findings]
    assert len(findings) == len(lines), shown
    for line in lines:
        rule, template, *wanted = line.split()
        match = [f for f in findings if f.code == rule and f.template == template.strip("-")]
        assert len(match) == 1, (line, shown)
        got = fields(match[0])
        for pair in wanted:
            key, _, value = pair.partition("=")
            number = key in ("bytes", "storage")
            assert got[key] == (str(parse_size(value)) if number else value), (pair, got)
        assert match[0].message and match[0].fix
        assert "\n" not in match[0].message


@pytest.mark.parametrize("code", RULES)
def test_rule_has_a_positive_and_a_negative_example(code: str) -> None:
    mine = [e for e in examples() if e[0] == code]
    assert any(line.startswith(code) for e in mine for line in e[3].splitlines()), "no positive"
    assert any(code not in e[3] for e in mine), "no negative"


@pytest.mark.parametrize("code", RULES)
def test_rule_is_documented(code: str) -> None:
    rule = load(code)
    assert rule.code == code
    assert code[:2] in FAMILIES
    assert rule.severity in SEVERITIES
    headings = re.findall(r"^## (.+)$", rule.page, re.MULTILINE)
    assert tuple(headings) == SECTIONS


def test_generated_pages_are_current() -> None:
    for name, text in pages().items():
        path = ROOT / "docs" / "rules" / name
        assert path.is_file() and path.read_text() == text, f"run scripts/rule_pages.py ({name})"
    assert {p.name for p in (ROOT / "docs" / "rules").glob("*.md")} == set(pages())
