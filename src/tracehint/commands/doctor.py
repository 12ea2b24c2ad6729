"""`tracehint doctor`: which collectors can run here, what each would miss and cost."""

from __future__ import annotations

import dataclasses
import json
import textwrap
from typing import Any

import click

from tracehint.collectors.registry import COLLECTORS, check
from tracehint.commands._checks import CHECKS, Finding
from tracehint.errors import EXIT_FINDINGS, EXIT_OK


@click.command()
@click.option("--format", "fmt", type=click.Choice(["text", "json"]), default="text")
def command(fmt: str) -> int:
    """Tell which collectors can run here, what each would miss and cost, and the remedy.

    0: a collector can run that `auto` would take; 1: none can.

    Example: tracehint doctor
    """
    answers = {name: check(name) for name in COLLECTORS}
    findings = [probe() for probe in CHECKS]
    picked = next((n for n, e in COLLECTORS.items() if e.auto and answers[n].decides), None)
    if picked is not None and answers[picked].broken:
        picked = None
    collectors = [
        {"name": name, **dataclasses.asdict(found), "blind_to": list(found.blind_to)}
        for name, found in answers.items()
    ]
    if fmt == "json":
        data = {
            "schema": "tracehint.doctor/1", "auto": picked, "collectors": collectors,
            "checks": [dataclasses.asdict(f) for f in findings],
        }  # fmt: skip  # a table
        click.echo(json.dumps(data, indent=1))
    else:
        click.echo(_text(collectors, findings, picked), nl=False)
    return EXIT_OK if picked else EXIT_FINDINGS


def _text(collectors: list[dict[str, Any]], findings: list[Finding], picked: str | None) -> str:
    lines = ["Collectors (auto takes the first that can run)"]
    for entry in collectors:
        chosen = "  <- auto" if entry["name"] == picked else ""
        lines.append(f"  {'yes' if entry['usable'] else 'no ':<4}{entry['name']}{chosen}")
        lines += _indented(entry["reason"])
        if entry["blind_to"]:
            lines += _indented("cannot see: " + ", ".join(entry["blind_to"]))
        if entry["cost"]:
            lines += _indented("cost: " + entry["cost"])
        if not entry["usable"] and entry["remedy"]:
            lines += _indented("remedy: " + entry["remedy"])
    lines += ["", "Conditions"]
    for found in findings:
        lines.append(f"  {found.state:<8}{found.name}: {found.text}")
        if found.remedy:
            needed = f" (for {found.needed_by})" if found.needed_by else ""
            lines += _indented(f"remedy{needed}: {found.remedy}")
    return "\n".join(lines) + "\n"


def _indented(text: str) -> list[str]:
    return textwrap.wrap(
        text, 80, initial_indent="      ", subsequent_indent="        ", break_long_words=False
    )
