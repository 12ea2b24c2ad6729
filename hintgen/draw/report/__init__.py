"""The report: one HTML page that holds everything and asks the network for nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tracehint.hintgen.hints.model import HintFile
    from tracehint.hintgen.inputs import Input
    from tracehint.hintgen.lint.context import Context
    from tracehint.hintgen.lint.finding import Finding


def report_html(
    run: Input,
    hints: HintFile | None = None,
    findings: Sequence[Finding] | None = None,
    context: Context | None = None,
    prediction: dict[str, Any] | None = None,
    decision: str = "",
    comparison: dict[str, Any] | None = None,
) -> str:
    """HTML text about a run, with the findings of lint (None: asked here) and, where given, the
    hint rules. `context` is the run as lint asks it, where somebody has made it: its database
    serves the page as well. `prediction`: a sweep for the panel "What if" (whatif.py).
    `decision`: the sentence that the page begins with. `comparison`: of an earlier run with this
    one, for the panel "Compare" (proof/result.py)."""
    from tracehint.hintgen.draw.report.data import collect
    from tracehint.hintgen.draw.report.page import page
    from tracehint.hintgen.lint import run_rules
    from tracehint.hintgen.lint.context import Context

    context = context or Context(run.analysis, run.bundle, bundle_name=run.name)
    if findings is None:
        findings = run_rules(context)
    return page(
        collect(
            run.analysis, findings, hints, run.name,
            con=context.con, saves=context.saved, prediction=prediction, decision=decision,
            comparison=comparison, labelled=context.labelled,
        )
    )  # fmt: skip  # a table
