"""Placeholders of a name that identify the group of a file, and merging of similar candidates."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from tracehint.hintgen.hints.mapping import without_digits
from tracehint.hintgen.hints.template import MAX_AMBIGUOUS, Template, ambiguity, template_of
from tracehint.hintgen.learn.candidates import Candidate, fields, merge_fields, skeleton
from tracehint.hintgen.learn.facts import run_of
from tracehint.hintgen.learn.filegroups import FileGroup, Types
from tracehint.hintgen.text.masks import MARKS, RUN_ONLY

WORDY = ("name", "alnum", "word")

Row = tuple[tuple[bytes, ...], int]  # text of each placeholder, group
Captures = tuple[tuple[int, ...], bool]


class Naming:
    """Placeholders of a candidate that identify groups, cached by file groups."""

    def __init__(self, candidate: Candidate) -> None:
        self._candidate = candidate
        self._rows: dict[tuple[int, ...], list[Row]] = {}
        self._found: dict[tuple[tuple[int, ...], bool], Captures] = {}

    def captures(self, file_groups: list[FileGroup], by_producer: bool) -> Captures:
        """Return the placeholders that are constant within each group and distinguish the groups,
        and whether their digits are ignored. The file groups belong to the candidate.

        In a run with one group these are all constant placeholders: another run may have several
        groups (one per lane, colour, sample) that differ in them. Random parts are excluded then:
        they name the task that wrote the file (a work directory), not its reader.
        """
        key = tuple(map(id, file_groups))  # ids stay valid: the candidate holds the objects
        if key not in self._rows:
            self._rows[key] = _rows_of(self._candidate, file_groups)
        if (key, by_producer) not in self._found:
            found = _captures(self._candidate, file_groups, self._rows[key], by_producer)
            self._found[key, by_producer] = found
        return self._found[key, by_producer]


def _rows_of(candidate: Candidate, file_groups: list[FileGroup]) -> list[Row]:
    """Return the samples that are in groups; empty if the template does not match one of them."""
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
        return (), False  # part of a group that also has other names
    holes = [part for part in candidate.template.parts if isinstance(part, str)]
    usable = [
        at for at, hole in enumerate(holes) if by_producer or not single or hole not in RUN_ONLY
    ]
    found = _find_naming_placeholders(rows, usable, bytes)
    if found or single:
        return found, False
    found = _find_naming_placeholders(
        rows, [at for at in usable if holes[at] in WORDY], without_digits
    )
    return found, bool(found)


def _find_naming_placeholders(
    rows: list[Row], usable: list[int], read: Callable[[bytes], bytes]
) -> tuple[int, ...]:
    """Return the placeholders whose text, converted by `read`, names the groups; empty: none."""
    steady, texts = list[int](), list[dict[int, bytes]]()
    for i, at in enumerate(usable):
        text = _text_by_group((read(row[at]), group) for row, group in rows)
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
    distinct = all(len(set(keys)) == len(keys) for keys in by_run.values())
    return tuple(usable[i] for i in steady) if distinct else ()


def _text_by_group(texts: Iterable[tuple[bytes, int]]) -> dict[int, bytes] | None:
    """Return the text of each group; None if a group has several."""
    found: dict[int, bytes] = {}
    for text, group in texts:
        if found.setdefault(group, text) != text:
            return None
    return found


MIN_WORDS = 3  # minimum number of distinct words in a field that becomes a placeholder


Table = dict[str, set[str]]  # use -> patterns


@dataclass
class _Cluster:
    """Candidates that agree on the patterns of each use."""

    candidates: list[Candidate] = field(default_factory=list)
    types: set[tuple[Types, Types]] = field(default_factory=set)
    table: Table = field(default_factory=dict)

    def accepts(self, types: set[tuple[Types, Types]], table: Table) -> bool:
        """Whether a candidate shares a pair of types and has the same patterns for each use."""
        shared = table.keys() & self.table.keys()
        return not types.isdisjoint(self.types) and all(
            table[use] == self.table[use] for use in shared
        )

    def add(self, candidate: Candidate, types: set[tuple[Types, Types]], table: Table) -> None:
        """Add a candidate."""
        self.candidates.append(candidate)
        self.types |= types
        self.table |= table


def merge(candidates: list[Candidate]) -> list[Candidate]:
    """Merge candidates of tasks of the same types whose names differ only in words.

    Candidates stay separate if the merged template would match a candidate of another pattern.
    """
    by_skeleton: dict[tuple[bytes, str], list[Candidate]] = defaultdict(list)
    for candidate in candidates:
        by_skeleton[skeleton(_shape(candidate)), candidate.need].append(candidate)
    out: list[Candidate] = []
    for group in by_skeleton.values():
        for cluster in _clusters(group):
            if len(cluster) == 1:
                out += cluster
                continue
            strangers = [
                candidate for candidate in group if candidate.patterns != cluster[0].patterns
            ]
            out += _merge_cluster(cluster, strangers)
    return out


def _clusters(group: list[Candidate]) -> list[list[Candidate]]:
    """Group candidates greedily: each joins the first cluster that accepts it."""
    clusters: list[_Cluster] = []
    for candidate in group:
        types, table = candidate.types, candidate.table
        home = next((c for c in clusters if c.accepts(types, table)), None)
        if home is None:
            home = _Cluster()
            clusters.append(home)
        home.add(candidate, types, table)
    return [cluster.candidates for cluster in clusters]


def _merge_cluster(cluster: list[Candidate], strangers: list[Candidate]) -> list[Candidate]:
    """Merge a cluster into one candidate or, if too loose, those that differ in one field."""
    whole = _merge_all(cluster, strangers)
    if whole is not None:
        return [whole]
    for at in range(1, len(fields(_shape(cluster[0]))), 2):
        alike: dict[tuple[bytes, ...], list[Candidate]] = defaultdict(list)
        for candidate in cluster:
            columns = fields(_shape(candidate))
            alike[(*columns[:at], b"", *columns[at + 1 :])].append(candidate)
        if len(alike) < len(cluster):
            made = [(part, _merge_all(part, strangers)) for part in alike.values()]
            if any(candidate is not None for _, candidate in made):
                return [n for part, candidate in made for n in ([candidate] if candidate else part)]
    return cluster


def _merge_all(cluster: list[Candidate], strangers: list[Candidate]) -> Candidate | None:
    """Merge a cluster under one template; None if the words are too few or it is too loose."""
    shapes = [_shape(candidate) for candidate in cluster]
    variety = max(len(set(column)) for column in zip(*map(fields, shapes), strict=True))
    if len(cluster) == 1 or variety < MIN_WORDS:
        return None
    template = template_of(merge_fields(shapes))
    if ambiguity(template) > MAX_AMBIGUOUS or not says_something(template):
        return None
    if any(
        template.match(path) is not None for candidate in strangers for path in candidate.samples
    ):
        return None
    file_groups = [file_group for candidate in cluster for file_group in candidate.file_groups]
    return Candidate(template, file_groups, need=cluster[0].need)


def says_something(template: Template) -> bool:
    """Whether some letter or digit of the base name is fixed."""
    base = template.text.rpartition("/")[2]
    return any(char.isalnum() for char in re.sub(r"\{[a-z]+\}", "", base))


def _shape(candidate: Candidate) -> bytes:
    back = {name: mark for mark, name in MARKS.items()}
    return b"".join(
        part if isinstance(part, bytes) else b"\x00" + back.get(part, "a").encode()
        for part in candidate.template.parts
    )
