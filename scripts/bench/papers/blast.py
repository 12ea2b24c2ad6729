"""BLAST with a shared database: its copies, and 20 nodes split between computing and storage."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scripts.bench.papers.patterns import LINK, STRIPES, WORKERS
from tests.support.predicting import MB, Task, plain, workload

from tracehint.analyzer.predict.cluster import Cluster
from tracehint.analyzer.predict.model import Placement, Workload, default
from tracehint.analyzer.predict.prediction import Configuration, Prediction, predict

DATABASE = 1_700 * MB
QUERIES = 38
SEARCH = 65.0  # seconds per query, of 38: two per process, 130 s, as published with most copies
SERVER = 26.0  # MB/s that a server writes; fitted to the staging of 16 copies, 55 s
# copies -> published seconds of staging in, of searching, in total (their Table 5)
PUBLISHED = {
    1: (17, 207, 226), 2: (19, 173, 193), 4: (29, 165, 191), 8: (36, 162, 200), 16: (55, 164, 221),
}  # fmt: skip  # a table
SPLIT_NODES, SPLIT_QUERIES = 20, 200
SERVERS = (1, 2, 3, 4, 5, 6, 7, 8, 10, 13, 16, 19)
CHUNKS_KB = (256, 1024, 4096)


def searching(queries: int = QUERIES, *, staged: bool = True) -> Workload:
    """Return tasks that read the database and search in it; total work is independent of `queries`.

    `staged`: a task stages in the database first.
    """
    tasks = [Task("stage_in", [("write", "db")], "stage-in")] if staged else []
    seconds = SEARCH * QUERIES / queries
    for i in range(queries):
        steps = [("read", "db"), ("compute", seconds), ("write", f"out{i}")]
        tasks.append(Task(f"search{i}", steps, "search"))
    return workload(tasks, {"db": DATABASE} | {f"out{i}": MB // 2 for i in range(queries)})


def cluster(nodes: int, more: str = "", node: str = "") -> Cluster:
    """Return workers that cache the data they read, with a striped store."""
    store = f"{STRIPES}\nclient_cache = true\n{more}"
    return plain(nodes, 1, node=f"{LINK}\n{node}", store=store)


def copied(number: int) -> Prediction:
    """Predict the run with `number` copies of the database."""
    slow = cluster(WORKERS, node=f"disk_write_mb_s = {SERVER}\nwrite_buffer_gb = 0")

    def copies(work: Workload, _: Cluster) -> Placement:
        many = np.where(work.size == DATABASE, number, 1).astype(np.int32)
        return Placement("copies", copies=many)

    return predict(searching(), [Configuration(str(number), slow, "copies", copies)], runs=3)[0]


def stages(found: Prediction) -> tuple[float, float]:
    """Return the seconds of staging in, and of searching."""
    rows = found.outcome.types
    return float(rows[0, 1]), float(rows[1, 1] - rows[1, 0])


@dataclass(frozen=True)
class Split:
    """A configuration of the 20 nodes, and its predicted seconds."""

    servers: int
    chunk_kb: int
    seconds: float


def splits() -> list[Split]:
    """Predict every split at every chunk size."""
    base = cluster(SPLIT_NODES, "lookup_ms = 0.1\nlatency_ms = 0.2")
    points = [(servers, chunk) for servers in SERVERS for chunk in CHUNKS_KB]
    cases = [
        Configuration("", base.split(servers).with_store(chunk_mb=chunk * 1024.0), "", default)
        for servers, chunk in points
    ]
    found = predict(searching(SPLIT_QUERIES, staged=False), cases, runs=3)
    return [Split(*point, one.seconds) for point, one in zip(points, found, strict=True)]
