"""Options that several commands share come as one decorator; many of one command as a record."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, fields
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click

from tracehint.progress import stages

if TYPE_CHECKING:
    from tracehint.analyzer.model import Options
    from tracehint.hintgen.inputs import Input


F = TypeVar("F", bound=Callable[..., Any])


def with_options(*options: Callable[[F], F]) -> Callable[[F], F]:
    """A decorator that adds click options and arguments, in this order."""

    def decorate(function: F) -> F:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate


class Renamed(click.Option):
    """An option that also accepts its `old` name, which the help does not show."""

    def __init__(self, decls: Sequence[str], *, old: str, **rest: Any) -> None:
        super().__init__([*decls, old], **rest)
        self.old = old

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        """Return the help with the current name only."""
        every = self.opts
        self.opts = [name for name in every if name != self.old]
        try:
            return super().get_help_record(ctx)
        finally:
            self.opts = every


def option(*flags: str, **attributes: Any) -> Any:
    """A field of a record, and the option of that name (or these `flags`) of its command."""
    return field(
        metadata={"option": (flags, {"show_default": "default" in attributes} | attributes)}
    )


def gather_options(**kinds: type[Any]) -> Callable[[F], F]:
    """For `name=DATACLASS`, pass options named like its fields to the command as one value `name`.
    Fields made by `option` become options, listed below those of the decorators above.
    """

    def decorate(function: F) -> F:
        @wraps(function)
        def command(*args: Any, **values: Any) -> Any:
            for name, kind in kinds.items():
                values[name] = kind(**{f.name: values.pop(f.name) for f in fields(kind)})
            return function(*args, **values)

        for f in (f for kind in reversed(kinds.values()) for f in reversed(fields(kind))):
            if "option" in f.metadata:
                flags, attributes = f.metadata["option"]
                flags = flags or ("--" + f.name.replace("_", "-"),)
                command = click.option(*flags, f.name, **attributes)(command)
        return cast("F", command)

    return decorate


def result_options(*formats: str) -> Callable[[F], F]:
    """Add --format (as `fmt`; the first is the default), and -o and --force of the result."""
    return with_options(
        click.option(
            "--format", "fmt", type=click.Choice(formats), default=formats[0], show_default=True
        ),
        click.option("-o", "--output", help="Write to a file instead of stdout."),
        click.option("--force", is_flag=True, help="Replace the output file."),
    )


format_option = click.option(
    "--format", "fmt", type=click.Choice(["text", "json"]), default="text", show_default=True
)

# Joins what the workflow's own files declare to the recorded tasks.
joined_workflow_option = click.option(
    "--workflow",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Workflow file or engine log whose declared tasks and files are joined.",
)

# Two recorded runs of one workflow.
runs_before_and_after = with_options(
    click.argument("before", type=click.Path()), click.argument("after", type=click.Path())
)

# The same two runs; default: the project's last two.
last_runs_or_two = with_options(
    click.argument("before", type=click.Path(), required=False),
    click.argument("after", type=click.Path(), required=False),
)

placement_option = click.option(
    "--default-placement",
    type=click.Choice(["striped", "one-node", "local"]),
    default="striped",
    show_default=True,
    help="What the store does without hints.",
)

seed_option = click.option(
    "--seed",
    type=click.IntRange(0, 1 << 20),
    default=1,
    show_default=True,
    help="Seed of the random numbers; equal seeds give equal results.",
)

# For commands that compute a saving or a hint's value.
nodes_option = click.option(
    "--nodes",
    type=click.IntRange(1, 1_000_000),
    default=None,
    help="Nodes of the cluster on which gains are simulated; copies of a file never exceed them.",
)

# For commands that simulate a gain.
cluster_option = click.option(
    "--cluster",
    metavar="FILE",
    type=click.UNPROCESSED,
    help="The cluster on which gains are simulated: a cluster file, or a built-in model by name. "
    "Default: the one of tracehint.toml, the batch system's nodes, else a built-in model.",
)


_FACTOR = click.FloatRange(min=0, min_open=True, max=1e9)
workload_options = with_options(
    click.option(
        "--learned",
        multiple=True,
        type=click.Path(path_type=Path),
        metavar="RUN",
        help="Take missing times, sizes and bytes from this run (repeatable).",
    ),
    click.option(
        "--scale-bytes", type=_FACTOR, default=1.0, show_default=True, help="Factor on all sizes."
    ),
    click.option(
        "--scale-seconds",
        type=_FACTOR,
        default=1.0,
        show_default=True,
        help="Factor on the recorded times of all tasks.",
    ),
)


# The names are fields of analyzer.model.Options.
_OPTIONS = with_options(
    click.option(
        "--split",
        multiple=True,
        metavar="NAME",
        help="Split the task NAME (a program, script or type): programs it starts are tasks"
        " (repeatable).",
    ),
    click.option(
        "--whole",
        multiple=True,
        metavar="NAME",
        help="NAME is one task with everything that it starts (repeatable).",
    ),
    click.option(
        "--ranks/--no-ranks",
        default=None,
        help="Each rank of an MPI program is a task (default: where they run on several hosts).",
    ),
)


def task_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options; the command gets them as `cut`, keywords of analyzer.model.Options."""

    @wraps(function)
    def command(*, split: Any, whole: Any, ranks: bool | None, **others: Any) -> Any:
        return function(cut={"split": split, "whole": whole, "ranks": ranks}, **others)

    return _OPTIONS(command)


