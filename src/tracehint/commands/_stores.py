"""Options of the commands on stores."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import click

from tracehint.commands._options import F, with_options

hints_argument = click.argument("hints", type=click.Path(path_type=Path))


def store_option(required: bool) -> Callable[[F], F]:
    """--store alone."""
    return click.option(
        "--store",
        required=required,
        metavar="STORE",
        type=click.UNPROCESSED,  # keeps a ConfiguredName
        help="Its name (doctor --store lists them), or a TOML table (docs: stores).",
    )


def store_options(required: bool) -> Callable[[F], F]:
    """--store, --prefix and --map."""
    return with_options(
        store_option(required),
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
    help="Bundle or analysis of a run with the same files as the hinted one.",
)

# Which files and directories are meant: the keywords of `make_plan`.
plan_options = with_options(
    click.option("--no-directories", is_flag=True, help="No directory defaults."),
    click.option(
        "--create",
        is_flag=True,
        help="Create files that a task will write, so that hints are set first.",
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
        help="File list of the next run, one name per line: together they can "
        "show what one name does not.",
    ),
    like_option,
    click.option(
        "--workflow",
        type=click.Path(dir_okay=False, path_type=Path),
        help="Makeflow file of the next run: its files are matched too.",
    ),
)


# HINTS, DIRECTORY, and the options for setting the hints in a store.
hints_below = with_options(
    hints_argument,
    click.argument("directory", type=click.Path(path_type=Path)),
    store_options(required=True),
    plan_options,
)
