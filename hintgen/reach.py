"""Reachability of pairs in a directed graph: whether it orders one task before another."""

from __future__ import annotations

import numpy as np

from tracehint.analyzer.arrays import (
    Bools,
    Ints,
    distinct,
    ints,
    lookup,
    order_by,
    rank_values,
    spread,
    starts_of,
)

MAX_STEPS = 100_000_000  # limit of links followed by one object; some seconds
CELLS = 1 << 26  # visited marks of one byte: number of concurrent starts times nodes


class Reach:
    """Decides which pairs (before, after) a directed graph connects.

    It traverses once from each distinct node of the smaller side: the cost is the size of the
    graph times the smaller side, not times the pairs. After MAX_STEPS links it stops, and the
    remaining pairs are `unknown`. Nodes are any integers.
    """

    def __init__(self, before: Ints, after: Ints, steps: int = MAX_STEPS) -> None:
        self._before, self._after, self._left = before, after, steps

    def split(self, before: Ints, after: Ints) -> tuple[Bools, Bools]:
        """Return masks of the unordered and the unknown pairs."""
        turned = len(distinct(after)) < len(distinct(before))
        ends = (after, before) if turned else (before, after)
        links = (self._after, self._before) if turned else (self._before, self._after)
        nodes = distinct(np.concatenate([*links, *ends]))
        number = np.arange(len(nodes))
        walk = _Links(len(nodes), *(lookup(nodes, number, side) for side in links))
        start, end = (lookup(nodes, number, side) for side in ends)
        pair, place = rank_values(start * len(nodes) + end)
        reached, known = self._walk_links(walk, pair)
        return (~reached & known)[place], (~reached & ~known)[place]

    def _walk_links(self, links: _Links, pair: Ints) -> tuple[Bools, Bools]:
        """Return, for distinct sorted pairs (start * nodes + end), whether reached, and known."""
        reached, known = np.zeros(len(pair), bool), np.zeros(len(pair), bool)
        start = pair // max(1, links.nodes)
        first = starts_of(start)
        starts, last = start[first], np.append(first[1:], len(pair))
        width = min(len(starts), max(1, CELLS // max(1, links.nodes)))
        seen = np.zeros(width * links.nodes, bool)
        for low in range(0, len(starts), width or 1):
            own = slice(first[low], last[min(low + width, len(starts)) - 1])
            rank = np.searchsorted(starts, start[own]) - low
            ends = rank * links.nodes + pair[own] % links.nodes
            some, wanted = starts[low : low + width], np.bincount(rank)
            reached[own] = self._find_reached(links, some, ends, wanted, seen)
            if self._left < 0:
                known[own] = reached[own]
                break
            known[own] = True
        return reached, known

    def _find_reached(
        self, links: _Links, starts: Ints, ends: Ints, wanted: Ints, seen: Bools
    ) -> Bools:
        """Return a mask of the sorted `ends` reached. A cell is (index of a start) * nodes + node;
        `wanted`: ends per start; `seen`: a mark per cell, all False on entry and return."""
        found = np.zeros(len(ends), bool)
        front, been = np.arange(len(starts)) * links.nodes + starts, list[Ints]()
        while len(front):
            seen[front] = True
            been.append(front)
            front = links.next_cells(front, self._left)
            self._left -= links.steps
            if self._left < 0:
                break
            front = distinct(front[~seen[front]])
            at = np.minimum(np.searchsorted(ends, front), len(ends) - 1)
            hit = at[ends[at] == front]
            if len(hit):
                found[hit] = True
                np.subtract.at(wanted, ends[hit] // links.nodes, 1)
            front = front[wanted[front // links.nodes] > 0]  # other starts are done
        for cells in been:
            seen[cells] = False
        return found


class _Links:
    """Links of a graph with `nodes` nodes, sorted by source."""

    def __init__(self, nodes: int, before: Ints, after: Ints) -> None:
        self.nodes, self.steps = nodes, 0
        self._to = after[order_by(before)]
        self._count = np.bincount(before, minlength=nodes)
        self._first = np.cumsum(self._count) - self._count

    def next_cells(self, cells: Ints, most: int) -> Ints:
        """Return the cells one link further, empty if more than `most`; `steps`: their number."""
        node = cells % self.nodes
        count = self._count[node]
        self.steps = int(count.sum())
        if self.steps > most:
            return ints([])
        following: Ints = np.repeat(cells - node, count)
        following += self._to[spread(self._first[node], count)]
        return following
