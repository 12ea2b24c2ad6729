"""What `tracehint hints` answers: the rules, their score on a run, the rule of a path."""

from __future__ import annotations

import json
import os
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tracehint.commands._output import write_result

if TYPE_CHECKING:
    from tracehint.analyzer.model import Analysis
    from tracehint.hintgen.hints.model import HintFile
    from tracehint.hintgen.learn.rules import LearnOptions


@dataclass(frozen=True)
class Inquiry:
    """What is told instead of the rules: their score on a run, or the rule of a path."""

    other: str | None
    given: str
    path: str | None
    producer: str | None
    consumers: tuple[str, ...]


@dataclass(frozen=True)
class Result:
    """Where the answer goes, and how."""

    output: str | None
    fmt: str
    force: bool

    def write(self, data: Any, text: str) -> None:
        """As JSON or as text."""
        write_result(_dump(data) if self.fmt == "json" else text, self.output, force=self.force)


def score_on(
    other: Analysis, analyses: list[Analysis], options: LearnOptions, given: str
) -> tuple[dict[str, Any], str]:
    """How the rules of the runs do on another one: as JSON, and as text."""
    from tracehint.hintgen.learn.facts import facts_of
    from tracehint.hintgen.learn.rules import learn
    from tracehint.hintgen.score.score import score, score_text

    facts = [facts_of(analysis) for analysis in analyses]
    rules = learn(analyses, options, facts)
    data = score(rules, analyses, other, given=given, facts=facts)
    return data, score_text(data)


def explain_path(
    hints: HintFile, path: str, question: Inquiry, nodes: int | None, result: Result
) -> None:
    """Which rule fires for the path."""
    from tracehint.hintgen.match.explain import explain, explain_text

    raw = as_in_rules(path)
    data = explain(hints, raw, question.producer, question.consumers, nodes)
    text = explain_text(data)
    _where_to_look(raw, data["reason"])
    result.write(data, text)


def write_rules(hints: HintFile, result: Result) -> None:
    """The rules into a file, or onto the screen."""
    from tracehint.hintgen.hints.hintfile import to_json
    from tracehint.hintgen.match.explain import summary_text

    if not result.output:
        result.write(to_json(hints), summary_text(hints))
        return
    write_result(_dump(to_json(hints)), result.output, force=result.force)
    click.echo(summary_text(hints), nl=False, err=True)
    _next(result.output)


def as_in_rules(path: str) -> bytes:
    """The path as rules name files: below the directory in which one is, without `.` and `..`."""
    full = os.path.abspath(path)  # noqa: PTH100 (links stay as given: the file need not be there)
    here = os.getcwd().rstrip("/") + "/"  # noqa: PTH109
    inside = full.startswith(here)
    return os.fsencode(full.removeprefix(here) if inside else full)


def _where_to_look(raw: bytes, reason: str) -> None:
    if raw.startswith(b"/") and reason == "no_rule":
        click.echo(
            "Rules name files as seen from the data's directory: go there, or give the name "
            "from there.",
            err=True,
        )


def _next(output: str) -> None:
    """What can be done with the hint file; never a command that would replace it."""
    if output == "-":
        return
    script = "hints.sh" if Path(output).name != "hints.sh" else "hints-script.sh"
    click.echo(f"Next: tracehint emit {shlex.quote(output)} --store xattr -o {script}", err=True)


def _dump(data: Any) -> str:
    return json.dumps(data, indent=1) + "\n"
