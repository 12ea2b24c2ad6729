"""Many small files read at one time: each is unpacked by one thread, and Python is half of it."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")
_MANY = 64  # files that are worth the threads
_SMALL = 1 << 18  # bytes of a file: larger ones are unpacked by several threads as it is
_AHEAD = 4  # results of each thread that wait at most


def readers(files: Sequence[Path]) -> int:
    """Threads that read these files."""
    if len(files) < _MANY:
        return 1
    try:
        small = all(file.stat().st_size <= _SMALL for file in files)
    except OSError:  # its reader will say so
        return 1
    return len(os.sched_getaffinity(0)) if small else 1


def in_their_order(work: Callable[[T], R], items: Iterable[T], threads: int) -> Iterator[R]:
    """`work` of each item; a few more than have been asked for where there are `threads`."""
    if threads < 2:
        yield from map(work, items)
        return
    with ThreadPoolExecutor(threads) as pool:
        begun: deque[Future[R]] = deque()
        for item in items:
            begun.append(pool.submit(work, item))
            if len(begun) > _AHEAD * threads:
                yield begun.popleft().result()
        while begun:
            yield begun.popleft().result()


def one_ahead(items: Iterator[T]) -> Iterator[T]:
    """The items, none of which is None; each is made while the one before it is in use."""
    with ThreadPoolExecutor(1) as pool:
        coming = pool.submit(next, items, None)
        while (item := coming.result()) is not None:
            coming = pool.submit(next, items, None)
            yield item