@dataclass(frozen=True)
class Backend:
    """The backend: this process, or Spark and its cluster."""

    backend: str
    master: str | None

    def load(self, source: str, options: Options) -> Input:
        """Load and analyze the run on the backend. Raises TracehintError."""
        from tracehint.hintgen.inputs import load_at, load_run

        if self.backend == "local" and self.master is None and "://" not in source:
            with stages() as seen:
                return load_run(source, options, tell=seen.tell)
        return load_at(source, options, self.backend, self.master)


def load(source: str, options: Options) -> Input:
    """The run, analyzed here; shows its progress on a terminal. Raises TracehintError."""
    return Backend("local", None).load(source, options)


class _BackendName(click.Choice[str]):
    """A backend, by its current or former name."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the current name."""
        from tracehint.analyzer.analyze import OLD_NAMES

        return super().convert(OLD_NAMES.get(value, value), param, ctx)


backend_options: Callable[[F], F] = with_options(
    click.option(
        "--backend",
        cls=Renamed,
        old="--engine",
        type=_BackendName(["local", "spark"]),
        default="local",
        show_default=True,
        help="Compute in this process or with Spark; the result is the same.",
    ),
    click.option(
        "--master", metavar="URL", help="Spark's cluster (default: local[*], this machine's cores)."
    ),
)


_SHARE = click.FloatRange(0, 1)
_COUNT = click.IntRange(0)

# field of analyzer.model.Options -> (type, help); the option is that name or the one of `_NAMES`
THRESHOLDS: dict[str, tuple[Any, str]] = {
    "peek_share": (_SHARE, "A header read takes less than this share of the file ..."),
    "peek_bytes": (_COUNT, "... and fewer bytes than this."),
    "header_bytes": (_COUNT, "A shared header is within the first bytes of a file ..."),
    "header_share": (_SHARE, "... and within this share of it ..."),
    "header_readers": (_SHARE, "... and at least this share of the readers read it."),
    "broadcast_slope": (_SHARE, "Broadcast: readers per byte >= 1 + SLOPE (readers - 1)."),
    "scatter_max_m": (click.FloatRange(1), "Scatter: maximum readers per byte."),
    "gather_max_overlap": (_SHARE, "Gather: at most this share of the bytes written twice."),
    "reduce_min_share": (_SHARE, "Reduce: at least this share of what the task reads."),
    "max_versions": (_COUNT, "Files with more versions are called concurrently shared."),
    "call_cost_bytes": (_COUNT, "Minimum bytes that a hint must save."),
}


_NAMES = {"peek_share": "--header-read-share", "peek_bytes": "--header-read-bytes"}


def analysis_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that decide how a bundle is analyzed; `options_from` reads their values."""
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
        link_rates=_link_rates(values.get("bandwidth")),
        **(values.get("cut") or {}),
        **given,
    )


def _sites(path: Path | None) -> tuple[tuple[str, str], ...]:
    """The table of sites, if one was named."""
    from tracehint.analyzer.sites import read_sites

    return read_sites(path) if path else ()


def _link_rates(mbit: float | None) -> tuple[float, float] | None:
    """Slowest and fastest known rate of a link in bytes per second; None: none is known."""
    return (mbit * 125_000, mbit * 125_000) if mbit else None


WHOLE = "tracehint.whole_help"  # key in a context's meta: list all options


class FoldedCommand(click.Command):
    """A command whose `--help` leaves the options named in `rare` to `--help-thresholds`."""

    def __init__(self, *args: Any, rare: Collection[str] = (), **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.rare = rare
        self.params.append(_help_thresholds())

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The usual options; in the whole help the rare ones below them."""
        options = [p for p in self.get_params(ctx) if isinstance(p, click.Option)]
        records = [(p.name in self.rare, p.get_help_record(ctx)) for p in options]
        with formatter.section("Options"):
            formatter.write_dl([r for rare, r in records if r is not None and not rare])
        if ctx.meta.get(WHOLE):
            with formatter.section("Thresholds and rarely needed options"):
                formatter.write_dl([r for rare, r in records if r is not None and rare])


def _help_thresholds() -> click.Option:
    def show(ctx: click.Context, _param: click.Parameter, wanted: bool) -> None:
        if wanted and not ctx.resilient_parsing:
            ctx.meta[WHOLE] = True
            click.echo(ctx.get_help(), color=ctx.color)
            ctx.exit()

    return click.Option(
        ["--help-thresholds"],
        is_flag=True,
        is_eager=True,
        expose_value=False,
        callback=show,
        help="Show all options, including pattern thresholds.",
    )


def given_roots(typed: Sequence[str]) -> tuple[str, ...]:
    """Return the directories as absolute paths, as typed and with symbolic links resolved: some
    collectors record the kernel's paths, others the paths that programs use."""
    both = ((os.path.abspath(root), os.path.realpath(root)) for root in typed)  # noqa: PTH100
    return tuple(dict.fromkeys(path for pair in both for path in pair))
