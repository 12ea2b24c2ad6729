"""`tracehint doctor`: which collectors and ways to set hints can run here, and what each costs."""

from __future__ import annotations

import dataclasses
import json
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tracehint.app.checks import (
    CHECKS,
    Condition,
    inspect_program,
    inspect_programs,
    program_lines,
    workflow_lines,
)
from tracehint.collectors.registry import COLLECTORS, check
from tracehint.commands._options import format_option
from tracehint.errors import EXIT_FINDINGS, EXIT_OK

if TYPE_CHECKING:
    from tracehint.adapters.creation.launch import MechanismCheck


@click.command()
@format_option
@click.option("--store", metavar="STORE|all", help="Show what a store supports instead.")
@click.option(
    "--map",
    "places",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="With --store: names of the site's places (docs: stores).",
)
@click.option(
    "--program",
    "programs",
    multiple=True,
    metavar="PROGRAM",
    help="Show whether the preload collector records it; repeatable.",
)
@click.argument("workflow", metavar="[-- COMMAND...]", nargs=-1, type=click.UNPROCESSED)
def command(
    fmt: str,
    store: str | None,
    places: Path | None,
    programs: tuple[str, ...],
    workflow: tuple[str, ...],
) -> int:
    """Show which collectors can run here, what each would miss and cost, and the remedy.

    With a command: which programs that it and its scripts name the preload collector would not
    see. The command is not run.

    With --store: which hints that store supports, when it acts, who may set them, or the
    alternative.

    0: a collector can run that `auto` would take; 1: none can.

    Example: tracehint doctor -- snakemake --cores 2
    """
    if store is not None:
        return _store(store, places, fmt)
    from tracehint.adapters.creation.launch import check_mechanism

    picked, collectors = _collectors()
    findings, ways = [probe() for probe in CHECKS], [check_mechanism()]
    if fmt == "json":
        rows: Mapping[str, Sequence[Any]] = {
            "checks": findings,
            "ways": ways,
            "workflow": inspect_programs(workflow),
        }
        data: dict[str, Any] = {"auto": picked, "collectors": collectors}
        data["programs"] = [dataclasses.asdict(inspect_program(name)) for name in programs]
        data |= {name: [dataclasses.asdict(row) for row in found] for name, found in rows.items()}
        click.echo(json.dumps({"schema": "tracehint.doctor/1", **data}, indent=1))
    else:
        click.echo(_text(collectors, findings, ways, picked), nl=False)
        click.echo("".join(program_lines(programs)), nl=False)
        click.echo("".join(workflow_lines(workflow)), nl=False)
    return EXIT_OK if picked else EXIT_FINDINGS


def _collectors() -> tuple[str | None, list[dict[str, Any]]]:
    """Return the collector that `auto` would use, and the check of each."""
    answers = {name: check(name) for name in COLLECTORS}
    picked = next((n for n, e in COLLECTORS.items() if e.auto and answers[n].decides), None)
    if picked is not None and answers[picked].broken:
        picked = None
    return picked, [
        {"name": name, **dataclasses.asdict(found), "blind_to": list(found.blind_to)}
        for name, found in answers.items()
    ]


def _store(name: str, places: Path | None, fmt: str) -> int:
    from tracehint.app.store_facts import facts, lines

    records = facts(name, places)
    if fmt == "json":
        click.echo(json.dumps({"schema": "tracehint.stores/1", "stores": records}, indent=1))
    else:
        click.echo("\n\n".join("\n".join(lines(record)) for record in records))
    return EXIT_OK


def _text(
    collectors: list[dict[str, Any]],
    findings: list[Condition],
    ways: Sequence[MechanismCheck],
    picked: str | None,
) -> str:
    lines = ["Collectors (auto selects the first that can run)"]
    for entry in collectors:
        chosen = "  <- auto" if entry["name"] == picked else ""
        lines.append(f"  {'yes' if entry['usable'] else 'no ':<4}{entry['name']}{chosen}")
        lines += _indent(entry["reason"])
        if entry["incomplete"]:
            lines += _indent("incomplete: " + entry["incomplete"])
        if entry["blind_to"]:
            lines += _indent("cannot see: " + ", ".join(entry["blind_to"]))
        if entry["cost"]:
            lines += _indent("cost: " + entry["cost"])
        if not entry["usable"] and entry["remedy"]:
            lines += _indent("remedy: " + entry["remedy"])
    lines += ["", "Hints at the creation of files (`tracehint run`)"]
    for way in ways:
        lines.append(f"  {'yes' if way.usable else 'no ':<4}{way.name}")
        lines += _indent(way.reason)
        lines += _indent(f"reaches: {way.reaches}")
        lines += _indent(f"cost: {way.cost}")
        if way.remedy:
            lines += _indent(f"remedy: {way.remedy}")
    lines += ["", "Conditions"]
    for found in findings:
        lines.append(f"  {found.state:<8}{found.name}: {found.text}")
        if found.remedy:
            needed = f" (for {found.needed_by})" if found.needed_by else ""
            lines += _indent(f"remedy{needed}: {found.remedy}")
    return "\n".join(lines) + "\n"


def _indent(text: str) -> list[str]:
    return textwrap.wrap(
        text, 80, initial_indent="      ", subsequent_indent="        ", break_long_words=False
    )
