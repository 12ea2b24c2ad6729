"""The ranks of MPI jobs as processes: each is a fork of its job's process."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tracehint.collectors.darshan.facts import LogFacts

SHARED = -1  # rank of what all ranks have in common


def rank_processes(facts: list[LogFacts]) -> list[dict[int, int]]:
    """Per log the process of each rank that did something, where there are several ranks.

    A log's own process, of rank SHARED, is the job: it has the counters that all ranks share. Its
    number is the log's, from 1 on; those of ranks follow after all logs.
    """
    number, found = len(facts), []
    for k, f in enumerate(facts):
        procs = {SHARED: k + 1}
        ranks = {int(r) for r in np.unique(f.runs["rank"])} | {part["rank"] for part in f.opens}
        for rank in sorted(r for r in ranks if r >= 0 and f.nprocs > 1):
            number += 1
            procs[rank] = number
        found.append(procs)
    return found


def rank_rows(
    facts: list[LogFacts], procs: list[dict[int, int]], rows: list[dict[str, Any]]
) -> list[dict[str, Any]]:
    """Rows of `processes` for the ranks; `rows` are those of the logs."""
    return [
        {
            **rows[k],
            "proc": proc,
            "parent": k + 1,
            "host": f.rank_hosts.get(rank) or rows[k]["host"],
            "pid": 0,
            "exe": None,
            "argv": [],
            "env": [{"name": "PMI_RANK", "value": str(rank).encode()}],
        }
        for k, f in enumerate(facts)
        for rank, proc in procs[k].items()
        if rank != SHARED
    ]


def processes_of(procs: dict[int, int], ranks: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The process of each of these ranks of one log."""
    distinct, back = np.unique(ranks, return_inverse=True)
    found = [procs.get(int(rank), procs[SHARED]) for rank in distinct]
    return np.array(found, np.int64)[back.reshape(-1)]
