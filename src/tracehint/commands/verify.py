"""`tracehint verify`: read hints back through the store's own reader."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tracehint.app.stores import (
    make_plan,
    open_directory,
    report_gaps,
    require_store,
    verify_by_calls,
    without_mount,
)
from tracehint.commands._options import format_option
from tracehint.commands._stores import hints_below
from tracehint.errors import EXIT_FINDINGS, EXIT_OK
from tracehint.schemas.wording import plural

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tracehint.adapters.apply.readback import Outcome, Reading
    from tracehint.adapters.plan import TagPlan
    from tracehint.adapters.stores.base import Store
    from tracehint.adapters.stores.survival import Lost
    from tracehint.hintgen.hints.model import HintFile


@click.command()
@hints_below
@click.option(
    "--run",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    metavar="BUNDLE",
    help="Recording of the run that followed: shows which hints it removed, and how.",
)
@click.option("--strict", is_flag=True, help="Count a missing file as a mismatch.")
@format_option
def command(
    hints: Path,
    directory: Path,
    store: str,
    prefix: str | None,
    places: Path | None,
    run: Path | None,
    strict: bool,
    fmt: str,
    **which: Any,
) -> int:
    """Compare the hints of HINTS with what the store reports below DIRECTORY.

    Of a store without mount DIRECTORY is the directory there, and its tool is asked file by file.
    Exits with 1 when a hint is missing or differs, or when no hint could be checked at all.

    Example: tracehint verify hints.json --store xattr /scratch/run7
    """
    from tracehint.adapters.apply.readback import Outcome, other_values, with_others
    from tracehint.hintgen.hints.hintfile import load

    chosen = require_store(store, prefix, places)
    outcome = Outcome()
    rules = load(hints)
    plan, readings = _readings(rules, directory, chosen, which, outcome)
    readings = with_others(readings, other_values(hints, rules, directory, chosen, run, which))
    taken = _taken_files(run, plan)
    counts = Counter(reading.state for reading in readings)
    bad = [reading for reading in readings if reading.state != "ok"]
    fine = bool(counts["ok"]) and not bad and not outcome.failed
    fine = fine and not (strict and outcome.absent)
    if fmt == "json":
        _json(chosen.name, counts, bad, outcome, fine, taken)
    else:
        _text(counts, bad, outcome)
        _say_taken(taken, plan)
    return EXIT_OK if fine else EXIT_FINDINGS


def _readings(
    rules: HintFile, directory: Path, store: Store, which: dict[str, Any], outcome: Outcome
) -> tuple[TagPlan, list[Reading]]:
    from tracehint.adapters.apply.readback import verify

    if (called := without_mount(store, directory)) is not None:
        plan = make_plan(rules, **which)
        return plan, list(verify_by_calls(called, plan, outcome))
    with open_directory(directory) as root:
        plan = make_plan(rules, root_fd=root.fd, **which)
        return plan, list(verify(root, store, plan.targets, outcome))


def _taken_files(run: Path | None, plan: TagPlan) -> dict[bytes, Lost]:
    """Return hinted files whose hints the run removed."""
    from tracehint.adapters.stores.survival import lost_in

    files = [target.path for target in plan.targets if target.kind == "file"]
    return lost_in(run, files) if run is not None else {}


def _say_taken(taken: dict[bytes, Lost], plan: TagPlan) -> None:
    from tracehint.adapters.stores.survival import explain_losses

    for line in explain_losses(taken, sum(target.kind == "file" for target in plan.targets)):
        click.echo(line, err=True)


def _text(counts: Counter[str], bad: list[Reading], outcome: Outcome) -> None:
    from tracehint.hintgen.text.escape import text

    for reading in bad:
        got = "nothing" if reading.got is None else text(reading.got[:200])
        wanted = text(reading.setting.value)
        click.echo(
            f"{text(reading.path) or '.'}: {reading.setting.key}: expected {wanted}, found {got}"
        )
    for path, why in outcome.failed:
        click.echo(f"{text(path) or '.'}: {why}")
    report_gaps(outcome.gap_counts())
    click.echo(
        f"{plural(counts['ok'], 'attribute')} correct, {counts['missing']:,} missing, "
        f"{counts['differs']:,} different, {plural(outcome.absent, 'file')} missing, "
        f"{len(outcome.failed):,} unreadable",
        err=True,
    )
    if not counts:
        click.echo("nothing was checked: no hinted file or directory exists here", err=True)


def _json(
    store: str,
    counts: Counter[str],
    bad: list[Reading],
    outcome: Outcome,
    fine: bool,
    taken: Mapping[bytes, Lost],
) -> None:
    import json

    from tracehint.hintgen.hints.pathtext import to_text

    def shown(value: bytes | None) -> str | None:
        return None if value is None else to_text(value)

    data: dict[str, Any] = {
        "schema": "tracehint.verify/1", "store": store, "ok": fine,
        "settings": {state: counts[state] for state in ("ok", "missing", "differs")},
        "absent": outcome.absent,
        "mismatches": [
            {"path": to_text(r.path), "key": r.setting.key, "hint": r.setting.hint,
             "wanted": shown(r.setting.value), "got": shown(r.got), "state": r.state}
            for r in bad
        ],
        "lost": [{"path": to_text(path), "why": one.why, "program": one.program}
                 for path, one in taken.items()],
        "failed": [{"path": to_text(path), "reason": why} for path, why in outcome.failed],
        "gaps": [{"hint": g.hint, "level": g.level, "reason": g.reason, "targets": n}
                 for g, n in outcome.gap_counts().items()],
    }  # fmt: skip  # a table
    click.echo(json.dumps(data, indent=1))
