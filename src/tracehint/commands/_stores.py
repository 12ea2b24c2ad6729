"""What emit, apply, verify and locate share: options, and the plan for a hint file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tracehint.errors import InputError, UsageError

if TYPE_CHECKING:
    from tracehint.adapters.plan import Paths, Plan
    from tracehint.adapters.stores.base import Gap, Store
    from tracehint.hintgen.model import HintFile


def store_options(required: bool) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """--store and --prefix."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        function = click.option(
            "--prefix", help="Name space before every attribute (default: the store's, e.g. user.)."
        )(function)
        return click.option(
            "--store", required=required, metavar="STORE",
            help="xattr, woss, orangefs, cephfs, moosefs; or a TOML table (docs: stores).",
        )(function)  # fmt: skip

    return decorate


def plan_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Options that decide which files and directories are meant."""
    for option in (
        click.option("--workflow", type=click.Path(dir_okay=False, path_type=Path),
                     help="Makeflow file of the next run: its files are matched too."),
        click.option("--nodes", type=click.IntRange(1, 1_000_000),
                     help="Nodes of the next run; replicas never exceed them."),
        click.option("--create", is_flag=True,
                     help="Make files that a task will write, so that the hint is there first."),
        click.option("--no-directories", is_flag=True, help="No directory defaults."),
    ):  # fmt: skip
        function = option(function)
    return function


def make_plan(
    hints: HintFile, *, workflow: Path | None, nodes: int | None, create: bool,
    no_directories: bool, root_fd: int | None = None,
) -> Plan:  # fmt: skip
    """Match the hint file's rules with every concrete path that is known."""
    from tracehint.adapters.plan import build_plan

    paths = known_paths(hints, workflow, root_fd)
    return build_plan(hints, paths, create=create, directories=not no_directories, nodes=nodes)


def known_paths(hints: HintFile, workflow: Path | None, root_fd: int | None) -> Paths:
    """Paths of the directory, of the workflow's graph, and of the rules themselves."""
    from tracehint.adapters.plan import Paths, inside, remembered_paths, tree_paths

    existing = (
        frozenset(p for p in tree_paths(root_fd) if inside(p))
        if root_fd is not None
        else frozenset()
    )
    remembered = remembered_paths(hints, literal_only=workflow is not None)
    if workflow is None:
        return Paths(files=list(dict.fromkeys([*sorted(existing), *remembered])), existing=existing)
    from tracehint.adapters.workflow import read_workflow

    graph = read_workflow(workflow)
    declared = set(graph.files)
    others = [p for p in (*sorted(existing), *remembered) if p not in declared]
    return Paths(
        files=list(dict.fromkeys(others)), existing=existing, declared=graph.files,
        known=graph.known,
    )  # fmt: skip


def report_gaps(gaps: dict[Gap, int]) -> None:
    """Tell on stderr what the store cannot say, or not exactly."""
    for gap, count in gaps.items():
        word = "not said" if gap.level == "none" else "only approximate"
        click.echo(f"{gap.hint}: {word} on {count:,} targets: {gap.reason}", err=True)


def require_store(store: str | None, prefix: str | None) -> Store:
    """The store that --store names."""
    from tracehint.adapters.stores.registry import open_store

    if store is None:
        raise UsageError("no store given", "Add --store xattr (or another; see --help).")
    return open_store(store, prefix=prefix)


def open_directory(path: Path) -> Any:
    """`beneath.open_root` with an error that names the remedy."""
    from tracehint.adapters.stores.beneath import open_root

    if not path.is_dir():
        raise InputError(f"{path} is not a directory", "Name the directory that holds the data.")
    return open_root(path)
