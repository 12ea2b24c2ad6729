"""Portions computed by threads of this process: numpy lets them run at one time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from tracehint.analyzer.execution.resources import Resources

T = TypeVar("T")


def compute_all(
    work: Callable[[int], T], chosen: Sequence[int], resources: Resources, stage: str
) -> list[T]:
    """`work` of each number, in their order."""
    found: list[T] = []

    def keep(result: T) -> None:
        found.append(result)
        resources.tell(stage, len(found), len(chosen), "portions")

    if resources.threads < 2 or len(chosen) < 2:
        for i in chosen:
            keep(work(i))
        return found
    with ThreadPoolExecutor(resources.threads) as pool:
        for result in pool.map(work, chosen):
            keep(result)
    return found
