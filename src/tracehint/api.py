"""The Python API: `tracehint.load` and the class `Run` (docs/reference/python.md)."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from tracehint.errors import InputError

if TYPE_CHECKING:
    import networkx as nx
    import pyarrow as pa

    from tracehint.analyzer.model import Analysis, Options
    from tracehint.hintgen.hints.model import HintFile
    from tracehint.hintgen.learn.rules import LearnOptions
    from tracehint.schemas.store import Bundle

__all__ = ["Run", "load"]


@dataclass(frozen=True)
class Run:
    """One analyzed run, created by `load`.

    Tables are Arrow tables with integer keys: `task`, `file` (a version of a file), `edge`,
    `group`. Seconds count from the start of the run; sizes are bytes; ranges are half open.
    """

    name: str
    analysis: Analysis = field(repr=False)
    bundle: Bundle | None = field(default=None, repr=False)  # None: loaded from JSON

    @property
    def tasks(self) -> pa.Table:
        """One row per task: `analyzer.model.TASKS`. Engines have `engine` true."""
        return self.analysis.tasks

    @property
    def files(self) -> pa.Table:
        """One row per version of a file: `analyzer.model.FILES`. `path` is bytes."""
        return self.analysis.files

    @property
    def edges(self) -> pa.Table:
        """One row per (producer, file, consumer): `analyzer.model.EDGES`."""
        return self.analysis.edges

    @cached_property
    def accesses(self) -> pa.Table:
        """One row per recorded series of accesses, in recording order.

        Columns: task, file (null: no such row), op, how, start, length, stride, count, ops,
        bytes, first_s, last_s, exact, host, proc. Computed at first use.
        Raises InputError for a run that was loaded from JSON, which has no accesses.
        """
        if self.bundle is None:
            raise InputError(
                f"{self.name}: an analysis has no single accesses", "Load the trace bundle."
            )
        from tracehint.analyzer.accesses import accesses

        return accesses(self.bundle, self.analysis)

    def graph(self, *, fold: bool = False) -> nx.DiGraph[str]:
        """Return the graph of tasks and file versions; `fold` merges nodes of one kind.

        Node attributes: kind (task, file), label, count, bytes, and role, pattern, confidence,
        saves_bytes (files) or start_s, end_s (tasks, seconds). Edge attributes: bytes, count,
        pattern, via, peek. Engines, software and scratch files are left out.
        """
        from tracehint.hintgen.report.graph_export import to_networkx

        return to_networkx(self.analysis, fold)

    def patterns(self, *, edges: bool = False) -> pa.Table:
        """Return the pattern labels of the files; with `edges`, their copies on the edges.

        Columns: `analyzer.model.PATTERNS`; definitions: docs/patterns.md. `evidence` is the
        text of a JSON object, `confidence` is in [0, 1], `saves_bytes` are network bytes.
        """
        import pyarrow.compute as pc

        table = self.analysis.patterns
        own = pc.is_null(table.column("edge"))
        return table.filter(pc.invert(own) if edges else own)

    def hints(self, options: LearnOptions | None = None) -> HintFile:
        """Learn rules for the files of the next run, from this run alone."""
        from tracehint.hintgen.learn.rules import learn

        return learn([self.analysis], options)

    def predict(
        self,
        cluster: str | os.PathLike[str],
        placement: str = "default",
        *,
        nodes: int | None = None,
        runs: int = 5,
        seed: int = 1,
        tasks: bool = False,
    ) -> dict[str, Any]:
        """Predict the run on a cluster; return the object of `predict --format json`.

        `cluster` is a cluster file or the name of a built-in model, `placement` is default,
        local, or hints:FILE; `tasks` adds the predicted timeline. Seconds, bytes, joules.
        Raises InputError and UsageError; MissingDependencyError if the engine is not built.
        """
        from tracehint.analyzer.predict.prediction import predict
        from tracehint.analyzer.predict.result import to_json
        from tracehint.analyzer.predict.workload import from_analysis
        from tracehint.app.prediction import configurations

        points = configurations(
            [os.fspath(cluster)],
            self.analysis,
            [placement],
            nodes=None if nodes is None else str(nodes),
        )
        work = from_analysis(self.analysis)
        found = predict(work, points, runs=runs, seed=seed, detail=True)
        return to_json(work, found, tasks=tasks)

    def plan(
        self,
        cluster: str | os.PathLike[str],
        *,
        nodes: int | None = None,
        stage_inputs: bool = False,
        seed: int = 1,
    ) -> dict[str, Any]:
        """Find the best placement strategy; return the object of `plan --format json`.

        `cluster` is a cluster file or the name of a built-in model; `stage_inputs`: hints may
        place the inputs too. Seconds, bytes.
        Raises InputError and UsageError; MissingDependencyError if the engine is not built.
        """
        from tracehint.analyzer.predict.cluster_file import read_cluster
        from tracehint.analyzer.predict.workload import from_analysis
        from tracehint.hintgen.learn.rules import LearnOptions, learn
        from tracehint.hintgen.plan.model import Problem
        from tracehint.hintgen.plan.planner import plan
        from tracehint.hintgen.plan.result import to_json

        where = read_cluster(os.fspath(cluster))
        where = where.with_nodes(nodes) if nodes else where
        rules = learn([self.analysis], LearnOptions(nodes=where.count))
        work = from_analysis(self.analysis)
        return to_json(plan(Problem(self.analysis, work, where, rules, stage_inputs, seed)))


def load(path: str | bytes | os.PathLike[str], options: Options | None = None) -> Run:
    """Analyze a trace bundle, or read the output of `tracehint analyze --format json`.

    `options` (`tracehint.Options`: thresholds, number of nodes, default placement) applies to
    bundles only. Raises BundleError if there is no bundle, InputError for a file that is not an
    analysis; both name a remedy. Raises TypeError for options of another type.

    >>> run = tracehint.load("run.trace", tracehint.Options(nodes=16))     # doctest: +SKIP
    """
    from tracehint.analyzer.model import Options
    from tracehint.hintgen.inputs import load_run

    if not isinstance(options, Options | None):
        raise TypeError(f"options are tracehint.Options(nodes=...), not {type(options).__name__}")
    run = load_run(os.fsdecode(path), options or Options(), accesses=True)
    return Run(run.name, run.analysis, run.bundle)
