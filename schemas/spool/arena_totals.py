"""Totals of files that were open when their process was killed."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracehint.schemas.spool import layout as lay
from tracehint.schemas.spool.rows import is_in, kept

Records = NDArray[Any]


def totals_of_killed(episodes: Records, extents: Records) -> None:
    """An operation is counted, then its run is noted; of one that a kill came between, the count
    goes, so that totals are those of the runs. In place; episodes: EPISODE_DT, extents: EXTENT_DT.
    """
    whole = (episodes["close_ns"] == 0) & (episodes["lost_ops"] == 0)
    whole &= (episodes["state"] & (lay.PIPE | lay.PARTIAL)) == 0
    which = np.flatnonzero(whole)
    killed = kept(episodes, whole)
    for op in ("read", "write"):
        sums = [_of_runs(killed, extents, lay.OPS.index(op), what) for what in ("bytes", "ops")]
        more = killed[f"{op}_bytes"] > sums[0]
        killed[f"{op}_bytes"][more] = sums[0][more]
        killed[f"{op}_ops"][more] = np.minimum(killed[f"{op}_ops"], sums[1])[more]
    most = killed["read_ops"] + killed["write_ops"]
    for name in ("seq_ops", "small_ops"):
        killed[name] = np.minimum(killed[name], most)
    episodes[which] = killed


def _of_runs(episodes: Records, extents: Records, op: int, what: str) -> NDArray[np.uint64]:
    """Bytes or operations of all runs of each episode: those sent, and the last two."""
    of_these = is_in(extents["open_id"], episodes["open_id"])
    runs = kept(extents, of_these & (extents["run"]["op"] == op))
    ids, places = np.unique(runs["open_id"], return_inverse=True)
    sums = np.zeros(len(ids) + 1, np.uint64)
    np.add.at(sums, places, runs["run"][what].astype(np.uint64))
    at = np.searchsorted(ids, episodes["open_id"])
    known = at < len(ids)
    known[known] = ids[at[known]] == episodes["open_id"][known]
    total = np.where(known, sums[np.minimum(at, len(ids))], np.uint64(0))
    for name in ("outer", "inner"):
        run = episodes[name]
        total += np.where((run["op"] == op) & (run["ops"] > 0), run[what], 0).astype(np.uint64)
    return total
