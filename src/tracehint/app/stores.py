"""The plan for a hint file, the store and directory that the user named, stores without mount.

For a store without mount, DIRECTORY is a directory in the store (`/wf/run7`), and the store's tool
is called with names in the store. Its files are not listed: names come from the rules, or from
--like, --workflow or --names.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from msgspec import structs

from tracehint.errors import EXIT_FAILED, EXIT_OK, InputError, UsageError
from tracehint.schemas.wording import plural

if TYPE_CHECKING:
    from tracehint.adapters.apply.readback import Outcome, Reading
    from tracehint.adapters.paths import Paths
    from tracehint.adapters.plan import TagPlan
    from tracehint.adapters.stores.base import Gap, Locator, Setting, Store
    from tracehint.adapters.stores.commands import CommandStore
    from tracehint.hintgen.hints.model import HintFile
    from tracehint.hintgen.match.match import Declared


def make_plan(
    hints: HintFile,
    *,
    workflow: Path | None,
    like: Path | None,
    names: Path | None,
    nodes: int | None,
    create: bool,
    no_directories: bool,
    root_fd: int | None = None,
) -> TagPlan:
    """Match the hint file's rules with every known path; print the plan's remarks to stderr."""
    from tracehint.adapters.plan import build_plan
    from tracehint.analyzer.memory import give_back

    paths = known_paths(hints, workflow, like, names, root_fd)
    give_back()  # memory of the run that --like names, before the plan's many small objects
    plan = build_plan(hints, paths, create=create, directories=not no_directories, nodes=nodes)
    lines = plan.remarks()
    if like is not None and like.is_dir():
        from tracehint.adapters.stores.survival import explain_losses, lost_in

        files = [target.path for target in plan.targets if target.kind == "file"]
        lines += explain_losses(lost_in(like, files), len(files))
    for line in lines:
        click.echo(line, err=True)
    return plan


def known_paths(
    hints: HintFile,
    workflow: Path | None,
    like: Path | None,
    names: Path | None,
    root_fd: int | None,
) -> Paths:
    """Collect paths of the directory, of the next run's graph or names, and of the rules."""
    from tracehint.adapters.paths import Paths, inside, read_names, remembered_paths, tree_paths

    if sum(option is not None for option in (workflow, like, names)) > 1:
        raise UsageError(
            "more than one of --workflow, --like, --names given",
            "Give the one that matches the next run.",
        )
    there = dict(tree_paths(root_fd)) if root_fd is not None else {}
    existing = frozenset(path for path in there if inside(path))
    sizes = {path: size for path, size in there.items() if size}
    any_given = bool(workflow or like or names)
    remembered = remembered_paths(hints, literal_only=any_given)
    declared = _declared_files(hints, workflow, like)
    if declared is None:
        named = read_names(names) if names is not None else []
        files = list(dict.fromkeys([*named, *sorted(existing), *remembered]))
        return Paths(files=files, existing=existing, sizes=sizes, names=frozenset(named))
    files, known = declared
    there_too = set(files)
    others = [p for p in (*sorted(existing), *remembered) if p not in there_too]
    return Paths(
        files=list(dict.fromkeys(others)),
        existing=existing,
        declared=files,
        known=known,
        sizes=sizes,
    )


def _declared_files(
    hints: HintFile, workflow: Path | None, like: Path | None
) -> tuple[list[bytes], Declared] | None:
    """Return the files of the next run's workflow, or of a similar run, and the facts known about
    them; None: neither was given."""
    if workflow is not None:
        from tracehint.adapters.engines.makeflow.workflow import read_workflow

        read = read_workflow(workflow)
        return read.files, read.describe_files(frozenset(hints.peeks))
    if like is None:
        return None
    from tracehint.adapters.paths import run_paths

    run = run_paths(like)
    return run.files, run.known


def report_gaps(gaps: Mapping[Gap, int]) -> None:
    """Print to stderr the hints that the store cannot express, or only approximately."""
    for gap, count in gaps.items():
        word = "not expressible" if gap.level == "none" else "only approximate"
        click.echo(f"{gap.hint}: {word} on {plural(count, 'target')}: {gap.reason}", err=True)


