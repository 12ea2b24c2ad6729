"""Partitions computed by threads of this process: numpy lets them run at one time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from tracehint.analyzer.execution.resources import Resources
from tracehint.analyzer.memory import give_back

T = TypeVar("T")
_GIVE_BACK = 4  # partitions after which what they took on the way goes back


def beside(work: Callable[[], T], resources: Resources) -> Callable[[], T]:
    """Begin `work` in a thread of its own, where there may be two; returns who waits for the
    result. To be called once: nobody else keeps the result."""
    if resources.threads < 2:
        return work
    pool = ThreadPoolExecutor(1)
    begun = [pool.submit(work)]
    pool.shutdown(wait=False)
    return lambda: begun.pop().result()


def compute_all(
    work: Callable[[int], T], chosen: Sequence[int], resources: Resources, stage: str
) -> list[T]:
    """`work` of each number, in their order."""
    found: list[T] = []

    def keep(result: T) -> None:
        found.append(result)
        if not len(found) % _GIVE_BACK:
            give_back()
        resources.tell(stage, len(found), len(chosen), "partitions")

    if resources.threads < 2 or len(chosen) < 2:
        for i in chosen:
            keep(work(i))
        return found
    with ThreadPoolExecutor(resources.threads) as pool:
        for result in pool.map(work, chosen):
            keep(result)
    return found
