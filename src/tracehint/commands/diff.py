"""`tracehint diff`: what changed between two runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from tracehint.app.output import terminal_width, wants_color, write_result
from tracehint.commands._options import (
    gather_options,
    load,
    nodes_option,
    option,
    result_options,
    runs_before_and_after,
    task_options,
)
from tracehint.errors import EXIT_FINDINGS, EXIT_OK
from tracehint.progress import stage
from tracehint.schemas.arrow import skip_pandas
from tracehint.version import __version__

if TYPE_CHECKING:
    from tracehint.analyzer.model import Options
    from tracehint.hintgen.compare.diff import Profile, Tolerances

FORMATS = ("text", "json", "sarif", "github", "junit")


@dataclass(frozen=True, kw_only=True)
class Thresholds:
    """What counts as a change."""

    volume_threshold: float = option(
        type=click.FloatRange(0, 100),
        default=10,
        help="Percent by which sizes and bytes read may differ.",
    )
    min_bytes: str = option(default="64K", help="Ignore smaller differences in volume.")
    count_threshold: float = option(
        type=click.FloatRange(0, 100),
        default=0,
        help="Percent by which numbers of tasks and files may differ.",
    )

    def limits(self) -> Tolerances:
        """Return the thresholds for `hintgen.compare.diff`."""
        from tracehint.commands.lint import parse_size
        from tracehint.hintgen.compare.diff import Tolerances

        return Tolerances(
            volume_share=self.volume_threshold / 100,
            volume_bytes=parse_size(self.min_bytes),
            count_share=self.count_threshold / 100,
        )


@click.command()
@runs_before_and_after
@result_options(*FORMATS)
@nodes_option
@task_options
@gather_options(thresholds=Thresholds)
def command(
    before: str,
    after: str,
    thresholds: Thresholds,
    fmt: str,
    output: str | None,
    force: bool,
    nodes: int | None,
    cut: dict[str, Any],
) -> int:
    """Compare the runs BEFORE and AFTER of one workflow.

    Tasks are matched by type, files by template. Exit code 0: the same, 1:
    something changed beyond the thresholds, 2: could not do it.

    Example: tracehint diff reference.trace run.trace --format github
    """
    skip_pandas()
    from tracehint.analyzer.model import Options
    from tracehint.hintgen.compare.diff import CHANGES, compare
    from tracehint.hintgen.lint.formats import Info, render

    options = Options(nodes=nodes, **cut)
    # one run at a time is in memory
    profiles = {path: _profile(path, options) for path in dict.fromkeys((before, after))}
    findings = compare(profiles[before], profiles[after], thresholds.limits())
    info = Info(
        tool=f"tracehint {__version__}",
        subject=f"{before} -> {after}",
        rules={code: name for code, (name, _) in CHANGES.items()},
        width=terminal_width(),
        color=wants_color() and not output,
        every=True,
        noun="change",
        hint="",
    )
    write_result(render(fmt, findings, info), output, force=force)
    return EXIT_FINDINGS if findings else EXIT_OK


def _profile(path: str, options: Options) -> Profile:
    from tracehint.hintgen.compare.diff import profile

    analysis = load(path, options).analysis
    with stage("comparing"):
        return profile(analysis)
