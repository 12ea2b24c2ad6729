"""Learning: candidates whose names differ only in words become one."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass, field

from tracehint.hintgen.hints.template import MAX_AMBIGUOUS, Template, ambiguity, template_of
from tracehint.hintgen.learn.candidates import Candidate
from tracehint.hintgen.learn.filegroups import Types
from tracehint.hintgen.learn.shapes import fields, merge_fields, skeleton
from tracehint.hintgen.text.masks import MARKS

MIN_WORDS = 3  # different words at one place from which it becomes a placeholder


Table = dict[str, set[str]]  # use -> patterns


@dataclass
class _Cluster:
    """Candidates of which no use has different patterns in two of them."""

    candidates: list[Candidate] = field(default_factory=list)
    types: set[tuple[Types, Types]] = field(default_factory=set)
    table: Table = field(default_factory=dict)

    def takes(self, types: set[tuple[Types, Types]], table: Table) -> bool:
        """Whether a candidate with these is of the same types and contradicts none in it."""
        shared = table.keys() & self.table.keys()
        return not types.isdisjoint(self.types) and all(
            table[use] == self.table[use] for use in shared
        )

    def add(self, candidate: Candidate, types: set[tuple[Types, Types]], table: Table) -> None:
        """Take the candidate in."""
        self.candidates.append(candidate)
        self.types |= types
        self.table |= table


def merge(candidates: list[Candidate]) -> list[Candidate]:
    """Candidates whose names differ only in words, of tasks of the same types, become one.

    Not where the merged template would catch a candidate of another pattern.
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
            out += _merged(cluster, strangers)
    return out


def _clusters(group: list[Candidate]) -> list[list[Candidate]]:
    """Each candidate with the first candidates that it goes with, in order."""
    clusters: list[_Cluster] = []
    for candidate in group:
        types, table = candidate.types, candidate.table
        home = next((c for c in clusters if c.takes(types, table)), None)
        if home is None:
            home = _Cluster()
            clusters.append(home)
        home.add(candidate, types, table)
    return [cluster.candidates for cluster in clusters]


def _merged(cluster: list[Candidate], strangers: list[Candidate]) -> list[Candidate]:
    """The cluster as one node; else, where that is too loose, merged at one place each."""
    whole = _one(cluster, strangers)
    if whole is not None:
        return [whole]
    for at in range(1, len(fields(_shape(cluster[0]))), 2):
        alike: dict[tuple[bytes, ...], list[Candidate]] = defaultdict(list)
        for candidate in cluster:
            columns = fields(_shape(candidate))
            alike[(*columns[:at], b"", *columns[at + 1 :])].append(candidate)
        if len(alike) < len(cluster):
            made = [(part, _one(part, strangers)) for part in alike.values()]
            if any(candidate is not None for _, candidate in made):
                return [n for part, candidate in made for n in ([candidate] if candidate else part)]
    return cluster


def _one(cluster: list[Candidate], strangers: list[Candidate]) -> Candidate | None:
    """All of the cluster under one template; None where evidence does not reach so far."""
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
    """True when some letter or digit of the base name is fixed."""
    base = template.text.rpartition("/")[2]
    return any(char.isalnum() for char in re.sub(r"\{[a-z]+\}", "", base))


def _shape(candidate: Candidate) -> bytes:
    back = {name: mark for mark, name in MARKS.items()}
    return b"".join(
        part if isinstance(part, bytes) else b"\x00" + back.get(part, "a").encode()
        for part in candidate.template.parts
    )
