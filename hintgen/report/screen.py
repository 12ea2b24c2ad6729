"""First screen of a run: result, recommended actions and next commands."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tracehint.analyzer.text import printable, shorten_head
from tracehint.hintgen.summary.summary import io_bottleneck
from tracehint.hintgen.summary.tallies import stages, totals
from tracehint.hintgen.text.units import seconds
from tracehint.schemas.wording import plural

if TYPE_CHECKING:
    from rich.console import Console

    from tracehint.analyzer.model import Analysis
    from tracehint.hintgen.report.actions import Action
    from tracehint.hintgen.summary.gain import Simulation

_COLUMN = 8
_NAMES = {"ebpf": "eBPF", "preload": "preload library", "strace": "strace", "darshan": "Darshan"}


def print_screen(
    analysis: Analysis,
    simulation: Simulation,
    todo: Sequence[Action],
    steps: Sequence[str],
    console: Console,
) -> None:
    """Print the screen in the console's width. `steps`: command lines for `Next`."""
    from rich.text import Text

    for text in analysis.run.get("troubles", []):
        _block(console, "", [printable(text)], "bold red")
    console.print(Text(headline(analysis, console.width), "bold"))
    console.print()
    more = filter(None, (simulation.recorded, io_bottleneck(stages(analysis))))
    _block(console, "Result", [*simulation.lines(), *more])
    for at, action in enumerate(todo):
        saves = f": {action.saves_text}" if action.saves else ""
        lines = [f"{at + 1}. {action.text}{saves}"]
        _block(console, "Do" if not at else "", lines)
        for line in action.edit.splitlines():
            shown = " " * (_COLUMN + 3) + printable(line)
            console.print(Text(shown, "cyan"), soft_wrap=True)  # lines to copy are not cut
    for at, step in enumerate(steps):
        head = Text(("Next" if not at else "").ljust(_COLUMN), "bold")
        console.print(head + Text(step), soft_wrap=True)  # a command line is not cut


def headline(analysis: Analysis, width: int) -> str:
    """Return the command, its tasks and time, and the completeness of the trace."""
    run, counted = analysis.run, totals(analysis)
    parts = [plural(counted["tasks"], "task"), seconds(run["duration_s"]), coverage(run)]
    if counted["failed"]:
        parts.insert(1, f"{counted['failed']:,} failed")
    rest = ": " + ", ".join(parts)
    command = printable(" ".join(run["command"])) or "(imported run)"
    return _shorten_command(command, max(16, width - len(rest))) + rest


def _shorten_command(command: str, width: int) -> str:
    """Return the program and the last words that fit; if none fits, the head and the end."""
    program, *others = command.split(" ")
    shorter = (" ".join([program, "…", *others[n:]]) for n in range(1, len(others)))
    fits = (text for text in (command, *shorter) if len(text) <= width)
    return next(fits, shorten_head(command, width))


def coverage(run: dict[str, Any]) -> str:
    """Return `trace complete (eBPF)`, or the coverage and the number of lost events."""
    collector = (run["collector"] or "unknown").removeprefix("import:")
    known = f"({_NAMES.get(collector, printable(collector))})"
    score, lost = run["completeness"]["score"], run["lost_events"]
    if score >= 1 and not lost and not run["completeness"].get("losses"):
        return f"trace complete {known}"
    return f"trace incomplete {known}: coverage {score:.2f}, {plural(lost, 'event')} dropped"


def _block(console: Console, name: str, lines: Sequence[str], style: str = "") -> None:
    """Print wrapped lines to the right of a name."""
    from rich.text import Text

    width = max(20, console.width - 1 - _COLUMN)
    for at, part in enumerate(part for line in lines for part in textwrap.wrap(line, width)):
        head = Text((name if not at else "").ljust(_COLUMN), "bold")
        console.print(head + Text(part, style))
