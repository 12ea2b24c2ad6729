"""Partition a run by sites first, with few bytes between them, then by nodes within each site."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from tracehint.analyzer.arrays import Bools, Ints
from tracehint.analyzer.predict.cluster import Cluster
from tracehint.hintgen.plan.graph import Graph, Moves
from tracehint.hintgen.plan.partition import cores_of, parts_of, shares_of, ways_for

WAYS = 3  # number of cuts by site


def sites_of(cluster: Cluster) -> Ints:
    """Return the site index of each node, 0 to k - 1; all 0 if the cluster has no sites."""
    names = [part.words["site"] for part in cluster.nodes]
    counts = [int(part["count"]) for part in cluster.nodes]
    known = sorted(set(names))
    return np.repeat([known.index(name) for name in names], counts).astype(np.int64)


def cuts_by_site(graph: Graph, cluster: Cluster, seed: int) -> list[Ints]:
    """Return the part (node) of each task for several cuts; none for fewer than two sites.

    The first cuts divide the tasks by the compute power of the sites, the last use one site each.
    Raises UnavailableError without METIS.
    """
    sites = sites_of(cluster)
    count = int(sites.max(initial=0)) + 1
    if count < 2 or graph.tasks < 2:
        return []
    whole = _one_node_a_site(cluster, sites, count)
    ways = ways_for(graph.tasks, seed)[:WAYS]
    shared = [parts_of(graph, whole, way) for way in ways]
    alone = [np.full(graph.tasks, site, np.int64) for site in range(count)]
    found = [
        _nodes_within_sites(graph, cluster, sites, site_of, seed + number)
        for number, site_of in enumerate([*shared, *alone])
    ]
    return list({part.tobytes(): part for part in found}.values())


def _one_node_a_site(cluster: Cluster, sites: Ints, count: int) -> Cluster:
    """Return a cluster with one node per site, with the total cores and power of its nodes."""
    power = np.bincount(sites, shares_of(cluster), count)
    cores = np.bincount(sites, cores_of(cluster), count)
    first = cluster.nodes[0]
    nodes = [
        first.with_number("count", 1)
        .with_number("cores", float(cores[site]))
        .with_number("speed", float(power[site] / cores[site]))
        for site in range(count)
    ]
    return replace(cluster, nodes=tuple(nodes))


def _nodes_within_sites(
    graph: Graph, cluster: Cluster, sites: Ints, site_of: Ints, seed: int
) -> Ints:
    """Return the node of each task, given its site."""
    part = np.zeros(graph.tasks, np.int64)
    for site, own in enumerate(_clusters(cluster, sites)):
        tasks = site_of == site
        nodes = np.flatnonzero(sites == site)
        if not tasks.any():
            continue
        if len(nodes) == 1 or tasks.sum() == 1:
            part[tasks] = nodes[0]
            continue
        way = ways_for(graph.tasks, seed)[0]
        part[tasks] = nodes[parts_of(_subgraph(graph, tasks), own, way)]
    return part


def _clusters(cluster: Cluster, sites: Ints) -> Iterator[Cluster]:
    """Yield a cluster of the nodes of each site."""
    at = 0
    first = []
    for part in cluster.nodes:
        first.append(int(sites[at]))
        at += int(part["count"])
    for site in range(int(sites.max()) + 1):
        nodes = tuple(n for n, own in zip(cluster.nodes, first, strict=True) if own == site)
        yield replace(cluster, nodes=nodes)


def _subgraph(graph: Graph, tasks: Bools) -> Graph:
    """Return the graph of some tasks and all files; files written by other tasks become inputs."""
    number = np.cumsum(tasks) - 1

    def moves(all_moves: Moves) -> Moves:
        kept = all_moves.take(tasks[all_moves.task])
        return Moves(number[kept.task], kept.file, kept.bytes)

    writer = np.where(graph.writer >= 0, graph.writer, 0)
    made = (graph.writer >= 0) & tasks[writer]
    links = tasks[graph.link_from] & tasks[graph.link_to]
    return replace(
        graph,
        tasks=int(tasks.sum()),
        reads=moves(graph.reads),
        writes=moves(graph.writes),
        link_from=number[graph.link_from[links]],
        link_to=number[graph.link_to[links]],
        link_file=graph.link_file[links],
        link_bytes=graph.link_bytes[links],
        writer=np.where(made, number[writer], -1),
        stage=np.unique(graph.stage[tasks], return_inverse=True)[1],
        seconds=graph.seconds[tasks],
    )
