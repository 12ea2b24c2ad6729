"""Learning: which placeholders of a name tell the group that a file belongs to."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable

from tracehint.hintgen.hints.formulas import without_digits
from tracehint.hintgen.learn.candidates import Candidate
from tracehint.hintgen.learn.facts import run_of
from tracehint.hintgen.learn.filegroups import FileGroup
from tracehint.hintgen.text.masks import RUN_ONLY

WORDY = ("name", "alnum", "word")

Row = tuple[tuple[bytes, ...], int]  # text of each placeholder, group


def captures_of(
    candidate: Candidate, file_groups: list[FileGroup], by_producer: bool
) -> tuple[tuple[int, ...], bool]:
    """(placeholders that are the same within each group and tell the groups apart, digits aside).

    In a run with one group these are all that never change in it: another run may
    have several (one per lane, colour, sample), and then they change between them. Random
    parts name the task that wrote the file (a work directory), not the one that reads it.
    """
    matched = [
        (candidate.template.match(path), group)
        for file_group in file_groups
        for path, group in file_group.samples
        if group is not None
    ]
    rows = [(row, group) for row, group in matched if row is not None]
    if len(rows) < 2 or len(rows) < len(matched):
        return (), False
    groups = {group for _, group in rows}
    single = len({run_of(group) for group in groups}) == len(groups)
    if single and sum(file_group.size_sum for file_group in file_groups) < max(
        file_group.group_bytes for file_group in file_groups
    ):
        return (), False  # part of a group with other names as well
    holes = [part for part in candidate.template.parts if isinstance(part, str)]
    usable = [
        at for at, hole in enumerate(holes) if by_producer or not single or hole not in RUN_ONLY
    ]
    found = _telling(rows, usable, bytes)
    if found or single:
        return found, False
    found = _telling(rows, [at for at in usable if holes[at] in WORDY], without_digits)
    return found, bool(found)


def _telling(rows: list[Row], usable: list[int], read: Callable[[bytes], bytes]) -> tuple[int, ...]:
    """The placeholders that name the groups, as `read` sees their text; empty: none do."""
    groups: dict[int, list[set[bytes]]] = {}
    for row, group in rows:
        seen = groups.setdefault(group, [set() for _ in usable])
        for values, at in zip(seen, usable, strict=True):
            values.add(read(row[at]))
    steady = [i for i in range(len(usable)) if all(len(s[i]) == 1 for s in groups.values())]
    by_run: dict[int, list[tuple[bytes, ...]]] = defaultdict(list)
    for group, seen in groups.items():
        by_run[run_of(group)].append(tuple(next(iter(seen[i])) for i in steady))
    if all(len(keys) == 1 for keys in by_run.values()):
        return tuple(usable[i] for i in steady)
    for place, i in enumerate(steady):
        if all(len({key[place] for key in keys}) == len(keys) for keys in by_run.values()):
            return (usable[i],)
    told = all(len(set(keys)) == len(keys) for keys in by_run.values())
    return tuple(usable[i] for i in steady) if told else ()
