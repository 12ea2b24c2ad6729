"""`tracehint apply`: set hints below a directory, or take them back."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tracehint.app.stores import (
    apply_by_calls,
    make_plan,
    open_directory,
    report_gaps,
    require_store,
    without_mount,
)
from tracehint.commands._stores import hints_below
from tracehint.errors import EXIT_FAILED, EXIT_OK, UsageError
from tracehint.schemas.wording import plural

if TYPE_CHECKING:
    from tracehint.adapters.apply.journal import JournalEntry, Undone
    from tracehint.adapters.apply.readback import Outcome
    from tracehint.adapters.apply.root_files import Root
    from tracehint.adapters.plan import TagPlan
    from tracehint.adapters.stores.base import Store
    from tracehint.adapters.stores.commands import CommandStore
    from tracehint.hintgen.hints.model import HintFile


@click.command()
@hints_below
@click.option("--dry-run", is_flag=True, help="Show what would be done; change nothing.")
@click.option("--undo", "take_back", is_flag=True, help="Undo what apply set here.")
@click.option(
    "--allow-trusted",
    is_flag=True,
    help="Allow attributes of the name space trusted, which only root sets.",
)
@click.option("--as-root", is_flag=True, help="Allow running as root.")
@click.option("--quiet", is_flag=True, help="Print no list and no summary.")
def command(
    hints: Path,
    directory: Path,
    store: str,
    prefix: str | None,
    places: Path | None,
    dry_run: bool,
    take_back: bool,
    allow_trusted: bool,
    as_root: bool,
    quiet: bool,
    **which: Any,
) -> int:
    """Set the hints of HINTS below DIRECTORY, directory defaults first.

    What was changed is kept in DIRECTORY/.tracehint, written before each change; --undo takes it
    back, also what a script of `emit` set. Nothing outside DIRECTORY is touched, and no symbolic
    link is followed. Of a store without mount (HDFS, Confuga, ...) DIRECTORY is the directory
    there: its tool is called for every file that the rules or --like, --workflow or --names list,
    and nothing is kept for --undo.

    Example: tracehint apply hints.json --store xattr --dry-run /scratch/run7
    """
    from tracehint.adapters.apply.applier import apply, check_keys
    from tracehint.hintgen.hints.hintfile import load

    if not (as_root or dry_run):
        _refuse_root()
    chosen = require_store(store, prefix, places)
    if (called := without_mount(chosen, directory)) is not None:
        return _apply_by_tool(called, load(hints), which, dry_run, take_back, quiet)
    with open_directory(directory) as root:
        if take_back:
            return _undo(root, chosen, store, dry_run, allow_trusted, quiet)
        plan = make_plan(load(hints), root_fd=root.fd, **which)
        check_keys(chosen, plan.targets, allow_trusted=allow_trusted)
        if dry_run:
            return _report(apply(root, chosen, plan.targets, None), quiet, dry_run=True)
        return _report(_apply_journalled(root, chosen, plan, prefix), quiet, dry_run=False)


def _apply_journalled(root: Root, chosen: Store, plan: TagPlan, prefix: str | None) -> Outcome:
    from tracehint.adapters.apply.applier import apply
    from tracehint.adapters.apply.journal import open_journal, session_entry

    with open_journal(root, create=True) as journal:
        assert journal is not None  # it was made
        journal.add(session_entry(chosen.name, prefix))
        return apply(root, chosen, plan.targets, journal)


def _apply_by_tool(
    store: CommandStore,
    hints: HintFile,
    which: dict[str, Any],
    dry_run: bool,
    take_back: bool,
    quiet: bool,
) -> int:
    if dry_run and take_back:
        raise UsageError(
            f"{store.title} has no journal: --undo removes what the rules set",
            "Give one of --dry-run and --undo.",
        )
    mode = "--dry-run" if dry_run else "--undo" if take_back else ""
    return apply_by_calls(store, hints, make_plan(hints, **which), mode, quiet=quiet)


def _refuse_root() -> None:
    if os.geteuid() == 0:
        raise UsageError(
            "apply refuses to run as root: hint files can come from anywhere",
            "Run it as the owner of the data, or give --as-root.",
        )


def _report(outcome: Outcome, quiet: bool, *, dry_run: bool) -> int:
    from tracehint.hintgen.text.escape import text

    for path, what in [] if quiet else outcome.lines:
        click.echo(f"{what}  {text(path) or '.'}")
    _failures(outcome.failed)
    if not quiet:
        report_gaps(outcome.gap_counts())
        verb = "would be set" if dry_run else "set"
        click.echo(
            f"{plural(outcome.changed, 'setting')} {verb}, {outcome.unchanged:,} unchanged, "
            f"{plural(outcome.created, 'file')} {'would be ' if dry_run else ''}created, "
            f"{outcome.absent:,} not yet created, {len(outcome.failed):,} failed",
            err=True,
        )
    return EXIT_FAILED if outcome.failed else EXIT_OK


def _failures(failed: list[tuple[bytes, str]]) -> None:
    from tracehint.hintgen.text.escape import text

    for path, why in failed[:50]:
        click.echo(f"tracehint: {text(path) or '.'}: {why}", err=True)
    if len(failed) > 50:
        click.echo(f"tracehint: and {len(failed) - 50:,} more", err=True)
    if any("not supported" in why for _, why in failed):
        click.echo(
            "  This file system supports no such attributes: another --store or --prefix may fit.",
            err=True,
        )


def _undo(
    root: Root, chosen: Store, name: str, dry_run: bool, allow_trusted: bool, quiet: bool
) -> int:
    from tracehint.adapters.apply.journal import open_journal, remove_journal, sessions, undo
    from tracehint.adapters.stores.registry import open_store

    def store_of(session: JournalEntry) -> Store | None:
        if session.path != chosen.name.encode():
            return None
        return chosen if session.old is None else open_store(name, prefix=os.fsdecode(session.old))

    with open_journal(root, create=False) as journal:
        if journal is None:
            raise UsageError(
                "there is nothing to undo here", "apply has no journal (.tracehint) here."
            )
        entries = journal.entries()
        done = undo(root, entries, store_of, allow_trusted=allow_trusted, dry_run=dry_run)
        others = any(store_of(session) is None for session, _ in sessions(entries))
        if not dry_run and not done.kept and not others:
            remove_journal(root)
    return _report_undo(done, quiet)


def _report_undo(done: Undone, quiet: bool) -> int:
    from tracehint.hintgen.text.escape import text

    for path, what in [] if quiet else done.lines:
        click.echo(f"{what}  {text(path) or '.'}")
    for path, why in done.kept[:50]:
        click.echo(f"left unchanged: {text(path) or '.'}: {why}", err=True)
    if not quiet:
        click.echo(
            f"{plural(done.restored, 'setting')} undone, "
            f"{done.removed:,} of the files and directories removed, "
            f"{len(done.kept):,} kept, changed since",
            err=True,
        )
    return EXIT_OK
