"""The sweep that the report draws: fewer and more nodes, with and without local files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tracehint.analyzer.model import Analysis

TIMES = (0.5, 1, 2, 4)  # of the cluster's nodes
PLACEMENTS = ("default", "local")


def sweep(analysis: Analysis, cluster: str) -> dict[str, Any]:
    """The object of `predict --format json`; `shown`: its best configuration with as many nodes as
    the cluster has, with its tasks. Raises InputError; MissingDependencyError without engine."""
    from tracehint.analyzer.predict.cluster_file import read_cluster
    from tracehint.analyzer.predict.prediction import predict
    from tracehint.analyzer.predict.result import to_json
    from tracehint.analyzer.predict.workload import from_analysis
    from tracehint.commands._predict_sweep import configurations

    own = read_cluster(cluster).count
    counts = sorted({min(10_000, max(1, round(own * k))) for k in TIMES})
    points = configurations([cluster], analysis, PLACEMENTS, nodes=",".join(map(str, counts)))
    work = from_analysis(analysis)
    found = predict(work, points)
    data = to_json(work, found)
    best = min((p for p in found if p.configuration.cluster.count == own), key=lambda p: p.seconds)
    shown = predict(work, [best.configuration], detail=True)
    return data | {"shown": to_json(work, shown, tasks=True)["configurations"][0]}
