"""`predict --metadata`, and its text: the answer first, a table, what follows from it."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tracehint.commands._predict_output import seconds, table

if TYPE_CHECKING:
    from tracehint.analyzer.predict.prediction import Configuration
    from tracehint.commands._workload import Loaded

Row = dict[str, Any]
_DIRECTORIES = 5


def predicted_metadata(
    run: Path, loaded: Loaded, point: Configuration, names: Sequence[str], seed: int
) -> Row:
    """The object `metadata` of `--format json`; the calls counted in a bundle are taken in. Where
    the placement is a plan, tasks are at the sites of their parts."""
    from tracehint.analyzer.predict.metadata.prediction import predict_metadata
    from tracehint.analyzer.predict.metadata.sites import at_nodes
    from tracehint.analyzer.predict.metadata.work import metadata_work
    from tracehint.schemas.kinds import what_is
    from tracehint.schemas.store import read_bundle

    bundle = read_bundle(run) if what_is(run) == "bundle" else None
    work = metadata_work(loaded.analysis, loaded.work, bundle)
    plan = point.strategy(loaded.work, point.cluster).plan
    if plan is not None:
        work = at_nodes(work, plan, point.cluster)
    return predict_metadata(work, point.cluster, names, seed=seed)


def write_pins(data: Row, output: str, *, force: bool) -> None:
    """Write a hint file that gives each of the directories to its site; says what is left out."""
    from tracehint.commands._output import write_result
    from tracehint.hintgen.hints.folders import FolderHints, sayable
    from tracehint.hintgen.hints.hintfile import to_json
    from tracehint.hintgen.hints.model import HintFile
    from tracehint.hintgen.hints.pathtext import to_text
    from tracehint.hintgen.hints.vocabulary import safe_name

    found = [(os.fsencode(row["path"]), safe_name(row["site"])) for row in data["directories"]]
    kept = tuple(
        FolderHints(to_text(path), {"Metadata": site}) for path, site in found if sayable(path)
    )
    if len(kept) < len(found):
        left = len(found) - len(kept)
        click.echo(f"{left} directories outside the data root are not in {output}", err=True)
    if not kept:
        click.echo(f"No directory had better live elsewhere: {output} says nothing", err=True)
    hints = HintFile((), {"nodes": 1}, (), directories=kept)
    write_result(json.dumps(to_json(hints), indent=1) + "\n", output, force=force)


def metadata_text(data: Row) -> list[str]:
    """Lines for the object `metadata` of `--format json`."""
    rows = data["strategies"]
    return [
        _answer(data),
        "",
        *_table(rows, data["best"]),
        *_directories(data["directories"]),
        "",
        "Assumed for metadata:",
        *(f"  - {note}" for note in data["assumptions"]),
        f"Left out for metadata: {data['left_out']}.",
    ]


def _answer(data: Row) -> str:
    best = next(row for row in data["strategies"] if row["name"] == data["best"])
    centre = f" at {best['centre']}" if best["centre"] else ""
    cost = best["seconds"] - data["seconds_without"]
    said = (
        f"Metadata: {best['name']}{centre}: {seconds(best['seconds'])}, of which "
        f"{seconds(max(0.0, cost))} wait for {data['operations']:,} operations"
    )
    if data["alike"]:
        return f"{said}; {' and '.join(data['alike'])} would do as well."
    if data["margin"] is None:
        return f"{said}."
    return f"{said}; the next one takes {data['margin']:.0%} longer."


def _table(rows: list[Row], best: str) -> list[str]:
    head = ["metadata", "time", "90 %", "half done", "between sites", "seen elsewhere after"]
    cells = []
    for row in rows:
        stale = row["staleness_seconds"]
        cells.append(
            [
                _named(row) + (" *" if row["name"] == best else ""),
                seconds(row["seconds"]),
                f"{seconds(row['seconds_low'])} - {seconds(row['seconds_high'])}",
                seconds(row["progress_seconds"][4]),
                f"{row['wide_area_round_trips']:,}",
                f"{seconds(stale['mean'])} (at most {seconds(stale['most'])})" if stale else "-",
            ]
        )
    return table(head, cells)


def _named(row: Row) -> str:
    return f"{row['name']} at {row['centre']}" if row["centre"] else str(row["name"])


def _directories(rows: list[Row]) -> list[str]:
    if not rows:
        return []
    lines = ["", "Directories that had better live at another site:"]
    lines += [
        f"  {row['path'] or '.'}/ at {row['site']}: {row['from_site']:,} of "
        f"{row['operations']:,} operations come from there"
        for row in rows[:_DIRECTORIES]
    ]
    if len(rows) > _DIRECTORIES:
        lines.append(f"  and {len(rows) - _DIRECTORIES} more (--format json)")
    return lines
