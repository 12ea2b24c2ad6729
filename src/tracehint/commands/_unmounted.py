"""`apply` and `verify` on a store without mount: its tool is called with names of the store.

DIRECTORY is then a directory there (`/wf/run7`). No list of its files is asked for: names come from
the rules, or from --like, --workflow or --names.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tracehint.commands._stores import report_gaps
from tracehint.errors import EXIT_FAILED, EXIT_OK, UsageError

if TYPE_CHECKING:
    from tracehint.adapters.plan import TagPlan
    from tracehint.adapters.stores.base import Setting, Store
    from tracehint.adapters.stores.commands import CommandStore
    from tracehint.adapters.stores.outcome import Outcome
    from tracehint.adapters.stores.readback import Reading
    from tracehint.hintgen.hints.model import HintFile


def without_mount(store: Store, directory: Path) -> CommandStore | None:
    """The store with `directory` as its base; None: it is mounted, or takes no calls.

    Raises UsageError for a directory that the store's tool could not be told.
    """
    from tracehint.adapters.stores.commands import CommandStore
    from tracehint.adapters.stores.places import BASE

    if not isinstance(store, CommandStore) or store.mounted:
        return None
    base = str(directory).rstrip("/")
    if not directory.is_absolute() or not re.fullmatch(BASE, base):
        raise UsageError(
            f"{store.title} has no mount: {str(directory)[:80]!r} is no directory there",
            "Give its absolute path in the store, for example /wf/run7.",
        )
    return replace(store, places=replace(store.places, base=base))


def apply(store: CommandStore, hints: HintFile, plan: TagPlan, mode: str, *, quiet: bool) -> int:
    """Run the calls of the script that `emit` would write. `mode`: "", --dry-run or --undo."""
    from tracehint.adapters.stores.call_script import make_call_script

    script = make_call_script(hints, plan, store, inside=True)
    words = [word for word in (mode, "--quiet" if quiet else "") if word]
    done = subprocess.run(["sh", "-s", "--", *words], input=script.text.encode(), check=False)
    if not quiet:
        report_gaps(script.gaps)
    if mode == "--undo" and (kept := _kept(store, plan)):
        told = f"{kept:,} settings have no call that takes them back: {store.about.undo}"
        click.echo(told, err=True)
    return EXIT_FAILED if done.returncode else EXIT_OK


def _kept(store: CommandStore, plan: TagPlan) -> int:
    said = (one for target in plan.targets for one in store.translate(target.hints, target.kind)[0])
    return sum(not store.unset_argv(one, "") for one in said)


def verify(store: CommandStore, plan: TagPlan, outcome: Outcome) -> Iterator[Reading]:
    """Ask the tool about every file that the plan names; what it cannot tell is a failure."""
    from tracehint.adapters.stores.readback import Reading

    for target in plan.targets:
        settings, gaps = store.translate(target.hints, target.kind)
        outcome.gaps += gaps
        for setting in settings:
            try:
                got = _asked(store, setting, target.path)
            except OSError as error:
                outcome.fail(target.path, error)
                continue
            state = "ok" if store.fits(setting, got) else "missing" if got is None else "differs"
            yield Reading(target.path, setting, got, state)


def _asked(store: CommandStore, setting: Setting, path: bytes) -> bytes | None:
    return store.read_name(path.decode("utf-8", "surrogateescape"), setting.key)
