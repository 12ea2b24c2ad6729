"""Scheduling of ready tasks by the rules of the simulator (analyzer/predict/engine/schedule.c), so
that a replay and its prediction differ only in the store."""

from __future__ import annotations

import random
from collections import deque
from dataclasses import dataclass, field


@dataclass
class Dispatcher:
    """`free`: free slots by node. Tasks start in the order in which they became ready: first on
    their preferred nodes, then those without preference, then any on any node; without `steal`,
    tasks bound to a node start only there."""

    free: list[int]
    rng: random.Random
    steal: bool = True
    _own: dict[int | None, deque[int]] = field(default_factory=dict)
    _order: deque[int] = field(default_factory=deque)
    _waiting: set[int] = field(default_factory=set)

    def ready(self, task: int, node: int | None, *, bound: bool = False) -> None:
        """Add a task that can start, preferably on `node` (None: anywhere)."""
        self._own.setdefault(node, deque()).append(task)
        if self.steal or not bound:
            self._order.append(task)
        self._waiting.add(task)

    def started(self) -> list[tuple[int, int]]:
        """Start tasks on free slots; return their (task, node)."""
        found = []
        for node in range(len(self.free)):
            while self.free[node] and (task := self._first(self._own.get(node))) is not None:
                found.append(self._take(task, node))
        for queue in (self._own.get(None), self._order):
            while any(self.free) and (task := self._first(queue)) is not None:
                idle = [n for n, slots in enumerate(self.free) if slots]
                found.append(self._take(task, self.rng.choice(idle)))
        return found

    def ended(self, node: int) -> None:
        """Free a slot of a node."""
        self.free[node] += 1

    def _take(self, task: int, node: int) -> tuple[int, int]:
        self._waiting.discard(task)
        self.free[node] -= 1
        return task, node

    def _first(self, queue: deque[int] | None) -> int | None:
        while queue and queue[0] not in self._waiting:
            queue.popleft()
        return queue[0] if queue else None
