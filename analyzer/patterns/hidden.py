"""How probable it is that an access of which nothing was recorded would change a label.

Each use of a file by a task was lost with the run's share L. So a file with n readers is seen with
k of them with the probability of a binomial, and the numbers of files that are seen with 0, 1, 2
... readers tell how many have how many: the most likely numbers are found by expectation
maximisation (docs/patterns.md, docs/rationale/lost-accesses.md). The same for writers.
"""

from __future__ import annotations

from math import comb
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    import pyarrow as pa

    from tracehint.analyzer.patterns.rows import Facts

Numbers = npt.NDArray[Any]

MOST = 12  # users of a file that are told apart; the last number is for all above as well
PRIOR = 3  # one more file is thought of with each number of users up to this
STEPS = 1000  # of the maximisation
MAX_LOST = 0.9  # beyond that nothing is known anyway


def kept(facts: Facts, lost: pa.Table | None) -> dict[tuple[str, bool], float]:
    """(label, one writer at most) -> probability that no lost access would change it.

    Empty when no access was lost as a whole; labels that are missing do not hang on one access.
    `lost` as of `patterns.label`.
    """
    share = _lost_share(lost)
    if not share:
        return {}
    some = facts.labelled
    shape = np.minimum(facts.np[some], MOST) * (MOST + 1) + np.minimum(facts.n[some], MOST)
    # files by the writers and the readers that were seen
    files = np.bincount(shape, minlength=(MOST + 1) ** 2).reshape(MOST + 1, MOST + 1)
    one_writer = sure(files[:, 1:].sum(axis=1), share)[1]
    no_writer = sure(files[:, 1], share)[0]
    input_reader = sure(files[0], share, first=1)[1]
    found: dict[tuple[str, bool], float] = {}
    for single, made in ((True, files[1]), (False, files[2:].sum(axis=0))):
        none, one = sure(made, share)[:2]
        found |= {
            ("stage_out", single): none,
            ("reduce", single): one,
            ("pipeline", single): float(sure(files[1], share)[1] * one_writer),
            ("distribute", single): float(sure(files[1], share)[1] * one_writer),
            ("stage_in", single): float(input_reader * no_writer),
        }
    return {key: float(value) for key, value in found.items()}


def _lost_share(lost: pa.Table | None) -> float:
    """L: the share of uses of a file by a task of which nothing was recorded.

    Of a file that the task opened several times every access has to be lost.
    """
    if lost is None or "gone" not in lost.schema.names:
        return 0.0
    import pyarrow.compute as pc

    def total(name: str) -> float:
        found = pc.sum(lost.column(name)).as_py() if name in lost.schema.names else None
        return float(found or 0)

    gone = total("gone")
    if not gone:
        return 0.0
    share = min(MAX_LOST, gone / (gone + total("opens")))
    times = [total(name) for name in ("once", "twice", "often")]
    if not sum(times):
        return share
    return float(sum(n * share**k for k, n in enumerate(times, 1)) / sum(times))


def sure(seen: Numbers, share: float, first: int = 0) -> Numbers:
    """Of the files seen with 0, 1, 2 ... users, the share that had no more.

    `seen` are numbers of files; files with fewer than `first` users are not seen at all.
    """
    users = range(len(seen))
    # thinned[k, n]: the probability that of n users k are seen
    thinned = np.array(
        [[comb(n, k) * (1 - share) ** k * share ** abs(n - k) for n in users] for k in users]
    )
    thinned[:first] = 0
    found = thinned.sum(axis=0)
    counted = seen + thinned[:, : PRIOR + 1].sum(axis=1)
    counted[:first] = 0
    likely = np.full(len(users), counted.sum() / len(users))
    for _ in range(STEPS):
        expected = np.maximum(thinned @ likely, 1e-12)
        likely = likely * (thinned.T @ (counted / expected)) / np.maximum(found, 1e-12)
    whole = np.diag(thinned) * likely
    right: Numbers = np.clip(whole / np.maximum(thinned @ likely, 1e-12), 0.0, 1.0)
    return right
