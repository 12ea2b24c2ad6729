"""Read many logs in worker processes; a log that crashes its worker costs only itself."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.context import SpawnContext

from tracehint.collectors.darshan.facts import LogFacts, UnreadableLogError
from tracehint.collectors.darshan.log import read_log

CHUNK = 32
Outcome = tuple[str, LogFacts | str]  # path, its facts or the reason why there are none


def _read_chunk(paths: Sequence[str], reader: Callable[[str], LogFacts]) -> list[Outcome]:
    """Runs in a worker. The library's own messages on stderr are silenced there."""
    devnull = os.open(os.devnull, os.O_WRONLY)
    os.dup2(devnull, 2)
    os.close(devnull)
    found: list[Outcome] = []
    for path in paths:
        try:
            found.append((path, reader(path)))
        except UnreadableLogError as error:
            found.append((path, str(error)))
        except Exception as error:  # of the library's wrapper, which trusts what it reads
            reason = str(error) or type(error).__name__
            found.append((path, f"it cannot be understood: {reason[:200]}"))
    return found


def read_logs(
    paths: Sequence[str], workers: int | None = None, reader: Callable[[str], LogFacts] = read_log
) -> Iterator[Outcome]:
    """(path, facts or reason) of every log, in no particular order."""
    chunks = [paths[k : k + CHUNK] for k in range(0, len(paths), CHUNK)]
    count = min(len(chunks), workers or os.cpu_count() or 1)
    retry: list[Sequence[str]] = []
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(count, mp_context=context) as pool:
        futures = {pool.submit(_read_chunk, chunk, reader): chunk for chunk in chunks}
        for future in as_completed(futures):
            try:
                yield from future.result()
            except BrokenProcessPool:
                retry.append(futures[future])
    yield from _one_by_one([path for chunk in retry for path in chunk], reader, context)


def _one_by_one(
    paths: Sequence[str], reader: Callable[[str], LogFacts], context: SpawnContext
) -> Iterator[Outcome]:
    """Logs of chunks in which one crashed the library: a worker serves until it crashes."""
    pool: ProcessPoolExecutor | None = None
    for path in paths:
        pool = pool or ProcessPoolExecutor(1, mp_context=context)
        try:
            yield from pool.submit(_read_chunk, [path], reader).result()
        except BrokenProcessPool:
            yield path, "it crashed the Darshan library (damaged log)"
            pool.shutdown()
            pool = None
    if pool:
        pool.shutdown()
