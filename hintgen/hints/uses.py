"""Uses of files, from the producer and consumer counts of an engine's graph before the run.

    unread       no consumer
    shared       several consumers
    input_once   an input of the workflow with one consumer
    one_to_one   one consumer, which reads from one producer; the producer feeds one consumer
    fan_in       one consumer, which reads such files from several producers
    fan_out      one consumer; its producer writes such files for several consumers
    fan_both     fan_in and fan_out

Only files with one consumer count for fan-in and fan-out: a table that every
worker reads makes no worker a reducer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from tracehint.analyzer.catalogue import MIN_SHARING

USES = ("unread", "shared", "input_once", "one_to_one", "fan_in", "fan_out", "fan_both")

# Pattern of each use if all readers read the whole file (the definitions of the patterns).
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
    """Return the use of each file from the declared producing and consuming tasks of all files."""
    gathering, spreading = _fans(producers, consumers)
    out = []
    for made_by, read_by in zip(producers, consumers, strict=True):
        if not read_by:
            out.append("unread")
        elif len(read_by) >= MIN_SHARING:
            out.append("shared")
        elif not made_by:
            out.append("input_once")
        else:
            gathers = read_by[0] in gathering
            spreads = not spreading.isdisjoint(made_by)
            out.append(USES[3 + gathers + 2 * spreads])
    return out


def _fans(
    producers: Sequence[Sequence[str]], consumers: Sequence[Sequence[str]]
) -> tuple[set[str], set[str]]:
    """Return the consumers of files from several producers, and the producers of files for several
    consumers; only files with one consumer count."""
    maker_of: dict[str, str] = {}
    reader_of: dict[str, str] = {}
    gathering: set[str] = set()
    spreading: set[str] = set()
    for made_by, read_by in zip(producers, consumers, strict=True):
        if len(read_by) != 1:
            continue
        reader = read_by[0]
        for maker in made_by:
            if maker_of.setdefault(reader, maker) != maker:
                gathering.add(reader)
            if reader_of.setdefault(maker, reader) != reader:
                spreading.add(maker)
    return gathering, spreading


def pair_counts(
    producers: Sequence[Sequence[str]], consumers: Sequence[Sequence[str]]
) -> list[int]:
    """Return, for each file, the number of files with the same producers and consumers."""
    pairs = list(zip(map(_as_set, producers), map(_as_set, consumers), strict=True))
    count = Counter(pairs)
    return [count[pair] for pair in pairs]


def _as_set(tasks: Sequence[str]) -> object:
    """Return a key that is equal for the same tasks in any order."""
    return tuple(tasks) if len(tasks) < 2 else frozenset(tasks)
