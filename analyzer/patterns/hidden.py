"""How probable it is that an access of which nothing was recorded would change a label.

Each access was lost with the run's share L. Of the files that had n + k readers then
C(n+k, k) r^k N(n+k) are seen with n only, with r = L / (1 - L) and N(n+k) the number of files
that are still seen with n + k. So the run itself tells how many of its files with n readers
had more (docs/patterns.md, docs/rationale/lost-accesses.md).
"""

from __future__ import annotations

from math import comb
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import pyarrow as pa

    from tracehint.analyzer.patterns.rows import Facts

MOST = 6  # users of a file that are told apart; the last number is for all above as well
MORE = 2  # so many lost users are thought of; the terms for more are few and noisy
PRIOR = 3  # one more file is thought of with each number of users up to this
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
    counts = np.bincount(shape, minlength=(MOST + 1) ** 2).tolist()
    files = {divmod(k, MOST + 1): n for k, n in enumerate(counts)}
    users = range(MOST + 1)
    one = [files.get((1, r), 0) for r in users]
    more = [sum(files.get((w, r), 0) for w in users[2:]) for r in users]
    writers = [sum(files.get((w, r), 0) for r in users[1:]) for w in users]
    inputs = [files.get((0, r), 0) for r in users]
    alone = [files.get((w, 1), 0) for w in users]
    only = _sure(one, 1, share) * _sure(writers, 1, share)
    found: dict[tuple[str, bool], float] = {}
    for single, made in ((True, one), (False, more)):
        found |= {
            ("stage_out", single): _sure(made, 0, share),
            ("reduce", single): _sure(made, 1, share),
            ("pipeline", single): only,
            ("distribute", single): only,
            ("stage_in", single): _sure(inputs, 1, share) * _sure(alone, 0, share),
        }
    return found


def _lost_share(lost: pa.Table | None) -> float:
    """L: the share of the run's accesses of which nothing was recorded."""
    if lost is None or "gone" not in lost.schema.names:
        return 0.0
    import pyarrow.compute as pc

    gone, opens = (pc.sum(lost.column(c)).as_py() or 0.0 for c in ("gone", "opens"))
    return min(MAX_LOST, gone / (gone + opens)) if gone else 0.0


def _sure(files: list[int], users: int, share: float) -> float:
    """Of the files seen with so many users, the share that had no more; `files` by users."""
    odds = share / (1 - share)
    likely = [n + (k <= PRIOR) for k, n in enumerate(files)]
    more = sum(
        comb(k, users) * odds ** (k - users) * likely[k] for k in range(users + 1, users + 1 + MORE)
    )
    return max(0.0, 1 - more / max(1, likely[users]))
