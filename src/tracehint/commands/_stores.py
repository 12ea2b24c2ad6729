"""What the commands on stores share: options, and the plan for a hint file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tracehint.commands._options import F, with_options
from tracehint.errors import InputError, UsageError

if TYPE_CHECKING:
    from tracehint.adapters.paths import Paths
    from tracehint.adapters.plan import TagPlan
    from tracehint.adapters.stores.base import Gap, Locator, Store
    from tracehint.hintgen.hints.model import HintFile
    from tracehint.hintgen.match.match import Declared


hints_argument = click.argument("hints", type=click.Path(path_type=Path))


def store_options(required: bool) -> Callable[[F], F]:
    """--store, --prefix and --map."""
    return with_options(
        click.option(
            "--store",
            required=required,
            metavar="STORE",
            help="Its name (doctor --store lists them), or a TOML table (docs: stores).",
        ),
        click.option(
            "--prefix", help="Name space before every attribute (default: the store's, e.g. user.)."
        ),
        click.option(
            "--map",
            "places",
            type=click.Path(exists=True, dir_okay=False, path_type=Path),
            help="Names of the site's storage classes, pools and servers (docs: stores).",
        ),
    )


like_option = click.option(
    "--like",
    type=click.Path(exists=True, path_type=Path),
    metavar="RUN",
    help="Bundle or analysis of a run whose files the hinted one has as well.",
)

# Which files and directories are meant: the keywords of `make_plan`.
plan_options = with_options(
    click.option("--no-directories", is_flag=True, help="No directory defaults."),
    click.option(
        "--create",
        is_flag=True,
        help="Make files that a task will write, so that the hint is there first.",
    ),
    click.option(
        "--nodes",
        type=click.IntRange(1, 1_000_000),
        help="Nodes of the next run; copies of a file never exceed them. Default: what the hints"
        " were learned with, if --nodes was given there.",
    ),
    click.option(
        "--names",
        type=click.Path(dir_okay=False, path_type=Path),
        metavar="FILE",
        help="File list of the next run, a name a line: what one name does not tell, "
        "all together may.",
    ),
    like_option,
    click.option(
        "--workflow",
        type=click.Path(dir_okay=False, path_type=Path),
        help="Makeflow file of the next run: its files are matched too.",
    ),
)


# HINTS, DIRECTORY, and how the hints become settings of a store there.
hints_below = with_options(
    hints_argument,
    click.argument("directory", type=click.Path(path_type=Path)),
    store_options(required=True),
    plan_options,
)


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
    """Match the hint file's rules with every concrete path that is known."""
    from tracehint.adapters.plan import build_plan
    from tracehint.analyzer.memory import give_back

    paths = known_paths(hints, workflow, like, names, root_fd)
    give_back()  # what a run took that is like the next one: the plan is made of small objects
    plan = build_plan(hints, paths, create=create, directories=not no_directories, nodes=nodes)
    lines = plan.remarks()
    if like is not None and like.is_dir():
        from tracehint.adapters.stores.survival import lost_in, told

        files = [target.path for target in plan.targets if target.kind == "file"]
        lines += told(lost_in(like, files), len(files))
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
    """Paths of the directory, of the next run's graph or names, and of the rules."""
    from tracehint.adapters.paths import Paths, inside, read_names, remembered_paths, tree_paths

    if sum(option is not None for option in (workflow, like, names)) > 1:
        raise UsageError(
            "more than one of --workflow, --like, --names given",
            "Give the one that is like the next run.",
        )
    there = dict(tree_paths(root_fd)) if root_fd is not None else {}
    existing = frozenset(path for path in there if inside(path))
    sizes = {path: size for path, size in there.items() if size}
    any_given = bool(workflow or like or names)
    remembered = remembered_paths(hints, literal_only=any_given)
    declared = _declared(hints, workflow, like)
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


def _declared(
    hints: HintFile, workflow: Path | None, like: Path | None
) -> tuple[list[bytes], Declared] | None:
    """Files of the next run's workflow, or of the run that is like it, and what is known of them;
    None: neither was given."""
    if workflow is not None:
        from tracehint.adapters.engines.workflow import read_workflow

        read = read_workflow(workflow)
        return read.files, read.known(frozenset(hints.peeks))
    if like is None:
        return None
    from tracehint.adapters.learned import run_paths

    run = run_paths(like)
    return run.files, run.known


def report_gaps(gaps: Mapping[Gap, int]) -> None:
    """Tell on stderr what the store cannot say, or not exactly."""
    for gap, count in gaps.items():
        word = "not said" if gap.level == "none" else "only approximate"
        click.echo(f"{gap.hint}: {word} on {count:,} targets: {gap.reason}", err=True)


def require_store(store: str | None, prefix: str | None, places: Path | None) -> Store:
    """The store that --store names; says first where this project never ran it."""
    from tracehint.adapters.stores.registry import open_store

    if store is None:
        raise UsageError("no store given", "Add --store xattr (or another; see --help).")
    chosen = open_store(store, prefix=prefix, places=places)
    warning = chosen.about.warning(chosen.title)
    if warning:
        click.echo(warning, err=True)
    return chosen


def require_locator(store: str | None, prefix: str | None, places: Path | None) -> Locator:
    """The store that --store names, if it can tell where files lie."""
    from tracehint.adapters.stores.base import Locator

    chosen = require_store(store, prefix, places)
    if not isinstance(chosen, Locator):
        raise UsageError(
            f"the store {chosen.name} cannot tell where files lie",
            "Use a store with a location attribute or tool (docs/reference/stores.md).",
        )
    return chosen


def open_directory(path: Path) -> Any:
    """`beneath.open_root` with an error that names the remedy."""
    from tracehint.adapters.stores.beneath import open_root

    if not path.is_dir():
        raise InputError(f"{path} is not a directory", "Name the directory that holds the data.")
    return open_root(path)
