"""Findings for a terminal, wrapped to its width: a heading for each rule, the largest under it."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tracehint.hintgen.lint.finding import by_rule, together, total
from tracehint.hintgen.text.escape import shorten, terminal
from tracehint.hintgen.text.units import plural, seconds, size

if TYPE_CHECKING:
    from rich.console import Console

    from tracehint.hintgen.lint.finding import Finding, Savings
    from tracehint.hintgen.lint.render import Info

FEW = 2  # findings of one rule that are all shown; of more only the largest
NAMES, NAME = 3, 40  # of files that are not shown; characters of one
_STYLE = {"error": "bold red", "warning": "yellow", "info": "cyan"}


def savings_text(saves: Savings) -> str:
    """What the finding would save, empty when nothing is known."""
    parts = []
    if saves.network_bytes:
        parts.append(f"{size(saves.network_bytes)} network")
    if saves.waiting_bytes:
        parts.append(f"{size(saves.waiting_bytes)} waiting")
    if saves.storage_bytes:
        parts.append(f"{size(saves.storage_bytes)} storage")
    if saves.gb_hours >= 0.01:
        parts.append(f"{saves.gb_hours:,.2f} GB-hours")
    if saves.operations:
        parts.append(plural(saves.operations, "call"))
    if saves.seconds and saves.seconds[1] <= 0:
        parts.append("no time")
    elif saves.seconds:
        parts.append(f"{seconds(saves.seconds[0])} to {seconds(saves.seconds[1])}")
    return ", ".join(parts)


def render(findings: Sequence[Finding], info: Info) -> str:
    """By rule: its heading, message, files, assumption and remedy of findings; then a total."""
    from rich.console import Console
    from rich.text import Text

    out = io.StringIO()
    console = Console(
        file=out,
        width=max(40, info.width),
        color_system="standard" if info.color else None,
        force_terminal=info.color,
        highlight=False,
        emoji=False,
        markup=False,
        legacy_windows=False,
        no_color=not info.color,
    )
    for text in info.troubles:
        console.print(Text(terminal(text), "bold red"))
    told: dict[str, str] = {}
    for own in by_rule(findings):
        _rule(console, own, told, len(own) if info.every or len(own) <= FEW else 1)
    _total(console, findings, info)
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines()).rstrip("\n")


def _rule(console: Console, own: list[Finding], told: dict[str, str], shown: int) -> None:
    """A heading with what all findings of a rule save, and the first `shown` of them."""
    from rich.text import Text

    first = own[0]
    head = Text(f"{first.code} {first.name}", _STYLE[first.severity])
    saved = savings_text(first.saves if len(own) == 1 else together(own))
    if len(own) > 1:
        head.append(f"  {plural(len(own), 'finding')}")
    if saved:
        head.append(f"  saves {saved}" if len(own) == 1 else f", save {saved}", "bold")
    console.print(head)
    for at, finding in enumerate(own[:shown]):
        if at:
            console.print()
        _one(console, finding, told, alone=len(own) == 1)
    if left := own[shown:]:
        _indented(console, terminal(_left(left)), "dim")
    console.print()


def _left(left: Sequence[Finding]) -> str:
    """How many are not shown, what they save, and some of their files."""
    saved = savings_text(together(left))
    names = [shorten(terminal(f.template), NAME) for f in left if f.template][:NAMES]
    said = f"and {len(left)} more" + (f", {saved}" if saved else "") + " (--all)"
    return said + (f": {', '.join(names)}" + ", ..." * (len(left) > len(names)) if names else "")


def _one(console: Console, finding: Finding, told: dict[str, str], *, alone: bool) -> None:
    """A finding; `told` has the remedies that were printed before, and for which rule. `alone`:
    the heading has said what it saves."""
    saved = "" if alone else savings_text(finding.saves)
    lines = [(finding.message, "")]
    if finding.template:
        lines.append((_files(finding, console.width - 4), ""))
    if saved:
        lines.append((f"saves {saved}", "bold"))
    if finding.confidence < 1:
        lines.append((f"confidence {finding.confidence:.2f}", "dim"))
    if finding.assumed:
        lines.append(("assumed: " + "; ".join(finding.assumed), "dim"))
    known = told.get(finding.fix)
    told.setdefault(finding.fix, finding.code)
    lines.append(("fix: " + (f"as above ({known})" if known else finding.fix), "green"))
    for line, style in lines:
        _indented(console, terminal(line), style)


def _indented(console: Console, line: str, style: str) -> None:
    if console.no_color and line.isascii() and len(line) <= console.width - 2:
        console.file.write(f"  {line}\n")  # nothing to wrap or to color: hundreds of lines
        return
    from rich.padding import Padding
    from rich.text import Text

    console.print(Padding(Text(line, style, overflow="fold"), (0, 0, 0, 2)))


def _files(finding: Finding, width: int) -> str:
    flow = " -> ".join(t for t in (finding.producers, finding.consumers) if t)
    name = shorten(terminal(finding.template), max(24, width - 2))
    flow = shorten(terminal(flow), max(24, width - 10))
    return f"{name}  [{flow}]" if flow else name


def _totals(findings: Sequence[Finding], info: Info) -> list[str]:
    parts = [plural(len(findings), info.noun)]
    if info.saved is not None and info.saved.text:
        parts.append(f"all hints together: {info.saved.text}")
    if info.simulated:
        parts.append(info.simulated)
    freed = total(findings, "storage_bytes")
    return [*parts, f"to be freed: {size(freed)} storage"] if freed else parts


def _total(console: Console, findings: Sequence[Finding], info: Info) -> None:
    from rich.text import Text

    if findings:
        console.print(Text("; ".join(_totals(findings, info)), "bold"))
        if info.hint:
            console.print(Text(info.hint, "dim"))
    else:
        console.print(Text(f"No {info.noun}s.", "bold green"))
    if info.suppressed:
        console.print(Text(f"{plural(info.suppressed, 'finding')} hidden by the baseline."))
    reasons = sorted(set(info.skipped.values()))
    for reason in reasons:
        codes = [c for c, r in info.skipped.items() if r == reason]
        why = {
            "declared": "no declared graph (give the workflow file: lint BUNDLE WORKFLOW)",
            "hosts": "the run used one host",
            "bundle": "the input is an analysis, not a bundle",
        }[reason]
        console.print(Text(f"Not checked, {why}: {' '.join(codes)}", "dim"))
