"""The configurations of a sweep, from the options of `tracehint predict`."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tracehint.errors import UsageError

if TYPE_CHECKING:
    from tracehint.analyzer.model import Analysis
    from tracehint.analyzer.predict.cluster import Cluster
    from tracehint.analyzer.predict.placement import Strategy
    from tracehint.analyzer.predict.prediction import Configuration

MAX_VALUES = 1000
Value = float | None  # None: as the cluster file says


def configurations(
    clusters: Sequence[str],
    analysis: Analysis,
    placements: Sequence[str] = (),
    nodes: str | None = None,
    chunk: str | None = None,
    copies: str | None = None,
    split_nodes: str | None = None,
) -> list[Configuration]:
    """Every combination of clusters, placements and numbers; the names tell them apart.

    Raises UsageError and InputError.
    """
    from tracehint.analyzer.predict.cluster_file import read_cluster
    from tracehint.analyzer.predict.prediction import Configuration

    strategies = {name: _strategy(name, analysis) for name in placements or ("default",)}
    axes = {
        "nodes": numbers(nodes, "--nodes", 1, 10_000),
        "chunk": numbers(chunk, "--chunk", 0.001, 1e6, whole=False),
        "copies": numbers(copies, "--copies", 1, 64),
        "split": numbers(split_nodes, "--split-nodes", 1, 9_999),
    }
    found = []
    for given in clusters:
        cluster = read_cluster(given)
        for values in itertools.product(*(list[Value](axis) or [None] for axis in axes.values())):
            point = dict[str, Value](zip(axes, values, strict=True))
            changed = _changed(cluster, **point)
            for name, strategy in strategies.items():
                title = _title(cluster.name, name, changed.count, point)
                found.append(Configuration(title, changed, name, strategy))
    return _distinct(found)


def _changed(
    cluster: Cluster,
    nodes: float | None,
    chunk: float | None,
    copies: float | None,
    split: float | None,
) -> Cluster:
    if nodes is not None:
        cluster = cluster.with_nodes(int(nodes))
    if chunk is not None:
        cluster = cluster.with_store(chunk_mb=chunk * 1e6)
    if copies is not None:
        cluster = cluster.with_store(copies=copies)
    if split is not None:
        if split >= cluster.count:
            raise UsageError(
                f"--split-nodes {split:g} of {cluster.count} nodes leaves none for tasks",
                "Give fewer, or more --nodes.",
            )
        cluster = cluster.split(int(split))
    return cluster


def _title(cluster: str, placement: str, nodes: int, point: dict[str, float | None]) -> str:
    words = [cluster, placement, f"{nodes} nodes"]
    named = {"chunk": "chunk {:g} MB", "copies": "{:g} copies", "split": "{:g} servers"}
    words += [text.format(point[key]) for key, text in named.items() if point[key] is not None]
    return ", ".join(words)


def _distinct(found: list[Configuration]) -> list[Configuration]:
    """Names are keys: a cluster given twice gets a number."""
    import dataclasses

    seen: dict[str, int] = {}
    result = []
    for point in found:
        seen[point.name] = count = seen.get(point.name, 0) + 1
        result.append(
            point if count == 1 else dataclasses.replace(point, name=f"{point.name} ({count})")
        )
    return result


def numbers(
    text: str | None, option: str, least: float, most: float, *, whole: bool = True
) -> list[float]:
    """The numbers of a list with commas; empty for None. Raises UsageError."""
    if text is None:
        return []
    found = []
    for word in text.split(",")[: MAX_VALUES + 1]:
        try:
            number = float(word)
        except ValueError:
            number = float("nan")
        if not least <= number <= most or (whole and number != int(number)):
            kind = "whole numbers" if whole else "numbers"
            raise UsageError(
                f"{option}: {word[:40]!r} cannot be", f"Give {kind} from {least:g} to {most:g}."
            )
        found.append(number)
    if len(found) > MAX_VALUES:
        raise UsageError(f"{option}: too many numbers", f"At most {MAX_VALUES}.")
    return list(dict.fromkeys(found))


def _strategy(name: str, analysis: Analysis) -> Strategy:
    from tracehint.analyzer.predict.placement import STRATEGIES

    if name in STRATEGIES:
        return STRATEGIES[name]
    kind, _, where = name.partition(":")
    if kind == "hints" and where:
        from tracehint.hintgen.hints.hintfile import load
        from tracehint.hintgen.placed import hinted

        return hinted(load(Path(where)), analysis, name)
    raise UsageError(
        f"--placement {name[:80]!r} is not known", f"Choose {', '.join(STRATEGIES)} or hints:FILE."
    )
