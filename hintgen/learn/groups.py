"""Learning: which placeholders of a name tell the group that a file belongs to."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable

from tracehint.hintgen.hints.formulas import without_digits
from tracehint.hintgen.learn.candidates import Candidate
from tracehint.hintgen.learn.facts import run_of
from tracehint.hintgen.learn.filegroups import FileGroup
from tracehint.hintgen.text.masks import RUN_ONLY

WORDY = ("name", "alnum", "word")

Row = tuple[tuple[bytes, ...], int]  # text of each placeholder, group
Captures = tuple[tuple[int, ...], bool]


class Told:
    """What a candidate's names tell; asked twice about the same files, it looks once."""

    def __init__(self, candidate: Candidate) -> None:
        self._candidate = candidate
        self._rows: dict[tuple[int, ...], list[Row]] = {}
        self._found: dict[tuple[tuple[int, ...], bool], Captures] = {}

    def captures(self, file_groups: list[FileGroup], by_producer: bool) -> Captures:
        """(placeholders that are the same within each group and tell the groups apart; whether
        they do so with their digits left out). The file groups are those of the candidate.

        In a run with one group these are all that never change in it: another run may
        have several (one per lane, colour, sample), and then they change between them. Random
        parts name the task that wrote the file (a work directory), not the one that reads it.
        """
        key = tuple(map(id, file_groups))  # the candidate keeps them
        if key not in self._rows:
            self._rows[key] = _rows_of(self._candidate, file_groups)
        if (key, by_producer) not in self._found:
            found = _captures(self._candidate, file_groups, self._rows[key], by_producer)
            self._found[key, by_producer] = found
        return self._found[key, by_producer]


def _rows_of(candidate: Candidate, file_groups: list[FileGroup]) -> list[Row]:
    """The samples that are in groups; none where the template does not fit one of them."""
    rows: list[Row] = []
    for file_group in file_groups:
        for path, group in file_group.samples:
            if group is not None:
                row = candidate.template.match(path)
                if row is None:
                    return []
                rows.append((row, group))
    return rows


def _captures(
    candidate: Candidate, file_groups: list[FileGroup], rows: list[Row], by_producer: bool
) -> Captures:
    if len(rows) < 2:
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
    steady, texts = list[int](), list[dict[int, bytes]]()
    for i, at in enumerate(usable):
        text = _one_each((read(row[at]), group) for row, group in rows)
        if text is not None:
            steady.append(i)
            texts.append(text)
    by_run: dict[int, list[tuple[bytes, ...]]] = defaultdict(list)
    for group in {group for _, group in rows}:
        by_run[run_of(group)].append(tuple(text[group] for text in texts))
    if all(len(keys) == 1 for keys in by_run.values()):
        return tuple(usable[i] for i in steady)
    for place, i in enumerate(steady):
        if all(len({key[place] for key in keys}) == len(keys) for keys in by_run.values()):
            return (usable[i],)
    told = all(len(set(keys)) == len(keys) for keys in by_run.values())
    return tuple(usable[i] for i in steady) if told else ()


def _one_each(texts: Iterable[tuple[bytes, int]]) -> dict[int, bytes] | None:
    """The text of each group; None where a group has several."""
    found: dict[int, bytes] = {}
    for text, group in texts:
        if found.setdefault(group, text) != text:
            return None
    return found
