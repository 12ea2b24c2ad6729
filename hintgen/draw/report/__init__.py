"""The report: one HTML page that holds everything and asks the network for nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tracehint.hintgen.hints.model import HintFile
    from tracehint.hintgen.inputs import Input
    from tracehint.hintgen.lint.context import Context
    from tracehint.hintgen.lint.finding import Finding


def report_html(
    run: Input,
    hints: HintFile | None = None,
    lint: Context | None = None,
    findings: Sequence[Finding] | None = None,
) -> str:
    """HTML text about a run with, where given, the hint rules. `lint`, `findings`: the run under
    the linter and what that found (None: asked here)."""
    from tracehint.hintgen.draw.report.data import collect
    from tracehint.hintgen.draw.report.page import page
    from tracehint.hintgen.lint import run_rules
    from tracehint.hintgen.lint.context import Context

    lint = lint or Context(run.analysis, run.bundle, bundle_name=run.name)
    findings = run_rules(lint) if findings is None else findings
    return page(collect(run.analysis, findings, hints, run.name, lint.saved))
