"""Placements, and the bytes that each moves over the network (docs/patterns.md).

A label requests one placement; broadcast and partly_shared request a number of replicas.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from tracehint.analyzer.arrays import order_by, starts_of
from tracehint.analyzer.catalogue import asking_for
from tracehint.analyzer.patterns.groups import Around
from tracehint.analyzer.patterns.rows import (
    PATTERNS,
    Facts,
    Floats,
    Ints,
    Labels,
    Rows,
    Single,
    code,
)
from tracehint.analyzer.sites import crossing_probability

# Placement numbers are indices into this tuple; REPLICAS + r means r copies.
PLACEMENTS = ("default", "local", "scatter", "collocation", "balanced", "regions")
DEFAULT, REPLICAS = 0, len(PLACEMENTS)


@dataclass
class Moved(Rows):
    """Inputs of the cost model for the file of each label, and the costs of the default placement
    in bytes."""

    s: Floats  # size
    n: Floats  # readers
    u: Floats  # mean bytes per reader
    owners: Ints
    together: Ints  # maximum number of concurrent readers
    home: Floats  # share of the bytes that is already where it is needed
    net: Floats  # default placement: network bytes
    wait: Floats  # default placement: bytes over the busiest link while readers wait


Cost = Callable[[Moved, float], Floats]


def _remote(x: Moved, _: float) -> Floats:
    return x.u * (1 - x.home)


def _cost_nothing(x: Moved, _: float) -> Floats:
    return np.zeros(len(x))


def _default_net(x: Moved, nodes: float) -> Floats:
    return (nodes - 1) / nodes * (x.s + x.n * x.u)


def _one_way(x: Moved, nodes: float) -> Floats:
    return (nodes - 1) / nodes * x.n * x.u


def _spread(x: Moved, nodes: float | Floats) -> Floats:
    return np.asarray(np.where(x.n == 0, 0.0, np.maximum(x.u, x.n * x.u / nodes)))


def _regions_net(x: Moved, nodes: float) -> Floats:
    one = np.where(x.n == 1, x.s * (1 - x.home), _one_way(x, nodes))
    return np.asarray(np.where(x.n == 0, 0.0, one))


def _regions_wait(x: Moved, nodes: float) -> Floats:
    return np.asarray(np.where(x.n < 2, 0.0, _spread(x, np.minimum(nodes, x.owners))))


# default placement of the store -> (network bytes, bytes over the busiest link while reading)
DEFAULTS: dict[str, tuple[Cost, Cost]] = {
    "striped": (_default_net, _spread),
    "one-node": (_default_net, _one_way),
    "local": (_one_way, _one_way),
}

# pattern -> placement, network bytes, waiting bytes; other patterns request replicas or nothing.
_REQUESTS: dict[str, tuple[str, Cost, Cost]] = {
    "pipeline": ("local", _remote, _remote),
    "stage_in": ("local", _cost_nothing, _cost_nothing),
    "scatter": ("scatter", lambda x, nodes: x.s * (nodes - 1) / nodes, _cost_nothing),
    "reduce": ("collocation", _remote, _cost_nothing),
    "distribute": ("balanced", _remote, _cost_nothing),
    "gather": ("regions", _regions_net, _regions_wait),
}
_REPLICATED = asking_for("replication")


@dataclass
class Asked(Rows):
    """The placement that each label requests, and its costs."""

    placement: Ints
    net: Floats
    wait: Floats
    copies: Ints


def count_moved_bytes(labels: Labels, facts: Facts, home: Floats) -> Moved:
    """Return the cost model's inputs for each label, without the costs of the default placement
    (`net` and `wait` are not valid yet). `home`: see `at_home`."""
    at = labels.file
    n = facts.n[at].astype(np.float64)
    u = np.where(n > 0, facts.u[at] / np.maximum(n, 1), 0.0)
    return Moved(facts.s[at].astype(np.float64), n, u, facts.np[at], facts.together[at], home, u, u)


def at_home(labels: Labels, facts: Facts, single: Single, around: Around, nodes: float) -> Floats:
    """Return per label the share of its file already where it is needed; needs all labels."""
    home = np.ones(len(labels))
    own = labels.pattern == code("pipeline")
    home[own] = _pipeline_home(single, labels.file[own], len(facts))
    own = labels.pattern == code("gather")
    file = labels.file[own]
    share = facts.owned_max[file] / np.maximum(facts.owned[file], 1)
    home[own] = np.maximum(1 / nodes, np.where(facts.owned[file] > 0, share, 0.0))
    # With more partners than nodes, the node that gets the group holds 1/N of it anyway.
    own = labels.group >= 0
    group = labels.group[own]
    share = np.minimum(1, around.largest[group] / np.maximum(around.bytes[group], 1))
    home[own] = np.maximum(1 / nodes, np.where(around.bytes[group] > 0, share, 0.0))
    return home


def _pipeline_home(single: Single, files: Ints, count: int) -> Floats:
    """Return the smaller of the producer's and the consumer's largest share: a consumer of several
    pipeline files can run at one producer only, and a producer's node runs one without a queue."""
    wanted = np.zeros(count, bool)
    wanted[files] = True
    piped = single.take(single.alone & wanted[single.file])
    order = order_by(piped.producer, piped.consumer)
    first = starts_of(piped.producer[order], piped.consumer[order])
    home = np.ones(count)
    if len(first):
        amount = np.add.reduceat(piped.u[order], first)
        ends = [
            _largest_share(task[order][first], amount)[task]
            for task in (piped.producer, piped.consumer)
        ]
        home[piped.file] = np.minimum(*ends)
    return home[files]


