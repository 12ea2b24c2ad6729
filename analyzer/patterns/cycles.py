"""Tasks that feed each other both ways, and files with too many versions.

The flow folds such files into one row each and marks them; the search here also covers tables
that come from elsewhere.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tracehint.analyzer.arrays import Bools, Ints, distinct
from tracehint.analyzer.columns import column
from tracehint.analyzer.patterns.rows import ROLES, UNKNOWN, Facts, KeptEdges

if TYPE_CHECKING:
    import pyarrow as pa

    from tracehint.analyzer.model import Options

_ROUNDS = 64


@dataclass
class SharedFiles:
    """Concurrently shared files: per file whether it is one, the tasks in its cycle (UNKNOWN:
    it is on none that was found here), and whether a cycle is the reason."""

    file: Bools
    tasks: Ints
    cycle: Bools


def components(pairs: Any) -> Any:
    """Strongly connected components with at least two tasks.

    `pairs` is an int64 array of shape (edges, 2); the result an int64 array of shape
    (members, 2): task, component. Tasks without a way in or out are peeled off first, so
    the search itself sees only the neighbourhood of the cycles.
    """
    for _ in range(_ROUNDS):
        keep = np.isin(pairs[:, 0], pairs[:, 1]) & np.isin(pairs[:, 1], pairs[:, 0])
        if keep.all():
            break
        pairs = pairs[keep]
    if not len(pairs):
        return np.empty((0, 2), np.int64)
    import networkx as nx

    graph: nx.DiGraph[int] = nx.DiGraph()
    graph.add_edges_from(pairs.tolist())
    found = [sorted(c) for c in nx.strongly_connected_components(graph) if len(c) > 1]
    rows = [(task, k) for k, members in enumerate(found) for task in members]
    return np.array(rows, np.int64).reshape(-1, 2)


def find(
    files: pa.Table, facts: Facts, links: KeptEdges, tasks: int, options: Options, *, backward: bool
) -> SharedFiles:
    """`backward`: some edge points back in time. Without one (nearly every run: producers start
    first) there is no cycle to look for."""
    count = len(facts)
    shared = SharedFiles(np.zeros(count, bool), np.full(count, UNKNOWN), np.zeros(count, bool))
    if backward:
        pairs = distinct(links.producer.astype(np.int64) * tasks + links.consumer)
        members = components(np.column_stack(np.divmod(pairs, tasks)))
        _mark(shared, links, members, tasks)
    many = _too_many_versions(files, facts, options.max_versions)
    marked = column(files, "concurrent") == 1
    more = (marked | many) & (facts.role != ROLES.index("software")) & (facts.role >= 0)
    more &= ~shared.file
    shared.file |= more
    shared.cycle |= more & facts.both_ways
    return shared


def _mark(shared: SharedFiles, links: KeptEdges, members: Ints, tasks: int) -> None:
    """The files of the edges inside a component."""
    of_task = np.full(tasks, UNKNOWN, np.int64)
    of_task[members[:, 0]] = members[:, 1]
    size = np.bincount(members[:, 1])
    component = of_task[links.producer]
    inside = (component != UNKNOWN) & (component == of_task[links.consumer])
    at = links.file[inside]
    np.maximum.at(shared.tasks, at, size[component[inside]])
    shared.file[at] = shared.cycle[at] = True


def _too_many_versions(files: pa.Table, facts: Facts, most: int) -> Bools:
    """Files whose path has more versions than `most`; software does not count."""
    lineage = column(files, "lineage")
    counts = (facts.role >= 0) & (facts.role != ROLES.index("software"))
    if not len(lineage):
        return np.asarray(counts, bool)
    order = np.argsort(lineage, kind="stable")
    new = np.ones(len(lineage), bool)
    new[1:] = lineage[order][1:] != lineage[order][:-1]
    number = np.empty(len(lineage), np.int64)
    number[order] = np.cumsum(new) - 1
    versions = np.bincount(number[counts], minlength=len(order))
    return np.asarray(versions[number] > most, bool)
