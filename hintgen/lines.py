"""Lines of files: each made by a task of the one before alone, down to one that nobody reads."""

from __future__ import annotations

import numpy as np

from tracehint.analyzer.arrays import Ints, lookup
from tracehint.hintgen.members import members_of
from tracehint.hintgen.users import Users

STEPS = 4  # of a line, so that a long chain takes no longer than a broad graph


def lines_of(users: Users, files: Ints) -> tuple[Ints, Ints]:
    """(files at the beginning of a line, the file at its end). `files`: all of the run."""
    before, after = _steps(users)
    unread = files[~np.isin(files, users.read.file)]
    begin = np.concatenate([before, unread])
    here, end = begin, np.full(len(begin), -1, np.int64)
    for _ in range(STEPS + 1):
        ended = np.isin(here, unread)
        end[ended] = here[ended]
        here = lookup(before, after, here)
    return begin[end >= 0], end[end >= 0]


def _steps(users: Users) -> tuple[Ints, Ints]:
    """(sorted files that one task reads, the file that it makes): tasks that read one file of
    those that tasks make, and make one that no other task makes."""
    made, read = users.made, users.read
    handed = np.isin(read.file, made.file)
    reads = members_of(read.task[handed], read.file[handed])
    makes = members_of(made.task, made.file)
    task = reads.groups[(reads.counts(reads.groups) == 1) & (makes.counts(reads.groups) == 1)]
    before, after = reads.only(task), makes.only(task)
    readers, makers = members_of(read.file, read.task), members_of(made.file, made.task)
    alone = (before != after) & (readers.counts(before) == 1) & (makers.counts(after) == 1)
    order = np.argsort(before[alone])
    return before[alone][order], after[alone][order]