def _largest_share(task: Ints, amount: Ints) -> Floats:
    """Return per task its largest amount as a share of the sum of its amounts."""
    most, total = np.zeros(int(task.max()) + 1, np.int64), np.zeros(int(task.max()) + 1, np.int64)
    np.maximum.at(most, task, amount)
    np.add.at(total, task, amount)
    return np.where(total > 0, most / np.maximum(total, 1), 1.0)


def choose_placement(pattern: Ints, moved: Moved, nodes: float) -> Asked:
    """Return the requested placement of each label; the default for labels without a request."""
    none = np.zeros(len(moved), np.int64)
    found = Asked(none, moved.net.copy(), moved.wait.copy(), none + 1)
    for name in PATTERNS:
        at = np.flatnonzero(pattern == code(name))
        if not len(at) or name not in (*_REQUESTS, *_REPLICATED):
            continue
        some = moved.take(at)
        if name in _REPLICATED:
            copies = _replicas(some, nodes)
            found.placement[at], found.copies[at] = copies.placement, copies.copies
            found.net[at], found.wait[at] = copies.net, copies.wait
            continue
        placement, net, wait = _REQUESTS[name]
        found.placement[at] = PLACEMENTS.index(placement)
        found.net[at], found.wait[at] = net(some, nodes), wait(some, nodes)
    return found


def _replicas(x: Moved, nodes: float) -> Asked:
    """Choose one copy per 3 or per 2 simultaneous readers, whichever costs less; fewer than two
    copies mean the default. With more readers than nodes, several readers run at each copy."""
    few, more = (_copies(x, nodes, np.ceil(x.together / k)) for k in (3, 2))
    better = (more.wait < few.wait) | ((more.wait == few.wait) & (more.net < few.net))
    return Asked(
        np.where(better, more.placement, few.placement),
        np.where(better, more.net, few.net),
        np.where(better, more.wait, few.wait),
        np.where(better, more.copies, few.copies),
    )


def _copies(x: Moved, nodes: float, wanted: Floats) -> Asked:
    r = np.maximum(np.minimum(2, x.together), wanted)
    r = np.minimum(np.minimum(nodes, x.n), r)
    remote = np.maximum(0, x.n - r * np.maximum(1, x.n / nodes))
    some = r >= 2
    return Asked(
        np.where(some, r.astype(np.int64) + REPLICAS, DEFAULT),
        np.where(some, (r - 1) * x.s + remote * x.u, x.net),
        np.where(some, np.maximum(x.u, remote * x.u / np.maximum(r, 1)), x.wait),
        r.astype(np.int64),
    )


def across(asked: Asked, moved: Moved, hosts_by_site: Mapping[str, int], nodes: int) -> Floats:
    """Return the network bytes of each placement that cross between sites.

    With replicas, the first copy at each site crosses, and so do reads from sites without a copy.
    Of all other traffic, the share of node pairs at different sites crosses.
    """
    sites = max(1, len(hosts_by_site))
    plain = asked.net * crossing_probability(hosts_by_site, nodes)
    first = np.minimum(asked.copies, sites) - 1
    remote = asked.net - (asked.copies - 1) * moved.s
    bare = np.maximum(0, sites - asked.copies) / sites
    copied = first * moved.s + remote * bare
    return np.asarray(np.where(asked.placement >= REPLICAS, copied, plain))
