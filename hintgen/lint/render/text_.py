"""Findings for a terminal, wrapped to its width."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tracehint.hintgen.lint.finding import total
from tracehint.hintgen.text.escape import shorten, terminal
from tracehint.hintgen.text.units import plural, seconds, size

if TYPE_CHECKING:
    from rich.console import Console

    from tracehint.hintgen.lint.finding import Finding, Savings
    from tracehint.hintgen.lint.render import Info

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
    """Head line, message, files, assumption and remedy of each finding; then a total."""
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
    for finding in findings:
        _one(console, finding, told)
    _total(console, findings, info)
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines()).rstrip("\n")


def _one(console: Console, finding: Finding, told: dict[str, str]) -> None:
    """A finding; `told` has the remedies that were printed before, and for which rule."""
    from rich.text import Text

    saved = savings_text(finding.saves)
    head = Text(f"{finding.code} {finding.name}", _STYLE[finding.severity])
    if saved:
        head.append(f"  saves {saved}", "bold")
    console.print(head)
    lines = [(finding.message, "")]
    if finding.template:
        lines.append((_files(finding, console.width - 4), ""))
    if finding.confidence < 1:
        lines.append((f"confidence {finding.confidence:.2f}", "dim"))
    if finding.assumed:
        lines.append(("assumed: " + "; ".join(finding.assumed), "dim"))
    known = told.get(finding.fix)
    told.setdefault(finding.fix, finding.code)
    lines.append(("fix: " + (f"as above ({known})" if known else finding.fix), "green"))
    for line, style in lines:
        _indented(console, terminal(line), style)
    console.print()


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
