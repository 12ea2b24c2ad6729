"""What `profile` makes of one run: costly parts once, and some of them beside the others."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tracehint.errors import TracehintError

if TYPE_CHECKING:
    import pyarrow as pa

    from tracehint.analyzer.model import Analysis
    from tracehint.commands._planning import DecidedPlanning
    from tracehint.hintgen.hints.model import HintFile
    from tracehint.hintgen.inputs import Input
    from tracehint.hintgen.lint.context import Context
    from tracehint.hintgen.lint.finding import Finding
    from tracehint.hintgen.match.match import Matcher

SMALL = 20_000  # tasks of a run of which steps are made at one time


@dataclass
class Work:
    """The run and the directory that the results go to; costly parts are made once."""

    bundle: Path
    folder: Path
    cut: dict[str, Any] = field(default_factory=dict)  # what counts as a task
    nodes: int | None = None  # that savings are counted for; None: as the run had
    cluster: str | None = None  # that the next run is planned for; None: a ready-made one
    begun: Callable[[], None] | None = None  # who waits for what a thread is making

    @cached_property
    def run(self) -> Input:
        """The bundle and its analysis."""
        from tracehint.analyzer.model import Options
        from tracehint.hintgen.inputs import load_run

        return load_run(short(self.bundle), Options(nodes=self.nodes, **self.cut))

    @cached_property
    def hints(self) -> HintFile:
        """The rules for the next run; where a cluster is known, those that win there, planned."""
        decided, _ = self.decision
        return decided.hints if decided is not None and decided.cluster else self.learned

    @cached_property
    def facts(self) -> pa.Table:
        """What rules are learned from, file by file."""
        from tracehint.hintgen.learn.facts import facts_of

        return facts_of(self.run.analysis)

    @cached_property
    def learned(self) -> HintFile:
        """The rules, chosen file by file."""
        from tracehint.hintgen.learn.rules import learn

        return learn([self.run.analysis], facts=[self.facts])

    @cached_property
    def matcher(self) -> Matcher:
        """Finds the rules of names, and remembers what it found out about a name."""
        from tracehint.hintgen.match.match import Matcher

        return Matcher(self.learned)

    @cached_property
    def decision(self) -> tuple[DecidedPlanning | None, str]:
        """What the run would gain, and the sentence that says it."""
        from tracehint.commands._planning import decided_or_why

        run = self.run.analysis
        return decided_or_why(run, self.learned, self.cluster, self.nodes, self.facts, self.matcher)

    @cached_property
    def lint(self) -> Context:
        """The run under the linter."""
        from tracehint.hintgen.lint.context import Context

        return Context(self.run.analysis, self.run.bundle, bundle_name=short(self.bundle))

    @cached_property
    def findings(self) -> list[Finding]:
        """What all rules find."""
        from tracehint.hintgen.lint import run_rules

        return run_rules(self.lint)

    @cached_property
    def picture(self) -> bytes | TracehintError:
        """The graph as SVG, or why there is none."""
        from tracehint.hintgen.draw import dot
        from tracehint.hintgen.draw.build import build
        from tracehint.hintgen.draw.model import title

        drawn = build(self.run.analysis, con=self.lint.con)
        text = dot.to_dot(drawn, title(self.run.analysis.run, self.bundle))
        try:
            return dot.draw(text, "svg")
        except TracehintError as error:
            return error

    def begin(self) -> Analysis:
        """Analyze; what needs no rules is made in a thread, beside their learning and planning:
        DuckDB and Graphviz leave Python to others. Of a large run it waits until it is asked for,
        as two steps at one time take the memory of both.
        """
        from tracehint.analyzer.execution.resources import Resources, cores
        from tracehint.analyzer.execution.threads import beside

        found = self.run.analysis
        small = found.tasks.num_rows <= SMALL
        self.begun = beside(self._picture_and_findings, Resources(cores() if small else 1))
        return found

    def _picture_and_findings(self) -> None:
        with contextlib.suppress(Exception):  # told by who asks for it again
            _ = self.picture, self.findings

    def joined(self) -> Work:
        """This, when nothing else is at work on it."""
        if self.begun is not None:
            self.begun()
            self.begun = None
        return self


def short(path: Path) -> str:
    """The path as seen from here, where that is shorter."""
    try:
        return str(path.relative_to(Path.cwd()))
    except (ValueError, OSError):
        return str(path)
