"""Choice among placements, and the primary label of each file (docs/patterns.md).

Placements are compared by the bytes over the busiest link while readers wait (after the last
producer), then by all network bytes, then by the number of copies, then by the default order.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tracehint.analyzer import catalogue
from tracehint.analyzer.arrays import order_by, starts_of
from tracehint.analyzer.execution.resources import Resources, compute_all
from tracehint.analyzer.patterns import cost
from tracehint.analyzer.patterns.cost import DEFAULT, Asked, Moved
from tracehint.analyzer.patterns.groups import Around
from tracehint.analyzer.patterns.rows import (
    PATTERNS,
    UNKNOWN,
    Bools,
    Facts,
    Floats,
    Ints,
    Labels,
    Rows,
    Single,
    code,
    concat_rows,
)
from tracehint.analyzer.sites import crossing_probability

if TYPE_CHECKING:
    from tracehint.analyzer.model import Options

Priced = Callable[[Ints], tuple[Moved, Asked]]
_BLOCK_LABELS = 1 << 18  # labels per block


@dataclass
class Chosen(Rows):
    """Per label the chosen placement, its savings, and the costs behind the choice."""

    primary: Bools
    placement: Ints
    saves: Ints
    saves_wait: Ints
    runner_up: Ints
    runner_up_saves: Ints
    net0: Ints  # of the default placement
    wait0: Ints
    net: Ints
    wait: Ints
    copies: Ints
    asked: Ints
    across0: Ints  # the part of net0 that crosses between sites
    across: Ints  # the part of net that crosses between sites


@dataclass(frozen=True)
class Site:
    """The cluster for which placements are compared: `nodes` nodes at one or several sites."""

    options: Options
    nodes: int
    hosts_by_site: Mapping[str, int]

    @property
    def number(self) -> float:
        """Number of nodes in the cost model, at least 1."""
        return float(max(1, self.nodes))


def choose(
    labels: Labels, facts: Facts, single: Single, around: Around, site: Site, resources: Resources
) -> Chosen:
    """Choose a placement for each label, in blocks of whole files."""
    home = cost.at_home(labels, facts, single, around, site.number)

    def priced(at: Ints) -> tuple[Moved, Asked]:
        """Return the bytes that the files of these labels move, and the requested placements."""
        some = labels.take(at)
        moved = _add_default_moves(
            cost.count_moved_bytes(some, facts, home[at]), site.options, site.number
        )
        return moved, cost.choose_placement(some.pattern, moved, site.number)

    loses = _find_losing_groups(labels, priced, len(facts))
    step = max(1, _BLOCK_LABELS * len(facts) // max(1, len(labels)))
    block = labels.file // step
    order = order_by(block)
    bounds = np.append(starts_of(block[order]), len(order))
    del block

    def chosen_in(i: int) -> Chosen:
        at = order[bounds[i] : bounds[i + 1]]
        moved, asked = priced(at)
        some = labels.take(at)
        some.file = some.file - int(some.file.min())
        return _choose_block(some, asked, moved, loses[at], site).slim()

    parts = compute_all(chosen_in, range(len(bounds) - 1), resources, "placements")
    return concat_rows(parts, order) if parts else Chosen.empty()


def _choose_block(labels: Labels, asked: Asked, moved: Moved, loses: Bools, site: Site) -> Chosen:
    """Choose a placement for each label; `labels` holds all labels of its files."""
    first, second, best = _find_best(labels, asked, moved, loses)
    pays = _beats_default(asked, moved, site.options.call_cost_bytes)
    choice = np.where(pays, asked.placement, DEFAULT)

    def of(candidate: Ints) -> tuple[Ints, Floats]:
        """Return placement and network bytes of the label, or of the default without a label."""
        placement = np.where(candidate >= 0, asked.placement[candidate], DEFAULT)
        return placement, np.where(candidate >= 0, asked.net[candidate], moved.net)

    one, two = of(first[labels.file]), of(second[labels.file])
    other = one[0] != choice
    return Chosen(
        best[labels.file] == np.arange(len(labels)),
        choice,
        np.where(pays, round_half_away(moved.net - asked.net), 0),
        np.where(pays, round_half_away(moved.wait - asked.wait), 0),
        np.where(other, one[0], two[0]),
        round_half_away(moved.net - np.where(other, one[1], two[1])),
        round_half_away(moved.net),
        round_half_away(moved.wait),
        round_half_away(asked.net),
        round_half_away(asked.wait),
        asked.copies,
        asked.placement,
        round_half_away(moved.net * crossing_probability(site.hosts_by_site, site.nodes)),
        round_half_away(cost.across(asked, moved, site.hosts_by_site, site.nodes)),
    )


def _add_default_moves(moved: Moved, options: Options, nodes: float) -> Moved:
    """Set the costs of the default placement."""
    network, waiting = cost.DEFAULTS[options.default_placement]
    moved.net, moved.wait = network(moved, nodes), waiting(moved, nodes)
    return moved


def _beats_default(asked: Asked, moved: Moved, call_cost: int) -> Bools:
    """Whether a placement beats the default by at least the cost of a call."""
    pays = (asked.wait < moved.wait) | ((asked.wait == moved.wait) & (asked.net < moved.net))
    enough = moved.wait - asked.wait + moved.net - asked.net >= call_cost
    return np.asarray(pays & enough, bool)


def round_half_away(values: Floats) -> Ints:
    """Round to integers, halves away from zero."""
    whole = np.trunc(values)
    return np.asarray(whole + np.sign(values) * (np.abs(values - whole) >= 0.5), np.int64)


def _find_best(labels: Labels, asked: Asked, moved: Moved, loses: Bools) -> tuple[Ints, Ints, Ints]:
    """Return per file the labels with the best and the second best placement (UNKNOWN: the default,
    or none), and the primary label.

    Labels are compared in their default order, so a later label wins only if it is cheaper.
    """
    files = int(labels.file.max(initial=-1)) + 1
    first, second, best = (np.full(files, UNKNOWN, np.int64) for _ in range(3))
    cost = (asked.wait, asked.net, asked.copies)
    for pattern in catalogue.NAMES:
        label = np.flatnonzero(labels.pattern == code(pattern))
        eligible = label[~loses[label]]
        at = labels.file[eligible]
        wins = _cheaper(cost, eligible, best[at])
        best[at[wins]] = eligible[wins]
        label = label[asked.placement[label] != DEFAULT]
        at = labels.file[label]
        wins = _cheaper(cost, label, first[at])
        second[at[wins]] = first[at[wins]]
        first[at[wins]] = label[wins]
        label, at = label[~wins], at[~wins]
        wins = _cheaper(cost, label, second[at])
        second[at[wins]] = label[wins]
    _rank_default(labels, asked, moved, first, second)
    return first, second, best


def _cheaper(cost: tuple[Ints | Floats, ...], label: Ints, than: Ints) -> Bools:
    """Whether each label costs less than its rival `than`; true where the rival is UNKNOWN."""
    less, same = than == UNKNOWN, than != UNKNOWN
    for column in cost:
        less = less | (same & (column[label] < column[than]))
        same = same & (column[label] == column[than])
    return np.asarray(less, bool)


def _rank_default(labels: Labels, asked: Asked, moved: Moved, first: Ints, second: Ints) -> None:
    """Compare the default placement (UNKNOWN) with the best two labels; on equal costs they win."""
    wait, net = (np.zeros(len(first)) for _ in range(2))
    wait[labels.file], net[labels.file] = moved.wait, moved.net
    default = (wait, net, np.ones(len(first), np.int64))

    def wins(against: Ints) -> Bools:
        """Whether the default costs less than the label."""
        less, same = np.zeros(len(first), bool), against != UNKNOWN
        for own, column in zip(default, (asked.wait, asked.net, asked.copies), strict=True):
            if len(column):
                less |= same & (own < column[against])
                same = same & (own == column[against])
        return less

    best = wins(first)
    second[best] = first[best]
    first[best] = UNKNOWN
    second[~best & wins(second)] = UNKNOWN


def _find_losing_groups(labels: Labels, priced: Priced, files: int) -> Bools:
    """Mark the group labels that lose to another group of their file that saves more in total."""
    loses = np.zeros(len(labels), bool)
    at = np.flatnonzero(labels.group >= 0)
    rivals = np.bincount(labels.file[at], minlength=files) > 1
    if not rivals.any():
        return loses
    group = labels.group[at]
    moved, asked = priced(at)
    wait = np.bincount(group, moved.wait - asked.wait)
    net = np.bincount(group, moved.net - asked.net)
    some = rivals[labels.file[at]]
    at, group = at[some], group[some]
    rank = np.array([catalogue.NAMES.index(name) for name in PATTERNS])[labels.pattern[at]]
    order = np.lexsort((rank, -net[group], -wait[group], labels.file[at]))
    at = at[order]
    loses[at] = True
    loses[at[starts_of(labels.file[at])]] = False
    return loses
