"""Totals of a process that was killed between counting an operation and noting its run."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracehint.schemas.spool import layout as lay
from tracehint.schemas.spool.arena_totals import totals_of_killed


def episodes(count: int) -> NDArray[Any]:
    made = np.zeros(count, lay.EPISODE_DT)
    made["open_id"] = np.arange(count) + 7
    made["write_bytes"], made["write_ops"], made["small_ops"] = 27, 3, 3
    made["inner"]["op"], made["inner"]["ops"], made["inner"]["bytes"] = lay.OPS.index("write"), 1, 7
    return made


def extents(open_id: int) -> NDArray[Any]:
    made = np.zeros(1, lay.EXTENT_DT)
    made["open_id"] = open_id
    made["run"]["op"], made["run"]["ops"], made["run"]["bytes"] = lay.OPS.index("write"), 1, 10
    return made


def test_an_operation_without_its_run_goes_from_the_totals_of_an_open_file() -> None:
    made = episodes(3)
    made["close_ns"][1] = 5
    made["lost_ops"][2] = 1
    totals_of_killed(made, extents(7))
    assert made["write_bytes"].tolist() == [17, 27, 27]
    assert made["write_ops"].tolist() == [2, 3, 3]
    assert made["small_ops"].tolist() == [2, 3, 3]


def test_totals_that_agree_stay() -> None:
    made = episodes(1)
    made["write_bytes"], made["write_ops"] = 17, 2
    totals_of_killed(made, extents(7))
    assert (made["write_bytes"][0], made["write_ops"][0], made["read_bytes"][0]) == (17, 2, 0)
    totals_of_killed(made[:0], extents(7)[:0])
