"""The sites of a cluster file: their cores, and how far they are from each other."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tracehint.analyzer.arrays import Shorts
from tracehint.analyzer.predict.cluster import Cluster
from tracehint.analyzer.predict.metadata.model import MetaWork, Sites
from tracehint.errors import InputError

MAX_SITES = 64


def sites_of(cluster: Cluster) -> Sites:
    """The sites. Raises InputError for a cluster of fewer than two, or without nodes at one."""
    names = tuple(name for name, _ in cluster.sites)
    if not 2 <= len(names) <= MAX_SITES:
        raise InputError(
            f"{cluster.name}: has {len(names)} sites: metadata over sites needs 2 to {MAX_SITES}",
            "Name them in [[sites]], and the site of each class of [[nodes]] "
            "(docs/reference/cluster-file.md).",
        )
    nodes, cores = [0] * len(names), [0] * len(names)
    for part in cluster.nodes:
        at = names.index(part.words["site"])
        nodes[at] += int(part["count"])
        cores[at] += int(part["count"] * part["cores"])
    registry = cluster.registry
    return Sites(
        names=names,
        nodes=tuple(nodes),
        cores=tuple(cores),
        round_trip=_round_trips(cluster, names),
        lookup=registry["lookup_ms"],
        update=registry["update_ms"],
        sync=registry["sync_ms"],
    )


def at_nodes(work: MetaWork, node: Shorts, cluster: Cluster) -> MetaWork:
    """The same with each task at the site of its node; "" where it has none (-1)."""
    words = [part.words["site"] for part in cluster.nodes for _ in range(int(part["count"]))]
    site = [words[n] if n >= 0 else "" for n in node.tolist()]
    return replace(work, site=site, where="the site of its node in the plan")


def _round_trips(cluster: Cluster, names: tuple[str, ...]) -> np.ndarray:
    """Seconds there and back between each pair of sites, and within one."""
    near = cluster.store["latency_ms"]
    found = np.full((len(names), len(names)), near + cluster.store["site_latency_ms"])
    np.fill_diagonal(found, near)
    for link in cluster.links:
        a, b = names.index(link.words["a"]), names.index(link.words["b"])
        found[a, b] = found[b, a] = link["round_trip_ms"]
    return found
