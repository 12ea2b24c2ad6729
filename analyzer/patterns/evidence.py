"""The numbers that decided, as JSON text: in full at the file, in short at its edges."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tracehint.analyzer.arrays import ints
from tracehint.analyzer.execution.resources import Resources
from tracehint.analyzer.execution.threads import compute_all
from tracehint.analyzer.memory import give_back
from tracehint.analyzer.output.rendered import Leaf, Tree, Words, decimals, objects
from tracehint.analyzer.patterns.choice import Chosen
from tracehint.analyzer.patterns.confidence import Factors
from tracehint.analyzer.patterns.cost import PLACEMENTS, REPLICAS
from tracehint.analyzer.patterns.groups import Around
from tracehint.analyzer.patterns.numbers import GROUPS, SHAPES, Sources
from tracehint.analyzer.patterns.rows import PATTERNS, Floats, Ints, Labels, code

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass
class EvidenceTexts:
    """Per label the number of its text in full and in short, and the texts."""

    full: Ints
    short: Ints
    texts: pa.Array


@dataclass(frozen=True)
class Extra:
    """What the costs tell only if it is known: sites, and rates of links (Options.link_rates)."""

    sites: bool
    link_rates: tuple[float, float] | None


def write(
    labels: Labels,
    factors: Factors,
    chosen: Chosen,
    sources: Sources,
    extra: Extra,
    resources: Resources,
) -> EvidenceTexts:
    """The texts of all labels; most labels of a large run have one of a few."""
    import pyarrow as pa

    give_back()
    full, short = np.zeros(len(labels), np.int64), np.zeros(len(labels), np.int64)
    names = placements(chosen)
    rows = [np.flatnonzero(labels.pattern == number) for number in range(len(PATTERNS))]

    def texts_of(number: int) -> list[tuple[Ints, pa.Array]]:
        """(number of its text of each label, the texts), whole and brief."""
        at = rows[number]
        tree, brief = SHAPES[PATTERNS[number]](labels.take(at), sources)
        costs = _cost(chosen.take(at), names, extra)
        tree = {**tree, "factors": _factors(factors.take(at)), "cost": costs}
        return [objects(which) if which else (ints([]), None) for which in (tree, brief)]

    some = [number for number in range(len(PATTERNS)) if len(rows[number])]
    known, count = [pa.array(["{}"], pa.large_string())], 1
    for number, both in zip(some, compute_all(texts_of, some, resources, "evidence"), strict=True):
        for (codes, texts), place in zip(both, (full, short), strict=True):
            if texts is not None:
                place[rows[number]] = codes + count
                known.append(texts)
                count += len(texts)
    return EvidenceTexts(full, short, pa.concat_arrays(known).cast(pa.string()))


def placements(chosen: Chosen) -> dict[int, str]:
    """The names of all placements that occur, by their numbers."""
    every = (chosen.placement, chosen.runner_up, chosen.asked)
    most = max(int(c.max(initial=0)) for c in every)
    used = np.flatnonzero(sum(np.bincount(c, minlength=most + 1) for c in every)).tolist()
    return {k: PLACEMENTS[k] if k < REPLICAS else f"replicas={k - REPLICAS}" for k in [0, *used]}


def words(codes: Ints, names: dict[int, str]) -> tuple[Ints, list[str]]:
    """The numbers of placements without gaps, and their names."""
    numbers = np.array(sorted(names))
    return np.searchsorted(numbers, codes), [names[k] for k in numbers.tolist()]


def _factors(f: Factors) -> Tree:
    named = {
        "exact": f.exact,
        "kept": f.kept,
        "threshold": f.near,
        "peeks": f.peeks,
        "order": f.ordered,
        "collector": f.seen,
    }
    return {name: decimals(values, 4) for name, values in named.items()}


def _cost(c: Chosen, names: dict[int, str], extra: Extra) -> Tree:
    asked, known = words(c.asked, names)
    found: dict[str, Leaf | Tree] = {
        "default_network": c.net0, "default_wait": c.wait0,
        "placement": Words(asked, [f'"{name}"' for name in known]),
        "network": c.net, "wait": c.wait, "copies": c.copies,
    }  # fmt: skip  # a table
    if extra.sites:
        found |= {"default_between_sites": c.across0, "between_sites": c.across}
    if extra.link_rates:
        low, high = saved_seconds(c.saves_wait, c.saves, extra.link_rates)
        found |= {"saves_seconds_low": decimals(low, 6), "saves_seconds_high": decimals(high, 6)}
    return found


def saved_seconds(
    wait: Ints | int, net: Ints | int, rates: tuple[float, float]
) -> tuple[Floats, Floats]:
    """Seconds that a placement saves, at least and at most; bytes, and bytes per second.

    At least what readers wait less at the faster rate; at most also all bytes that do not cross
    the network, one after the other at the slower one. Nothing negative: what is copied more is
    copied while nobody waits.
    """
    low = np.maximum(0, wait) / rates[1]
    return low, np.maximum(low, (np.maximum(0, wait) + np.maximum(0, net)) / rates[0])


def groups(around: Around, labels: Labels, chosen: Chosen) -> pa.Array:
    """The text of each group: its numbers, and what its files save together."""
    import pyarrow as pa

    inside = labels.group >= 0
    saves = {"saves_bytes": chosen.saves, "saves_wait_bytes": chosen.saves_wait}
    sums = {name: np.zeros(len(around), np.int64) for name in saves}
    for name, values in saves.items():
        np.add.at(sums[name], labels.group[inside], values[inside])
    parts = [pa.array([], pa.large_string())]
    for pattern, shape in GROUPS.items():
        at = np.flatnonzero(around.pattern == code(pattern))
        if len(at):
            codes, texts = objects(
                {**shape(around.take(at))[0], **{k: v[at] for k, v in sums.items()}}
            )
            parts.append(texts.take(pa.array(codes)))
    return pa.concat_arrays(parts).cast(pa.string())  # the reduces come first
