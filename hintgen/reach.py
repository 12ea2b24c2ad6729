"""Does the declared graph order one task before another?"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

Node = int
MOST_STEPS = 20_000_000  # links followed for one question; some seconds


class Reach:
    """Which pairs (before, after) a directed graph connects.

    It walks from whichever side has fewer distinct nodes, and from each of them once: the cost is
    that of the graph times the smaller side, not times the pairs. After MOST_STEPS links it stops:
    what is left is `unknown`.
    """

    def __init__(self, links: Iterable[tuple[Node, Node]], steps: int = MOST_STEPS) -> None:
        self._down: dict[Node, list[Node]] = {}
        self._up: dict[Node, list[Node]] = {}
        for before, after in links:
            self._down.setdefault(before, []).append(after)
            self._up.setdefault(after, []).append(before)
        self._left = steps

    def split(
        self, pairs: Iterable[tuple[Node, Node]]
    ) -> tuple[set[tuple[Node, Node]], set[tuple[Node, Node]]]:
        """(unordered, unknown) of the given pairs."""
        asked = set(pairs)
        turned = len({a for _, a in asked}) < len({b for b, _ in asked})
        wanted: dict[Node, set[Node]] = {}
        for before, after in asked:
            start, end = (after, before) if turned else (before, after)
            wanted.setdefault(start, set()).add(end)
        unordered: set[tuple[Node, Node]] = set()
        unknown: set[tuple[Node, Node]] = set()
        for start, ends in wanted.items():
            whole = self._take(start, ends, self._up if turned else self._down)
            kind = unordered if whole else unknown
            kind.update((end, start) if turned else (start, end) for end in ends)
        return unordered, unknown

    def _take(self, start: Node, ends: set[Node], links: Mapping[Node, list[Node]]) -> bool:
        """Remove from `ends` what can be reached; False: stopped before all was seen."""
        seen, stack = {start}, [start]
        while stack and ends:
            following = links.get(stack.pop(), ())
            self._left -= len(following)
            if self._left < 0:
                return False
            for node in following:
                if node not in seen:
                    seen.add(node)
                    stack.append(node)
                    ends.discard(node)
        return True
