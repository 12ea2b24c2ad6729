"""How a file is used, in counts that an engine's graph knows before the run.

    unread       no consumer
    shared       several consumers
    input_once   an input of the workflow with one consumer
    one_to_one   one consumer, which reads from one producer; the producer feeds one consumer
    fan_in       one consumer, which reads such files of several producers
    fan_out      one consumer; its producer writes such files for several consumers
    fan_both     both

Only files with one consumer count for fan-in and fan-out: a table that every
worker reads makes no worker a reducer.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence

USES = ("unread", "shared", "input_once", "one_to_one", "fan_in", "fan_out", "fan_both")

# What each use is when all readers read everything (the definitions of the patterns).
BY_DEFINITION: dict[str, str] = {
    "unread": "",
    "shared": "broadcast",
    "input_once": "stage_in",
    "one_to_one": "pipeline",
    "fan_in": "reduce",
    "fan_out": "distribute",
    "fan_both": "reduce",
}


def uses_of(producers: Sequence[Sequence[str]], consumers: Sequence[Sequence[str]]) -> list[str]:
    """Use of each file, from the declared producing and consuming tasks of all of them."""
    feeding: dict[str, set[str]] = defaultdict(set)  # consumer -> its producers
    fed: dict[str, set[str]] = defaultdict(set)  # producer -> its consumers
    for made_by, read_by in zip(producers, consumers, strict=True):
        if len(read_by) == 1:
            for maker in made_by:
                feeding[read_by[0]].add(maker)
                fed[maker].add(read_by[0])
    out = []
    for made_by, read_by in zip(producers, consumers, strict=True):
        if len(read_by) != 1:
            out.append("shared" if read_by else "unread")
        elif not made_by:
            out.append("input_once")
        else:
            gathers = len(feeding[read_by[0]]) >= 2
            spreads = any(len(fed[maker]) >= 2 for maker in made_by)
            out.append(USES[3 + gathers + 2 * spreads])
    return out


def pair_counts(
    producers: Sequence[Sequence[str]], consumers: Sequence[Sequence[str]]
) -> list[int]:
    """For each file: how many have the same producers and consumers, itself included."""
    pairs = list(zip(map(_as_set, producers), map(_as_set, consumers), strict=True))
    count = Counter(pairs)
    return [count[pair] for pair in pairs]


def _as_set(tasks: Sequence[str]) -> object:
    """Equal for the same tasks in any order."""
    return tuple(tasks) if len(tasks) < 2 else frozenset(tasks)
