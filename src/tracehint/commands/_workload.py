"""A workload for the simulator, from a run, an analysis, or a workflow that has not run yet."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tracehint.commands._options import with_options
from tracehint.schemas.arrow import skip_pandas

if TYPE_CHECKING:
    from tracehint.analyzer.model import Analysis
    from tracehint.analyzer.predict.model import Workload

_FACTOR = click.FloatRange(min=0, min_open=True, max=1e9)
workload_options = with_options(
    click.option(
        "--learned",
        multiple=True,
        type=click.Path(path_type=Path),
        metavar="RUN",
        help="Take times, sizes and bytes that are not known from this run (repeatable).",
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


@dataclass(frozen=True)
class Loaded:
    """A workload, the analysis it was made of, and those it has learned from."""

    analysis: Analysis
    work: Workload
    runs: tuple[Analysis, ...]


def load_workload(
    source: Path, learned: Sequence[Path], scale_bytes: float, scale_seconds: float
) -> Loaded:
    """The workload of a run, an analysis, or an engine's graph. Raises InputError, BundleError."""
    skip_pandas()
    from tracehint.analyzer.predict.learning import learned as taken
    from tracehint.analyzer.predict.workload import ScaleFactors, from_analysis

    analysis, notes = load_analysis(source), list[str]()
    runs = tuple(load_analysis(path) for path in learned)
    if runs:
        analysis, notes = taken(analysis, runs)
    work = from_analysis(analysis, ScaleFactors(scale_bytes, scale_seconds))
    work.notes += notes
    return Loaded(analysis, work, runs)


def load_analysis(path: Path) -> Analysis:
    """The analysis of a bundle, of the JSON of `analyze`, or of an engine's graph or log."""
    from tracehint.adapters.engines.graphs import import_graphs, sniff
    from tracehint.analyzer.model import Options
    from tracehint.hintgen.inputs import load_run
    from tracehint.schemas.kinds import what_is

    if what_is(path) in ("bundle", "analysis", "absent", "hints") or sniff(path) is None:
        return load_run(path, Options()).analysis
    with tempfile.TemporaryDirectory(prefix="tracehint-graph-") as folder:
        bundle = Path(folder) / "graph.trace"
        import_graphs([path], bundle)
        return load_run(bundle, Options()).analysis