def require_store(store: str | None, prefix: str | None, places: Path | None) -> Store:
    """Return the store that --store names; print a warning if this project never ran it."""
    from tracehint.adapters.stores.registry import open_store

    if store is None:
        raise UsageError("no store given", "Add --store xattr (or another; see --help).")
    chosen = open_store(store, prefix=prefix, places=places)
    warning = chosen.about.warning(chosen.title)
    if warning:
        click.echo(warning, err=True)
    return chosen


def require_locator(store: str | None, prefix: str | None, places: Path | None) -> Locator:
    """Return the store that --store names. Raises UsageError if it reports no file locations."""
    from tracehint.adapters.stores.base import Locator

    chosen = require_store(store, prefix, places)
    if not isinstance(chosen, Locator):
        raise UsageError(
            f"the store {chosen.name} does not report file locations",
            "Use a store with a location attribute or tool (docs/reference/stores.md).",
        )
    return chosen


def open_directory(path: Path) -> Any:
    """Open the directory as `root_files.open_root` does, with an error that names the remedy."""
    from tracehint.adapters.apply.root_files import open_root

    if not path.is_dir():
        raise InputError(f"{path} is not a directory", "Name the directory that holds the data.")
    return open_root(path)


def without_mount(store: Store, directory: Path) -> CommandStore | None:
    """Return the store with `directory` as its base; None: it is mounted, or has no tool.

    Raises UsageError for a directory that cannot be an argument of the store's tool.
    """
    from tracehint.adapters.stores.commands import CommandStore
    from tracehint.adapters.stores.places import BASE

    if not isinstance(store, CommandStore) or store.mounted:
        return None
    base = str(directory).rstrip("/")
    if not directory.is_absolute() or not re.fullmatch(BASE, base):
        raise UsageError(
            f"{store.title} has no mount: {str(directory)[:80]!r} is not a directory there",
            "Give its absolute path in the store, for example /wf/run7.",
        )
    return replace(store, places=structs.replace(store.places, base=base))


def apply_by_calls(
    store: CommandStore, hints: HintFile, plan: TagPlan, mode: str, *, quiet: bool
) -> int:
    """Run the script that `emit` would write. `mode`: "", --dry-run or --undo."""
    from tracehint.adapters.stores.call_script import make_call_script

    script = make_call_script(hints, plan, store, inside=True)
    words = [word for word in (mode, "--quiet" if quiet else "") if word]
    done = subprocess.run(["sh", "-s", "--", *words], input=script.text.encode(), check=False)
    if not quiet:
        report_gaps(script.gaps)
    if mode == "--undo" and (kept := _count_lasting(store, plan)):
        remark = f"{plural(kept, 'setting')} that no call can undo: {store.about.undo}"
        click.echo(remark, err=True)
    return EXIT_FAILED if done.returncode else EXIT_OK


def _count_lasting(store: CommandStore, plan: TagPlan) -> int:
    settings = (
        one for target in plan.targets for one in store.translate(target.hints, target.kind)[0]
    )
    return sum(not store.unset_argv(one, "") for one in settings)


def verify_by_calls(store: CommandStore, plan: TagPlan, outcome: Outcome) -> Iterator[Reading]:
    """Query the tool for every setting of the plan; a query without an answer is a failure."""
    from tracehint.adapters.apply.readback import Reading

    for target in plan.targets:
        settings, gaps = store.translate(target.hints, target.kind)
        outcome.gaps += gaps
        for setting in settings:
            try:
                got = _read_hint(store, setting, target.path)
            except OSError as error:
                outcome.fail(target.path, error)
                continue
            state = "ok" if store.fits(setting, got) else "missing" if got is None else "differs"
            yield Reading(target.path, setting, got, state)


def _read_hint(store: CommandStore, setting: Setting, path: bytes) -> bytes | None:
    return store.read_name(path.decode("utf-8", "surrogateescape"), setting.key)
