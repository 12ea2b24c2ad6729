"""The options that decide how a bundle is analyzed, for all commands that take one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tracehint.commands._options import Renamed, nodes_option, placement_option
from tracehint.commands._roots import given_roots
from tracehint.commands._task_options import task_options

if TYPE_CHECKING:
    from tracehint.analyzer.model import Options

_SHARE = click.FloatRange(0, 1)
_COUNT = click.IntRange(0)

# field of analyzer.model.Options -> (type, help); the option is that name or the one of `_NAMES`
THRESHOLDS: dict[str, tuple[Any, str]] = {
    "peek_share": (_SHARE, "A header read takes less than this share of the file ..."),
    "peek_bytes": (_COUNT, "... and fewer bytes than this."),
    "header_bytes": (_COUNT, "A shared header lies within the first bytes of a file ..."),
    "header_share": (_SHARE, "... and within this share of it ..."),
    "header_readers": (_SHARE, "... and at least this share of the readers read it."),
    "broadcast_slope": (_SHARE, "Broadcast: readers per byte >= 1 + SLOPE (readers - 1)."),
    "scatter_max_m": (click.FloatRange(1), "Scatter: at most so many readers per byte."),
    "gather_max_overlap": (_SHARE, "Gather: at most this share of the bytes written twice."),
    "reduce_min_share": (_SHARE, "Reduce: at least this share of what the task reads."),
    "max_versions": (_COUNT, "Files with more versions are called concurrently shared."),
    "call_cost_bytes": (_COUNT, "A hint that saves fewer bytes does not repay its call."),
}


_NAMES = {"peek_share": "--header-read-share", "peek_bytes": "--header-read-bytes"}


def analysis_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """The options that decide how a bundle is analyzed; `options_from` takes their values."""
    for name, (kind, text) in reversed(THRESHOLDS.items()):
        flag = "--" + name.replace("_", "-")
        given = {"type": kind, "default": None, "help": text}
        if name in _NAMES:
            option = click.option(_NAMES[name], name, cls=Renamed, old=flag, **given)
        else:
            option = click.option(flag, name, **given)
        function = option(function)
    function = click.option(
        "--data-root",
        "data_roots",
        multiple=True,
        metavar="DIR",
        help="Workflow data is below DIR (repeatable; default: found from the run).",
    )(function)
    function = placement_option(function)
    function = click.option(
        "--calibration",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="Of `tracehint calibrate`: savings in seconds, from the rates that it measured.",
    )(function)
    function = click.option(
        "--bandwidth",
        type=click.FloatRange(min=0, min_open=True, max=1e9),
        metavar="MBIT",
        help="Megabits per second of a node's link: savings in seconds.",
    )(function)
    function = click.option(
        "--sites",
        type=click.Path(path_type=Path),
        metavar="FILE",
        help="Table of sites or racks: a host (or a pattern) and its site per line.",
    )(function)
    return nodes_option(task_options(function))


def options_from(values: dict[str, Any], *, ranges: bool = True) -> Options:
    """Options of the analyzer from the command line's values; None means the default."""
    from tracehint.analyzer.model import Options

    given = {name: values[name] for name in THRESHOLDS if values.get(name) is not None}
    return Options(
        nodes=values.get("nodes"),
        default_placement=values.get("default_placement") or "striped",
        data_roots=given_roots(values.get("data_roots") or ()),
        ranges=ranges,
        sites=_sites(values.get("sites")),
        link_rates=_link_rates(values.get("bandwidth"), values.get("calibration")),
        **(values.get("cut") or {}),
        **given,
    )


def _sites(path: Path | None) -> tuple[tuple[str, str], ...]:
    """The table of sites, if one was named."""
    from tracehint.analyzer.sites import read_sites

    return read_sites(path) if path else ()


def _link_rates(mbit: float | None, calibration: Path | None) -> tuple[float, float] | None:
    """Slowest and fastest known rate of a link in bytes per second; None: none is known."""
    known = [mbit * 125_000] if mbit else []
    if calibration:
        from tracehint.hintgen.calibration import read_rates

        rates = read_rates(calibration)
        known += [rates.slow, rates.fast]
    return (min(known), max(known)) if known else None
