"""Reduce and distribute: groups of files around one task."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tracehint.analyzer.arrays import Ints, order_by, starts_of
from tracehint.analyzer.patterns.rows import (
    UNKNOWN,
    Bools,
    Floats,
    Groups,
    Labels,
    Rows,
    Single,
    code,
)

if TYPE_CHECKING:
    from tracehint.analyzer.model import Options


@dataclass
class Around(Rows):
    """Groups, the reduces first, then by task; numbered from 0 here and from 1 in the result."""

    pattern: Ints
    task: Ints
    files: Ints  # how many
    partners: Ints  # producers or consumers
    bytes: Ints
    share: Floats
    largest: Ints  # bytes of the largest partner
    spread: Floats  # coefficient of variation, NaN for a reduce


def find(
    single: Single, task_reads: Floats, lineage: Ints, options: Options
) -> tuple[Around, Labels]:
    """The groups, and the labels of their files; `lineage` is the path of each file version."""
    least = max(options.reduce_min_share, 1e-9)
    tasks = len(task_reads)
    reduces = _reduces(single, task_reads, tasks, least)
    reduces = reduces.take(_several(single.consumer, lineage[single.file], tasks)[reduces.task])
    alone = single.take(single.alone)
    distributes = _distributes(alone, tasks)
    several = _several(alone.producer, lineage[alone.file], tasks)
    distributes = distributes.take(several[distributes.task])
    around = Around.joined([reduces, distributes])
    of_task = np.full(tasks, UNKNOWN, np.int64)
    of_task[reduces.task] = np.arange(len(reduces))
    order = order_by(single.file)
    once = order[starts_of(single.file[order])]
    labels = [_labels(single.file[once], of_task[single.consumer[once]], "reduce")]
    of_task = np.full(tasks, UNKNOWN, np.int64)
    of_task[distributes.task] = len(reduces) + np.arange(len(distributes))
    labels.append(_labels(alone.file, of_task[alone.producer], "distribute"))
    labels[0].near = np.minimum(1, 0.5 * around.share[labels[0].group] / least)
    return around, Labels.joined(labels)


def _several(task: Ints, lineage: Ints, tasks: int) -> Bools:
    """Per task whether its files are more than the versions of one."""
    low, high = np.full(tasks, np.iinfo(np.int64).max), np.full(tasks, -1, np.int64)
    np.minimum.at(low, task, lineage)
    np.maximum.at(high, task, lineage)
    return np.asarray(low < high)


def _labels(file: Ints, group: Ints, pattern: str) -> Labels:
    file, group = file[group >= 0], group[group >= 0]
    return Labels(file, np.full(len(file), code(pattern)), group, np.ones(len(file)))


def _reduces(single: Single, task_reads: Floats, tasks: int, least: float) -> Around:
    """Tasks that read several files alone, from several producers."""
    order = order_by(single.consumer, single.file)
    first = order[starts_of(single.consumer[order], single.file[order])]
    task = single.consumer[first]
    files = np.bincount(task, minlength=tasks)
    amount = _sum(task, single.u[first], tasks)
    order = order_by(single.consumer, single.producer)
    task, other = single.consumer[order], single.producer[order]
    first = starts_of(task, other)
    fed = np.add.reduceat(single.fed[order], first) if len(first) else first
    feeds = Groups(task[first], tasks)
    largest, partners = feeds.high(fed, 0), feeds.size
    found = (files >= 2) & (partners >= 2) & (amount >= least * task_reads)
    at = np.flatnonzero(found)
    amount, total = amount[at], task_reads[at]
    return Around(
        np.full(len(at), code("reduce")),
        at,
        files[at],
        partners[at],
        amount,
        np.where(total > 0, amount / np.where(total > 0, total, 1), 1.0),
        np.where(amount > 0, largest[at], 0),
        np.full(len(at), np.nan),
    )


def _distributes(alone: Single, tasks: int) -> Around:
    """Tasks whose files go to several readers, one each."""
    order = order_by(alone.producer, alone.consumer)
    task, other = alone.producer[order], alone.consumer[order]
    first = starts_of(task, other)
    amount = np.add.reduceat(alone.u[order], first) if len(first) else first
    files = np.bincount(alone.producer, minlength=tasks)
    by_task = Groups(task[first], tasks)
    at = np.flatnonzero(by_task.size >= 2)
    partners, total = by_task.size[at], by_task.sum(amount)[at]
    off = amount - _mean(by_task, amount)[task[first]]
    deviation = np.sqrt(by_task.sum(off * off)[at] / partners)
    mean = total / partners
    return Around(
        np.full(len(at), code("distribute")),
        at,
        files[at],
        partners,
        total,
        np.ones(len(at)),
        by_task.high(amount, 0)[at],
        np.where(total > 0, deviation / np.where(total > 0, mean, 1), 0.0),
    )


def _mean(groups: Groups, values: Any) -> Floats:
    return np.asarray(groups.sum(values) / np.maximum(groups.size, 1))


def _sum(key: Ints, values: Ints, count: int) -> Ints:
    """Exact sums of whole numbers per key; keys are sorted."""
    return np.asarray(Groups(key, count).sum(values), np.int64)
