"""Renderers of findings: format name -> module with `render(findings, info) -> str`."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from dataclasses import dataclass, field

from tracehint.hintgen.lint.finding import Finding
from tracehint.hintgen.summary.saved import Saved

FORMATS = ("text", "json", "sarif", "github", "junit")


@dataclass(frozen=True)
class Info:
    """What a renderer may say beside the findings."""

    tool: str  # "tracehint 0.1.0"
    subject: str  # the bundle, or "A -> B" of a diff
    workflow: str = ""  # the workflow file, if one was given
    rules: dict[str, str] = field(default_factory=dict)  # code -> name of all rules that ran
    skipped: dict[str, str] = field(default_factory=dict)  # code -> missing fact
    troubles: Sequence[str] = ()  # of the run: said before the findings
    suppressed: int = 0  # findings that the baseline hides
    saved: Saved | None = None  # what all placement hints of the run would save; None: no matter
    simulated: str = ""  # what all hints would do on the cluster that was named
    noun: str = "finding"  # what the text counts
    hint: str = "Run `tracehint explain CODE` for what a finding means."
    every: bool = False  # the text shows all findings, not the largest of each rule
    width: int = 80
    color: bool = False


def render(name: str, findings: Sequence[Finding], info: Info) -> str:
    """The findings in the format `name`, one of FORMATS."""
    if name not in FORMATS:
        raise ValueError(name)
    module = importlib.import_module(f"tracehint.hintgen.lint.render.{name}_")
    text: str = module.render(findings, info)
    return text
