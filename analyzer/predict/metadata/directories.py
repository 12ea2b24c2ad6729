"""Which directories should live at which site: where most of their operations come from."""

from __future__ import annotations

from typing import Any

import numpy as np

from tracehint.analyzer.predict.metadata.model import COMPUTING, MetaWork, Sites

MOST = 100  # directories that are told, those with most to gain first


def directories(work: MetaWork, sites: Sites, centre: int) -> list[dict[str, Any]]:
    """Directories whose operations would cross between sites less when they lived elsewhere than
    at `centre`; empty where the sites of tasks are not known.

    `saved_seconds`: round trips times their length, summed over the tasks; not a makespan.
    """
    number = {name: at for at, name in enumerate(sites.names)}
    site = np.array([number.get(name, -1) for name in work.site], np.int64)
    task = np.repeat(np.arange(work.tasks), np.diff(work.op_begin))
    keep = (work.op_kind != COMPUTING) & (site[task] >= 0)
    if not keep.any():
        return []
    folders, folder_of = np.unique(
        np.array([path.rpartition(b"/")[0] for path in work.paths], object), return_inverse=True
    )
    count = np.zeros((len(folders), len(sites.names)), np.int64)
    np.add.at(count, (folder_of[work.op_entry[keep]], site[task[keep]]), 1)
    cost = count @ sites.round_trip  # seconds, by directory and the site that it lives at
    best = cost.argmin(axis=1)
    saved = cost[:, centre] - cost[np.arange(len(folders)), best]
    order = np.argsort(-saved, kind="stable")[:MOST]
    return [
        {
            "path": folders[i].decode("utf-8", "surrogateescape"),
            "site": sites.names[best[i]],
            "operations": int(count[i].sum()),
            "from_site": int(count[i, best[i]]),
            "saved_seconds": float(saved[i]),
        }
        for i in order
        if saved[i] > 0
    ]
